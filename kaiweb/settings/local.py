"""One machine: state below KAIWEB_HOME, everything on loopback. The default of `kaiweb` and `make run`."""

from __future__ import annotations

import contextlib
import secrets
from pathlib import Path

from kaiweb.settings.base import *  # noqa: F403
from kaiweb.settings.base import KAIWEB_HOME, SECRET_KEY


def _kept_secret(file: Path) -> str:
    """Return the key kept in the state folder, made at first use, so that log-ins survive a restart."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        scratch = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
        scratch.write_text(secrets.token_urlsafe(48))
        scratch.chmod(0o600)
        # link() fails if another process was faster: then its key is the one that counts.
        with contextlib.suppress(FileExistsError):
            file.hardlink_to(scratch)
        scratch.unlink()
    return file.read_text().strip()


SECRET_KEY = SECRET_KEY or _kept_secret(KAIWEB_HOME / "secret-key")
