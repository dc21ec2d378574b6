"""Settings for production: PostgreSQL, Redis, HTTPS in front. The start fails if a variable is missing."""

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
# X-Forwarded-Proto tells the scheme of the client. Probes inside the cluster use plain HTTP.
SECURE_SSL_REDIRECT = env.flag("KAIWEB_SSL_REDIRECT", True)
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)$"]
SECURE_HSTS_SECONDS = env.number("KAIWEB_HSTS_SECONDS", 31_536_000)
# Both apply for months to hosts that are not kaiweb's, so the owner of the domain must decide.
SECURE_HSTS_INCLUDE_SUBDOMAINS = env.flag("KAIWEB_HSTS_SUBDOMAINS", False)
SECURE_HSTS_PRELOAD = env.flag("KAIWEB_HSTS_PRELOAD", False)
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
# By default a proxy on the same machine, as uvicorn has it.
KAIWEB_TRUSTED_PROXIES = env.words("KAIWEB_TRUSTED_PROXIES", "127.0.0.1,::1")
LOGGING = logging_config(
    level=env.choice("KAIWEB_LOG_LEVEL", "INFO", env.LOG_LEVELS), json_lines=True
)
