"""One machine: state below KAIWEB_HOME, everything on loopback. The default of `kaiweb` and `make run`."""

from __future__ import annotations

import secrets

from kaiweb.settings import env
from kaiweb.settings.base import *  # noqa: F403
from kaiweb.settings.base import KAIWEB_HOME, SECRET_KEY
from kube.files import kept_secret

# Kept in the state folder, so that log-ins survive a restart.
with env.writable_home(KAIWEB_HOME):
    SECRET_KEY = SECRET_KEY or kept_secret(
        KAIWEB_HOME / "secret-key", lambda: secrets.token_urlsafe(48)
    )
