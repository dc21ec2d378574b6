"""Where the broker is: one Redis or Valkey, or a group whose Sentinels name the primary.

    redis://[:PASSWORD@]HOST:PORT/DB          also rediss:// for TLS
    sentinel://[:PASSWORD@]HOST:PORT,HOST:PORT/DB?master=NAME[&sentinel_password=PASSWORD]

The hosts of the second form are the Sentinels. After a failover each connection is made anew to the server that they
name then; a lock that the old primary did not pass on in time is covered by the fence numbers (ADR 15).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

SENTINEL = "sentinel"
SENTINEL_PORT = 26379
#: How long a Sentinel may take to answer before the next one is asked.
SENTINEL_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SentinelGroup:
    """The Sentinels of one primary."""

    sentinels: tuple[tuple[str, int], ...]
    master: str
    database: int = 0
    password: str = ""
    sentinel_password: str = ""

    @property
    def sentinel_options(self) -> dict[str, Any]:
        """Return the options of connections to the Sentinels."""
        options: dict[str, Any] = {"socket_timeout": SENTINEL_TIMEOUT_S}
        return options | ({"password": self.sentinel_password} if self.sentinel_password else {})

    def celery_url(self) -> str:
        """Return the broker URL in Celery's form, which names each Sentinel."""
        password = f":{quote(self.password, safe='')}@" if self.password else ""
        return ";".join(
            f"sentinel://{password}{host}:{port}/{self.database}" for host, port in self.sentinels
        )

    def channels_host(self) -> dict[str, Any]:
        """Return the entry of `hosts` of a channel layer."""
        host: dict[str, Any] = {
            "sentinels": list(self.sentinels),
            "master_name": self.master,
            "db": self.database,
            "sentinel_kwargs": self.sentinel_options,
        }
        return host | ({"password": self.password} if self.password else {})


def sentinel_group(url: str) -> SentinelGroup | None:
    """Return the group that a URL names; None for the URL of one server.

    Raises
    ------
    ValueError : no host, no name of the primary, or a port or database that is no number
    """
    parts = urlsplit(url)
    if parts.scheme != SENTINEL:
        return None
    user, _, hosts = parts.netloc.rpartition("@")
    query = parse_qs(parts.query, strict_parsing=bool(parts.query))
    unknown = query.keys() - {"master", "sentinel_password"}
    if unknown:
        raise ValueError(f"expected only master and sentinel_password, got {sorted(unknown)[0]}")
    master = query.get("master", [""])[0]
    if not master:
        raise ValueError("expected ?master=NAME, the name of the primary")
    return SentinelGroup(
        sentinels=tuple(_address(text) for text in hosts.split(",")),
        master=master,
        database=_number(parts.path.strip("/") or "0", "database"),
        password=unquote(user.partition(":")[2]),
        sentinel_password=query.get("sentinel_password", [""])[0],
    )


def _address(text: str) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    if not parts.hostname:
        raise ValueError(f"expected HOST:PORT,HOST:PORT, got '{text}'")
    return parts.hostname, parts.port or SENTINEL_PORT


def _number(text: str, field_name: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"expected a number as {field_name}, got '{text}'")
    return int(text)
