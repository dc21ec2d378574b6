"""Log in with the kubeconfig: let the cluster make a token that only this kaiweb accepts, and exchange it for one of kaiweb.

The kubeconfig's own credentials stay here. A ServiceAccount's token is made for the audience KAIWEB_URL, so that no other
program, and not even the API server, takes it. `KAIWEB_KUBECONFIG_TOKEN=1` sends the kubeconfig's own bearer token
instead (of an exec plugin, for example), which kaiweb accepts only if its admin has named the audience of the cluster.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from urllib3 import PoolManager, Timeout
from urllib3.exceptions import HTTPError

from kaiweb.terminal.errors import TerminalError
from kube.errors import ForbiddenError, KubeError, NotFoundError
from kube.process.files import private_folder, write_private

LOOPBACK = ("127.0.0.1", "::1", "localhost")
TOKEN_S = 600
#: A stored token that ends sooner is replaced.
MARGIN = timedelta(seconds=30)
DEFAULT_ACCOUNT = "kaiweb"
OTHERWISE = "or set KAIWEB_TOKEN"


@dataclass(frozen=True, slots=True)
class Login:
    """What decides about a log-in."""

    url: str
    kubeconfig: str
    account: str
    sends_own_token: bool

    @property
    def key(self) -> str:
        """Return a value that changes with the address, the account, and any edit of the kubeconfig."""
        edited_at = [Path(file).stat().st_mtime_ns for file in _files(self.kubeconfig)]
        parts = (self.url, self.kubeconfig, self.account, self.sends_own_token, edited_at)
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


def find_login(url: str, env: Mapping[str, str]) -> Login | None:
    """Return how to log in at the address; None without a kubeconfig."""
    home = env.get("HOME", "")
    kubeconfig = env.get("KUBECONFIG") or (f"{home}/.kube/config" if home else "")
    if not _files(kubeconfig):
        return None
    return Login(
        url,
        kubeconfig,
        env.get("KAIWEB_SERVICE_ACCOUNT", ""),
        env.get("KAIWEB_KUBECONFIG_TOKEN", "0") == "1",
    )


def log_in(login: Login, env: Mapping[str, str] = os.environ) -> str:
    """Return an API token: the stored one, or that of a new log-in.

    Raises
    ------
    TerminalError : the address is not private, or the cluster or kaiweb refuses
    """
    address = urlsplit(login.url)
    if address.scheme != "https" and address.hostname not in LOOPBACK:
        raise TerminalError(
            f"KAIWEB_URL: expected https:// for a log-in with the kubeconfig, got '{login.url}'"
        )
    folder = Path(env.get("XDG_CACHE_HOME") or Path(env.get("HOME", "."), ".cache")) / "kaiweb"
    file = folder / f"login-{login.key}.json"
    stored = _stored(file)
    if stored:
        return stored
    body = _exchange(login, _cluster_token(login))
    private_folder(folder)
    for old in folder.glob("login-*.json"):
        if not _stored(old):
            old.unlink(missing_ok=True)
    write_private(file, json.dumps({"token": body["token"], "expiresAt": body["expiresAt"]}))
    token: str = body["token"]
    return token


def _files(kubeconfig: str) -> list[str]:
    return [file for file in kubeconfig.split(os.pathsep) if file and Path(file).is_file()]


def _stored(file: Path) -> str:
    """Return the token of a file if it lives on for a moment."""
    try:
        content = json.loads(file.read_text())
        ends_at = datetime.fromisoformat(content["expiresAt"])
        return str(content["token"]) if ends_at - datetime.now(UTC) > MARGIN else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _cluster_token(login: Login) -> str:
    from kube.client import connect
    from kube.link import Target, context_namespace

    target = Target(kubeconfig=Path(login.kubeconfig), pool_size=1)
    namespace, slash, account = login.account.rpartition("/")
    gateway = connect(target)
    try:
        if login.sends_own_token:
            return _own_token(gateway.bearer_token())
        namespace = namespace if slash else context_namespace(target)
        account = account or DEFAULT_ACCOUNT
        return gateway.create_token(namespace, account, audience=login.url, lifetime_s=TOKEN_S)
    except NotFoundError as error:
        raise TerminalError(
            f"the cluster has no ServiceAccount '{namespace}/{account}'",
            f"create it, name another one in KAIWEB_SERVICE_ACCOUNT, {OTHERWISE}",
        ) from error
    except ForbiddenError as error:
        raise TerminalError(
            f"you may not make tokens for ServiceAccount '{namespace}/{account}': {error}",
            f"ask for the right to create serviceaccounts/token, {OTHERWISE}",
        ) from error
    except KubeError as error:
        raise TerminalError(
            f"the cluster of the kubeconfig made no token: {error}",
            f"check it with `kubectl auth whoami`, {OTHERWISE}",
        ) from error
    finally:
        gateway.close()


def _own_token(token: str) -> str:
    if not token:
        raise TerminalError(
            "the kubeconfig has no bearer token, but KAIWEB_KUBECONFIG_TOKEN=1 wants to send it",
            f"unset it and use a ServiceAccount, {OTHERWISE}",
        )
    return token


def _exchange(login: Login, token: str) -> dict[str, Any]:
    try:
        with PoolManager(timeout=Timeout(connect=5.0, read=30.0)) as pool:
            answer = pool.request(
                "POST",
                f"{login.url}/login/kubernetes",
                body=json.dumps({"token": token}),
                headers={"Content-Type": "application/json"},
                retries=False,
                redirect=False,
            )
    except HTTPError as error:
        raise TerminalError(f"no answer from {login.url}: {error}", "correct KAIWEB_URL") from error
    try:
        content = json.loads(answer.data)
    except ValueError:
        content = {}
    if answer.status == 201 and isinstance(content, dict) and "token" in content:
        return content
    detail = content.get("detail") if isinstance(content, dict) else None
    raise TerminalError(
        f"{login.url} refuses the log-in with the kubeconfig: {detail or 'it is not set up there'} ({answer.status})",
        f"its admin sets KAIWEB_KUBERNETES_AUDIENCES and KAIWEB_KUBERNETES_ROLES; {OTHERWISE}",
    )
