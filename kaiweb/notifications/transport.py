"""Send messages over HTTP: all at once, each within a few seconds, to public addresses only, no redirect followed."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from kaiweb.notifications.addresses import RefusedAddressError, refuse_private

TOTAL_S = 5.0
MAX_ERROR = 300


@dataclass(frozen=True, slots=True)
class Message:
    """One request."""

    url: str
    body: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a request: it is delivered if there is no error."""

    status: int | None = None
    error: str = ""


def post_all(messages: Sequence[Message], allowed: Sequence[str]) -> list[Outcome]:
    """Send all messages at the same time; return the results in their order, after five seconds at the latest.

    Parameters
    ----------
    allowed : private networks that may be reached
    """
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(_post_all(messages, allowed))
    finally:
        # Unlike `asyncio.run`, this does not wait for a name server that does not answer.
        loop.close()


async def _post_all(messages: Sequence[Message], allowed: Sequence[str]) -> list[Outcome]:
    connector = aiohttp.TCPConnector(
        resolver=_PublicResolver(allowed), force_close=True, use_dns_cache=False
    )
    timeout = aiohttp.ClientTimeout(total=TOTAL_S)
    # The environment's proxies and passwords are not for addresses that an admin typed.
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, trust_env=False, cookie_jar=aiohttp.DummyCookieJar()
    ) as session:
        return await asyncio.gather(*(_post(session, message, allowed) for message in messages))


async def _post(
    session: aiohttp.ClientSession, message: Message, allowed: Sequence[str]
) -> Outcome:
    try:
        # The resolver is not asked about addresses.
        refuse_private(urlsplit(message.url).hostname or "", allowed)
        async with session.post(
            message.url, data=message.body.encode(), headers=message.headers, allow_redirects=False
        ) as answer:
            if 200 <= answer.status < 300:
                return Outcome(answer.status)
            if 300 <= answer.status < 400:
                text = f"answered {answer.status}: redirects are not followed; set the new address"
                return Outcome(answer.status, text)
            return Outcome(answer.status, f"answered {answer.status}")
    except TimeoutError:
        return Outcome(error=f"no answer within {TOTAL_S:g} s")
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return Outcome(error=_text_of(error))


def _text_of(error: Exception) -> str:
    cause = getattr(error, "os_error", None)
    shown = cause if isinstance(cause, RefusedAddressError) else error
    return (str(shown) or type(shown).__name__)[:MAX_ERROR]


class _PublicResolver(AbstractResolver):
    """Resolves names to addresses that may be reached: the connection is made to the addresses that were judged."""

    def __init__(self, allowed: Sequence[str]) -> None:
        self._allowed = allowed
        self._resolver = aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: Any = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of a name; refuse it if one of them is private."""
        results = await self._resolver.resolve(host, port, family)
        for result in results:
            try:
                refuse_private(result["host"], self._allowed)
            except RefusedAddressError as error:
                raise RefusedAddressError(f"{host}: {error}") from error
        return results

    async def close(self) -> None:
        """Release the resolver."""
        await self._resolver.close()
