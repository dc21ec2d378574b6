"""The certificates of the API server, and the kubeconfig that trusts them.

kubectl sends no token over plain HTTP, so the server speaks TLS even on the loopback address. The
authority is created once per home directory; the server certificate is renewed 30 days before it expires.
"""

from __future__ import annotations

import datetime as dt
import secrets
from base64 import b64encode
from pathlib import Path

import yaml

from kube.certificates import is_valid, issue_authority, issue_server, read_issued, write_issued
from kube.process.files import private_folder, write_private

_LIFETIME = dt.timedelta(days=3650)
_RENEW_BEFORE = dt.timedelta(days=30)
_HOSTS = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "127.0.0.1",
    "::1",
    "10.96.0.1",
)


class Pki:
    """The files below `<home>/pki`: ca.crt, ca.key, server.crt, server.key."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "pki"
        self.ca_file = self._folder / "ca.crt"
        self.cert_file = self._folder / "server.crt"
        self.key_file = self._folder / "server.key"

    def ensure(self, now: dt.datetime) -> None:
        """Create what is missing, and renew the server certificate when it expires soon."""
        private_folder(self._folder)
        ca_key_file = self._folder / "ca.key"
        authority = read_issued(self.ca_file, ca_key_file)
        server = read_issued(self.cert_file, self.key_file)
        if authority is None:
            authority = issue_authority("kaiweb-sandbox-ca", now, _LIFETIME)
            write_issued(authority, self.ca_file, ca_key_file)
            server = None
        if server is None or not is_valid(server.certificate, now, _RENEW_BEFORE):
            server = issue_server(authority, "kaiweb-sandbox", _HOSTS, now, _LIFETIME)
            write_issued(server, self.cert_file, self.key_file)


def write_kubeconfig(path: Path, *, server: str, ca_file: Path, token: str, user: str) -> None:
    """Write a kubeconfig that needs no other file and is readable by its owner only."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "kaiweb-sandbox",
                "cluster": {
                    "server": server,
                    "certificate-authority-data": b64encode(ca_file.read_bytes()).decode(),
                },
            }
        ],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [
            {"name": "kaiweb-sandbox", "context": {"cluster": "kaiweb-sandbox", "user": user}}
        ],
        "current-context": "kaiweb-sandbox",
    }
    write_private(path, yaml.safe_dump(config, sort_keys=False))


def new_token() -> str:
    return secrets.token_urlsafe(24)
