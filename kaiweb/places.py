"""Where files are: in a checkout beside the packages, in an installed wheel inside them."""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE.parent
IS_CHECKOUT = (ROOT / "pyproject.toml").is_file()


def default_home() -> Path:
    """Return the state folder if KAIWEB_HOME is not set: `.kaiweb` in a checkout, else in the user's state folder."""
    if IS_CHECKOUT:
        return ROOT / ".kaiweb"
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "kaiweb"


def deploy_folder() -> Path:
    """Return the folder with the custom resource definitions and default objects."""
    return ROOT / "deploy" if IS_CHECKOUT else PACKAGE / "deploy"
