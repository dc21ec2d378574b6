"""Find the address and the token of the REST API: from the environment, the file in the state folder, or the kubeconfig.

`kaiweb up` writes the file. It is readable by its owner only, like everything in that folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from kaiweb.places import default_home
from kaiweb.terminal import pipeline
from kaiweb.terminal.errors import TerminalError
from kaiweb.terminal.kubeconfig import find_login, log_in

FILE = "terminal.json"
CREATE_TOKEN = "create a token in the dashboard (Account) or with POST /api/v1/tokens, then set"


@dataclass(frozen=True, slots=True)
class Access:
    """Where the API is, and the bearer token for it."""

    url: str
    token: str


def read_access(env: Mapping[str, str] = os.environ) -> Access:
    """Return the access from KAIWEB_URL and KAIWEB_TOKEN; what is unset comes from the file.

    A token of the file is sent only to the address in the same file. Instead of a token there may be the ID token of a
    pipeline, in KAIWEB_ID_TOKEN or from GitHub Actions. Without anything of that the kubeconfig logs in.

    Raises
    ------
    TerminalError : nothing says where the API is, or there is no token for it
    """
    url, token = env.get("KAIWEB_URL", "").rstrip("/"), env.get("KAIWEB_TOKEN", "")
    if url and urlsplit(url).scheme not in ("http", "https"):
        raise TerminalError(f"KAIWEB_URL: expected http:// or https://, got '{url}'")
    if url and token:
        return Access(url, token)
    if url and env.get("KAIWEB_ID_TOKEN"):
        return Access(url, pipeline.log_in(url, env["KAIWEB_ID_TOKEN"]))
    file = Path(env.get("KAIWEB_HOME") or default_home()) / FILE
    stored = _read_file(file)
    if stored is None and not url:
        raise TerminalError(
            f"no address of kaiweb: KAIWEB_URL is not set and {file} does not exist",
            "start kaiweb with `make run` or `kaiweb up`, or set KAIWEB_URL and KAIWEB_TOKEN",
        )
    if stored is not None and url in ("", stored.url):
        return Access(stored.url, token or stored.token)
    if token and stored is not None:
        return Access(stored.url, token)
    id_token = pipeline.github_token(url, env)
    if id_token:
        return Access(url, pipeline.log_in(url, id_token))
    login = find_login(url, env)
    if login is not None:
        return Access(url, log_in(login, env))
    raise TerminalError(f"no token for {url}", f"{CREATE_TOKEN} KAIWEB_TOKEN")


def _read_file(file: Path) -> Access | None:
    try:
        content = json.loads(file.read_text())
        return Access(content["url"].rstrip("/"), content["token"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TerminalError(
            f"{file}: expected an object with url and token ({error})",
            "the next start of `kaiweb up` writes it anew; or set KAIWEB_URL and KAIWEB_TOKEN",
        ) from error
