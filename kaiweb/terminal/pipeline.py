"""Log in as a pipeline: exchange the ID token of the CI system for an API token that ends soon."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import quote

import urllib3

from kaiweb.terminal.errors import TerminalError
from kaiweb.terminal.exchange import exchange, require_private

WHAT = "the ID token of the pipeline"
ADVICE = "its admin sets KAIWEB_CI_RULES; or set KAIWEB_TOKEN"


def log_in(url: str, id_token: str) -> str:
    """Return an API token for an ID token.

    Raises
    ------
    TerminalError : the address is not private, or kaiweb refuses
    """
    require_private(url, "an ID token")
    path = "/api/v1/tokens:exchange"
    token: str = exchange(url, path, id_token, what=WHAT, advice=ADVICE)["token"]
    return token


def github_token(url: str, env: Mapping[str, str]) -> str:
    """Return an ID token of GitHub Actions for this address; empty outside of a job that may have one.

    Raises
    ------
    TerminalError : GitHub refuses
    """
    address = env.get("ACTIONS_ID_TOKEN_REQUEST_URL", "")
    secret = env.get("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "")
    if not address or not secret:
        return ""
    try:
        answer = urllib3.request(
            "GET",
            f"{address}&audience={quote(url, safe='')}",
            headers={"Authorization": f"Bearer {secret}"},
            timeout=30.0,
            redirect=False,
        )
        return str(json.loads(answer.data)["value"])
    except (urllib3.exceptions.HTTPError, ValueError, KeyError, TypeError) as error:
        raise TerminalError(
            f"GitHub Actions gave no ID token: {error}", "set `permissions: {id-token: write}`"
        ) from error
