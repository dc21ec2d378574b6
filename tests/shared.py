"""Where the data beside the checkout lies, if it is there (conformance scenarios, benchmarks)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent


def shared_path(*parts: str) -> Path:
    """Return a path below the shared data folder, or skip the test with a clear line."""
    root = Path(os.environ.get("KAIWEB_SHARED", CHECKOUT.parent / "shared"))
    path = root.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"shared data '{'/'.join(parts)}' is not beside this checkout")
    return path
