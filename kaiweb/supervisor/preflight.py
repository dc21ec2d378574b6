"""Checks before the start, so that a wrong value is reported in one line instead of by a process that dies.

Each check raises `EnvError` for a wrong environment variable and `StartError` for a file or port.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import redis
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection
from redis.backoff import NoBackoff
from redis.retry import Retry

from kaiweb.settings.env import EnvError, without_password
from kaiweb.supervisor import ports
from kaiweb.supervisor.errors import StartError
from queues.broker import connect_broker

CONNECT_S = 5.0
_OWN_ROWS = (
    "The mirror fills in again what comes from the cluster, but users, tokens, edits and settings are"
    " only in this file"
)
_CLUSTER_OBJECTS = "It holds every object of the embedded cluster, which starts empty without it"


def check_redis(url: str) -> None:
    """Ask the server once, without the retries that would hide a wrong address for a minute."""
    try:
        with connect_broker(
            url,
            socket_timeout=CONNECT_S,
            socket_connect_timeout=CONNECT_S,
            retry=Retry(NoBackoff(), 0),
        ) as client:
            client.ping()
    except (redis.RedisError, ValueError) as error:
        raise EnvError(
            "REDIS_URL: expected a Redis or Valkey that answers,"
            f" got '{without_password(url)}' ({_line(error)})"
        ) from error


def check_database(entry: dict[str, Any], url: str) -> None:
    """Open the database that DATABASE_URL names, or the SQLite file in the state folder."""
    if entry["ENGINE"] == "django.db.backends.sqlite3":
        file = Path(entry["NAME"])
        if not file.parent.is_dir():
            raise EnvError(
                f"DATABASE_URL: expected a file in a folder that exists, got {without_password(url)}"
            )
        check_sqlite(file, _OWN_ROWS)
        return
    try:
        connection.ensure_connection()
    except (DatabaseError, ImproperlyConfigured) as error:
        raise EnvError(
            "DATABASE_URL: expected a database that takes connections,"
            f" got '{without_password(url)}' ({_line(error)})"
        ) from error
    finally:
        connection.close()


def check_cluster_file(home: Path) -> None:
    """Check the file in which the embedded cluster keeps its objects."""
    check_sqlite(home / "objects.sqlite3", _CLUSTER_OBJECTS)


def check_sqlite(file: Path, content: str) -> None:
    """Refuse a file that SQLite cannot read; `content` tells what would be lost with it."""
    if not file.exists():
        return
    try:
        database = sqlite3.connect(file, timeout=CONNECT_S)
        try:
            (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
        finally:
            database.close()
    except sqlite3.DatabaseError as error:
        verdict = str(error)
    if verdict != "ok":
        raise StartError(
            f"{file}: expected a SQLite database, got a damaged file ({_line(verdict)}). {content}:"
            " put a backup in its place, or move it away together with its -wal and -shm files"
            " and start again"
        )


def check_web_port(port: int) -> None:
    """Refuse a port that another program listens on."""
    if not ports.is_free(port):
        raise StartError(
            f"port {port} is taken; choose another with KAIWEB_PORT, or stop what uses it"
        )


def _line(error: object) -> str:
    """Return the first line of a message: drivers append hints over several lines."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
