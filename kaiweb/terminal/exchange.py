"""Exchange a token of another system for an API token of kaiweb."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

from urllib3 import PoolManager, Timeout
from urllib3.exceptions import HTTPError

from kaiweb.terminal.errors import TerminalError

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def require_private(url: str, what: str) -> None:
    """Raise TerminalError unless the address keeps what is sent to it private."""
    address = urlsplit(url)
    if address.scheme != "https" and address.hostname not in LOOPBACK:
        raise TerminalError(f"KAIWEB_URL: expected https:// for {what}, got '{url}'")


def exchange(url: str, path: str, token: str, *, what: str, advice: str) -> dict[str, Any]:
    """Return the answer of kaiweb with an API token.

    Parameters
    ----------
    what : what is refused, and `advice` what to do then

    Raises
    ------
    TerminalError
    """
    try:
        with PoolManager(timeout=Timeout(connect=5.0, read=30.0)) as pool:
            answer = pool.request(
                "POST",
                f"{url}{path}",
                body=json.dumps({"token": token}),
                headers={"Content-Type": "application/json"},
                retries=False,
                redirect=False,
            )
    except HTTPError as error:
        raise TerminalError(f"no answer from {url}: {error}", "correct KAIWEB_URL") from error
    try:
        content = json.loads(answer.data)
    except ValueError:
        content = {}
    if answer.status == 201 and isinstance(content, dict) and "token" in content:
        return content
    detail = content.get("detail") if isinstance(content, dict) else None
    raise TerminalError(
        f"{url} refuses {what}: {detail or 'it is not set up there'} ({answer.status})", advice
    )
