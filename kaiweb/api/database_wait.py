"""Limit how long a request waits for a lock of the database before it is answered with 503.

Workers may wait long (20 s on SQLite). A request should fail early, because its client can try again, and because
a web process whose threads all wait answers nobody.
"""

from __future__ import annotations

import logging

from django.db import DatabaseError, connection

log = logging.getLogger(__name__)

WAIT_S = 3.0
SQLITE_DEFAULT_WAIT_S = 5.0


def shorten_waits() -> None:
    """Limit the lock waits of this thread's connection to `WAIT_S`.

    Raises
    ------
    django.db.DatabaseError : the connection cannot be opened
    """
    connection.ensure_connection()
    _set_lock_timeout(WAIT_S)


def restore_waits() -> None:
    """Let this thread's connection wait as long as before, because other work uses it afterwards."""
    if connection.connection is None:
        return
    # PostgreSQL waits without limit by default, which is written as 0.
    options = connection.settings_dict.get("OPTIONS", {})
    try:
        _set_lock_timeout(
            float(options.get("timeout", SQLITE_DEFAULT_WAIT_S)) if _is_sqlite() else 0.0
        )
    except DatabaseError as error:
        log.debug("the connection keeps its short waits: %s", error)


def needs_no_query() -> bool:
    """Return whether `shorten_waits` sets the limit in this process, without a query to a server."""
    return _is_sqlite()


def _is_sqlite() -> bool:
    return connection.vendor == "sqlite"


def _set_lock_timeout(seconds: float) -> None:
    if _is_sqlite():
        # SQLite runs in this process, so this PRAGMA costs no round trip.
        connection.connection.execute(f"PRAGMA busy_timeout = {int(1000 * seconds)}")
        return
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = {int(1000 * seconds)}")
