"""Read the environment variables of the settings and the supervisor; the error for a bad value names the variable.

Each reader takes the mapping as an argument, so that tests can pass a dict. Packages below kaiweb read the few
variables of their own themselves. docs/operations/environment.md lists all of them.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from kaiweb.places import default_home
from queues.broker_address import SENTINEL, sentinel_group

ENVIRON: Mapping[str, str] = os.environ
TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off", ""})
MAX_PORT = 65535
LOOPBACK = ("127.0.0.1", "localhost", "::1")
REDIS_SCHEMES = ("redis", "rediss")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class EnvError(ValueError):
    """The value of a variable cannot be used."""


def text(name: str, default: str = "", *, env: Mapping[str, str] = ENVIRON) -> str:
    """Return the variable, or the default when it is unset or empty."""
    return env.get(name) or default


def json_list(name: str, *, env: Mapping[str, str] = ENVIRON) -> list[Any]:
    """Return the list that a variable holds as JSON; an empty one when it is unset or empty."""
    raw = text(name, "[]", env=env)
    try:
        entries = json.loads(raw)
    except ValueError as error:
        raise EnvError(f"{name}: expected JSON, got '{raw[:80]}'") from error
    if not isinstance(entries, list):
        raise EnvError(f"{name}: expected a list, got '{raw[:80]}'")
    return entries


def is_private_address(url: str) -> bool:
    """Return whether what is sent to an address stays private: it has https, or does not leave this machine."""
    parts = urlsplit(url)
    is_near = parts.scheme == "http" and parts.hostname in LOOPBACK
    return bool(parts.hostname) and (parts.scheme == "https" or is_near)


def http_url(name: str, *, env: Mapping[str, str] = ENVIRON) -> str:
    """Return an address with http:// or https:// and a host; "" when the variable is unset or empty."""
    url = text(name, env=env)
    if not url:
        return ""
    parts = _split(name, url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise EnvError(
            f"{name}: expected http:// or https:// with a host and no user name, got '{without_password(url)}'"
        )
    return url


def flag(name: str, default: bool, *, env: Mapping[str, str] = ENVIRON) -> bool:
    """Return whether an environment variable is true; `default` if it is not set."""
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
    """Return a whole number >= 0."""
    raw = env.get(name)
    if not raw:
        return default
    if not raw.strip().isdecimal():
        raise EnvError(f"{name}: expected a whole number >= 0, got '{raw}'")
    return int(raw)


def port(
    name: str, default: int, *, may_be_off: bool = False, env: Mapping[str, str] = ENVIRON
) -> int:
    """Return a TCP port; 0 is accepted only where it switches the port off."""
    raw = env.get(name)
    if not raw:
        return default
    value = int(raw) if raw.isdecimal() and len(raw) <= 5 else -1
    if value > MAX_PORT or value < (0 if may_be_off else 1):
        off = " (0: none)" if may_be_off else ""
        raise EnvError(f"{name}: expected a port from 1 to {MAX_PORT}{off}, got '{raw}'")
    return value


def choice(
    name: str, default: str, choices: Sequence[str], *, env: Mapping[str, str] = ENVIRON
) -> str:
    """Return one of several words, which may be given in any case."""
    raw = env.get(name)
    if not raw:
        return default
    word = raw.strip().upper()
    if word not in choices:
        raise EnvError(f"{name}: expected one of {', '.join(choices)}, got '{raw}'")
    return word


def redis_url(*, env: Mapping[str, str] = ENVIRON) -> str:
    """Return `REDIS_URL`, by default a Redis on this machine; only the syntax is checked (`queues.broker_address`)."""
    url = text("REDIS_URL", "redis://127.0.0.1:6379/0", env=env)
    try:
        if sentinel_group(url) is not None:
            return url
    except ValueError as error:
        raise EnvError(f"REDIS_URL: {error} in '{without_password(url)}'") from error
    parts = _split("REDIS_URL", url)
    if parts.scheme not in REDIS_SCHEMES:
        schemes = ", ".join(f"{scheme}://" for scheme in (*REDIS_SCHEMES, SENTINEL))
        raise EnvError(f"REDIS_URL: expected one of {schemes}, got '{without_password(url)}'")
    return url


def words(name: str, default: str = "", *, env: Mapping[str, str] = ENVIRON) -> list[str]:
    """Return the parts of a comma separated list, without empty ones."""
    return [part.strip() for part in text(name, default, env=env).split(",") if part.strip()]


def networks(name: str, *, env: Mapping[str, str] = ENVIRON) -> list[str]:
    """Return networks such as `10.0.0.0/8` from a comma separated list; a lone address is a network of one."""
    parts = words(name, env=env)
    for part in parts:
        try:
            ip_network(part)
        except ValueError as error:
            raise EnvError(
                f"{name}: expected networks separated by commas, got '{part}'"
            ) from error
    return parts


def prices(name: str, *, env: Mapping[str, str] = ENVIRON) -> dict[str, float]:
    """Return the price of each GPU model from `MODEL=PRICE,…`; `*` stands for all other models."""
    table: dict[str, float] = {}
    for part in words(name, env=env):
        model, equals, raw = part.rpartition("=")
        try:
            price = float(raw) if equals and model else -1.0
        except ValueError:
            price = -1.0
        if not (math.isfinite(price) and price >= 0):
            raise EnvError(f"{name}: expected MODEL=PRICE separated by commas, got '{part}'")
        table[model.strip()] = price
    return table


def home(*, env: Mapping[str, str] = ENVIRON) -> Path:
    """Return the state folder `KAIWEB_HOME`, by default that of `kaiweb.places`."""
    return Path(text("KAIWEB_HOME", str(default_home()), env=env)).resolve()


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
    parts = _split("DATABASE_URL", url)
    name = unquote(parts.path.lstrip("/"))
    if parts.scheme == "sqlite":
        return sqlite(Path("/" + name) if parts.path.startswith("//") else Path(name))
    if parts.scheme not in ("postgres", "postgresql"):
        raise EnvError(
            f"DATABASE_URL: expected postgresql:// or sqlite://, got '{without_password(url)}'"
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
        "OPTIONS": {"connect_timeout": "10", **dict(parse_qsl(parts.query))},
    }


def without_password(url: str) -> str:
    """Return the URL for print: passwords in it become ***."""
    url = re.sub(r"(sentinel_password=)[^&]*", r"\1***", url)
    head, separator, tail = url.rpartition("@")
    scheme, slashes, user = head.partition("://")
    return f"{scheme}{slashes}{user.partition(':')[0]}:***@{tail}" if separator else url


@contextlib.contextmanager
def writable_home(home: Path) -> Iterator[None]:
    """Report a write below KAIWEB_HOME that fails as a wrong value of the variable.

    Raises
    ------
    EnvError : the block could not write
    """
    try:
        yield
    except OSError as error:
        place = "" if error.filename in (None, str(home), home) else f" at {error.filename}"
        raise EnvError(
            f"KAIWEB_HOME: expected a folder of this user that can be written, got {home}"
            f" ({error.strerror or error}{place})"
        ) from error


def _split(name: str, url: str) -> SplitResult:
    """Split a URL. A port that is no number is an error here already, not at the first connection."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise EnvError(f"{name}: expected a URL, got '{without_password(url)}': {error}") from error
    return parts


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
