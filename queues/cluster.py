"""The process's one gateway to the cluster, made from the settings at first use."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from django.conf import settings

from kube.client import Target, connect
from kube.gateway import Gateway

IN_CLUSTER = "in-cluster"
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@cache
def gateway() -> Gateway:
    """Return the gateway of this process; nothing is read or sent before its first request.

    `KAIWEB_KUBECONFIG=in-cluster` uses the service account of the pod we run in.
    """
    named: str = settings.KAIWEB_KUBECONFIG
    return connect(Target(kubeconfig=None if named == IN_CLUSTER else Path(named)))


def is_on_this_host() -> bool:
    """Tell whether the API server listens on a loopback address, so that it can call back on one.

    A kubeconfig that is not there yet is the one our own cluster is about to write.
    """
    named: str = settings.KAIWEB_KUBECONFIG
    if named == IN_CLUSTER:
        return False
    try:
        found = yaml.safe_load(Path(named).read_text())
    except FileNotFoundError:
        return True
    return _server_host(found) in LOOPBACK


def _server_host(kubeconfig: dict[str, Any]) -> str:
    """Return the host of the current context's API server."""
    current = _named(kubeconfig.get("contexts"), kubeconfig.get("current-context"))
    wanted = current.get("context", {}).get("cluster")
    server = _named(kubeconfig.get("clusters"), wanted).get("cluster", {}).get("server", "")
    return urlsplit(server).hostname or ""


def _named(items: list[dict[str, Any]] | None, name: object) -> dict[str, Any]:
    return next((item for item in items or () if item.get("name") == name), {})
