"""Settings for one machine: state below KAIWEB_HOME, all ports on loopback. The default of `kaiweb`."""

from __future__ import annotations

import secrets

from kaiweb.settings import env
from kaiweb.settings.base import *  # noqa: F403
from kaiweb.settings.base import KAIWEB_DEBUG_TOKEN, KAIWEB_HOME, SECRET_KEY
from kube.process.files import kept_secret


def _new_secret() -> str:
    return secrets.token_urlsafe(48)


# Stored in the state folder, so that log-ins survive a restart and people can read the debug token.
with env.writable_home(KAIWEB_HOME):
    SECRET_KEY = SECRET_KEY or kept_secret(KAIWEB_HOME / "secret-key", _new_secret)
    KAIWEB_DEBUG_TOKEN = KAIWEB_DEBUG_TOKEN or kept_secret(KAIWEB_HOME / "debug-token", _new_secret)
