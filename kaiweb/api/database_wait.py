"""Limit how long a request waits for a lock of the database before it is answered with 503.

Workers may wait long (20 s on SQLite). A request should fail early, because its client can try again, and because
a web process whose threads all wait answers nobody.
"""

from __future__ import annotations

import logging

from django.db import DatabaseError, connection

log = logging.getLogger(__name__)

WAIT_S = 3.0
SQLITE_DEFAULT_S = 5.0


def shorten() -> None:
    """Limit the waits of this thread's connection.

    Raises
    ------
    django.db.DatabaseError : the connection cannot be opened
    """
    connection.ensure_connection()
    _set(WAIT_S)


def restore() -> None:
    """Let the connection wait as long as configured, because other work uses it afterwards."""
    if connection.connection is None:
        return
    options = connection.settings_dict.get("OPTIONS", {})
    try:
        _set(float(options.get("timeout", SQLITE_DEFAULT_S)) if _is_sqlite() else 0.0)
    except DatabaseError as error:
        log.debug("the connection keeps its short waits: %s", error)


def costs_nothing() -> bool:
    """Return whether the limit is set in this process, without a round trip to a server."""
    return _is_sqlite()


def _is_sqlite() -> bool:
    return connection.vendor == "sqlite"


def _set(seconds: float) -> None:
    if _is_sqlite():
        # A setting of the library in this process, not a query.
        connection.connection.execute(f"PRAGMA busy_timeout = {int(1000 * seconds)}")
        return
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = {int(1000 * seconds)}")
