"""One installation for all end-to-end tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.stack import Stack, running_stack


@pytest.fixture(scope="package")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A running installation without the demo stream."""
    home: Path = tmp_path_factory.mktemp("kaiweb")
    with running_stack(home) as running:
        yield running
