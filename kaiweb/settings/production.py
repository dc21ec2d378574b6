"""A real installation: PostgreSQL, a Redis URL, HTTPS in front. Missing settings refuse to start."""

from __future__ import annotations

from kaiweb.settings import env
from kaiweb.settings.base import *  # noqa: F403
from kaiweb.settings.base import SECRET_KEY
from kaiweb.settings.logging import logging_config

for _name in ("KAIWEB_SECRET_KEY", "DATABASE_URL", "REDIS_URL", "KAIWEB_HOSTS"):
    if not env.text(_name):
        raise env.EnvError(f"{_name}: expected a value in production, got none")

SECRET_KEY = SECRET_KEY
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_HSTS_SECONDS = env.number("KAIWEB_HSTS_SECONDS", 31_536_000)
LOGGING = logging_config(level=env.text("KAIWEB_LOG_LEVEL", "INFO"), json_lines=True)
