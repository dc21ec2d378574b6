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

from kaiweb.terminal.errors import TerminalError
from kaiweb.terminal.exchange import exchange, require_private
from kube.errors import ForbiddenError, KubeError, NotFoundError
from kube.process.files import private_folder, write_private

TOKEN_S = 600
#: A stored token that ends sooner is replaced.
MARGIN = timedelta(seconds=30)
DEFAULT_ACCOUNT = "kaiweb"
OTHERWISE = "or set KAIWEB_TOKEN"
WHAT = "a log-in with the kubeconfig"
ADVICE = f"its admin sets KAIWEB_KUBERNETES_AUDIENCES and KAIWEB_KUBERNETES_ROLES; {OTHERWISE}"


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
    require_private(login.url, WHAT)
    folder = Path(env.get("XDG_CACHE_HOME") or Path(env.get("HOME", "."), ".cache")) / "kaiweb"
    file = folder / f"login-{login.key}.json"
    stored = _stored(file)
    if stored:
        return stored
    token = _cluster_token(login)
    body = exchange(login.url, "/login/kubernetes", token, what=f"the {WHAT[2:]}", advice=ADVICE)
    private_folder(folder)
    for old in folder.glob("login-*.json"):
        if not _stored(old):
            old.unlink(missing_ok=True)
    write_private(file, json.dumps({"token": body["token"], "expiresAt": body["expiresAt"]}))
    return str(body["token"])


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
