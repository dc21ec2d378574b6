"""The gateway of this process to the cluster, created from the settings at first use."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from django.conf import settings

from kube.client import connect
from kube.gateway import Gateway
from kube.link import Target

IN_CLUSTER = "in-cluster"
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@cache
def gateway() -> Gateway:
    """Return the gateway of this process; nothing is read or sent before its first request.

    `KAIWEB_KUBECONFIG=in-cluster` uses the service account of the pod we run in.
    """
    location: str = settings.KAIWEB_KUBECONFIG
    return connect(Target(kubeconfig=None if location == IN_CLUSTER else Path(location)))


def is_on_this_host() -> bool:
    """Return whether the API server listens on a loopback address, so that it can reach webhooks on one.

    A missing kubeconfig counts as yes: it is the one that the embedded cluster is about to write.
    """
    location: str = settings.KAIWEB_KUBECONFIG
    if location == IN_CLUSTER:
        return False
    try:
        kubeconfig = yaml.safe_load(Path(location).read_text())
    except FileNotFoundError:
        return True
    return _server_host(kubeconfig) in LOOPBACK


def _server_host(kubeconfig: dict[str, Any]) -> str:
    """Return the host of the current context's API server."""
    current = _named(kubeconfig.get("contexts"), kubeconfig.get("current-context"))
    cluster = current.get("context", {}).get("cluster")
    server = _named(kubeconfig.get("clusters"), cluster).get("cluster", {}).get("server", "")
    return urlsplit(server).hostname or ""


def _named(entries: list[dict[str, Any]] | None, name: object) -> dict[str, Any]:
    return next((entry for entry in entries or () if entry.get("name") == name), {})
