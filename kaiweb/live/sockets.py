"""How many live connections each user has open: web sockets and event streams together."""

from __future__ import annotations

from collections import Counter

#: Open connections of one user and of all users: each costs memory and the work for its frames.
MAX_SOCKETS_PER_USER, MAX_SOCKETS = 20, 1000

#: Open connections by user. No lock: only the event loop of the process changes it.
_sockets_of: Counter[str] = Counter()


def count(username: str) -> bool:
    """Count a connection; return False if the user, or all users together, have too many."""
    if _sockets_of[username] >= MAX_SOCKETS_PER_USER or _sockets_of.total() >= MAX_SOCKETS:
        return False
    _sockets_of[username] += 1
    return True


def uncount(username: str) -> None:
    """Count a connection no more."""
    _sockets_of[username] -= 1
    if not _sockets_of[username]:
        del _sockets_of[username]
