"""Settings for tests: no broker, a temporary folder, cheap password hashes, messages in memory."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path

from kaiweb.settings import env
from kaiweb.settings.base import *  # noqa: F403

SECRET_KEY = "only for tests"
KAIWEB_HOME = Path("/nonexistent/kaiweb-tests")
STATIC_ROOT = None
FRONTEND_DIST = KAIWEB_HOME / "dist"
STATICFILES_DIRS = []
WHITENOISE_AUTOREFRESH = True
# Removed at the end of the process, with the -wal and -shm files of SQLite.
_scratch = Path(tempfile.mkdtemp(prefix="kaiweb-tests-"))
atexit.register(shutil.rmtree, _scratch, ignore_errors=True)
# A file, as in an installation: threads with connections of their own would lock a shared in-memory database
# table by table, which does not happen with a file.
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": ":memory:",
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;",
        },
        "TEST": {"NAME": str(_scratch / "tests.sqlite3")},
    }
}
# The same tests on PostgreSQL: name a server whose user may create databases.
_url = env.text("KAIWEB_TEST_DATABASE_URL")
if _url:
    DATABASES = {"default": env.database(_url, sqlite_file=KAIWEB_HOME)}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
CELERY_BROKER_URL = "memory://"
CELERY_TASK_ALWAYS_EAGER = True
ALLOWED_HOSTS = ["testserver", "127.0.0.1", "localhost"]
