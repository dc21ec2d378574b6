"""Read the environment: every variable kaiweb knows is parsed here, and a bad value names itself.

Nothing else in the project reads `os.environ` for configuration. Each reader takes the mapping as an
argument, so tests hand in a dict.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

ENVIRON: Mapping[str, str] = os.environ
TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off", ""})


class EnvError(ValueError):
    """A variable holds something we cannot use."""


def text(name: str, default: str = "", *, env: Mapping[str, str] = ENVIRON) -> str:
    """Return the variable, or the default when it is unset or empty."""
    return env.get(name) or default


def flag(name: str, default: bool, *, env: Mapping[str, str] = ENVIRON) -> bool:
    """Read a yes/no variable."""
    raw = env.get(name)
    if raw is None:
        return default
    word = raw.strip().lower()
    if word in TRUE:
        return True
    if word in FALSE:
        return False
    raise EnvError(f"{name}: expected one of 1, 0, true, false, got '{raw}'")


def number(name: str, default: int, *, env: Mapping[str, str] = ENVIRON) -> int:
    """Read a whole number >= 0."""
    raw = env.get(name)
    if not raw:
        return default
    if not raw.strip().isdecimal():
        raise EnvError(f"{name}: expected a whole number >= 0, got '{raw}'")
    return int(raw)


def words(name: str, default: str = "", *, env: Mapping[str, str] = ENVIRON) -> list[str]:
    """Read a comma separated list; empty parts fall out."""
    return [part.strip() for part in text(name, default, env=env).split(",") if part.strip()]


def home(*, checkout: Path, env: Mapping[str, str] = ENVIRON) -> Path:
    """Return the state folder `KAIWEB_HOME`, by default `.kaiweb` in the checkout."""
    return Path(text("KAIWEB_HOME", str(checkout / ".kaiweb"), env=env)).resolve()


def shards(*, env: Mapping[str, str] = ENVIRON) -> list[str]:
    """Return the names of the shards (node pools) this installation schedules."""
    return words("KAIWEB_SHARDS", "default", env=env)


def database(url: str, *, sqlite_file: Path) -> dict[str, Any]:
    """Turn `DATABASE_URL` into a Django database entry; an empty URL means SQLite in the state folder.

    Raises
    ------
    EnvError : a scheme other than postgres, postgresql or sqlite, or no database name
    """
    if not url:
        return sqlite(sqlite_file)
    parts = urlsplit(url)
    name = unquote(parts.path.lstrip("/"))
    if parts.scheme == "sqlite":
        return sqlite(Path("/" + name) if parts.path.startswith("//") else Path(name))
    if parts.scheme not in ("postgres", "postgresql"):
        raise EnvError(
            f"DATABASE_URL: expected postgresql:// or sqlite://, got '{parts.scheme}://'"
        )
    if not name:
        raise EnvError("DATABASE_URL: expected a database name after the host, got none")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or ""),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": dict(parse_qsl(parts.query)),
    }


def sqlite(file: Path) -> dict[str, Any]:
    """Describe a SQLite database that several processes write.

    IMMEDIATE takes the write lock at the start: with the default, half of the small read-then-write
    transactions fail with "database is locked" while another process writes.
    """
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(file),
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }
