"""The process's one gateway to the cluster, made from the settings at first use."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from django.conf import settings

from kube.client import Target, connect
from kube.gateway import Gateway

IN_CLUSTER = "in-cluster"


@cache
def gateway() -> Gateway:
    """Return the gateway of this process; nothing is read or sent before its first request.

    `KAIWEB_KUBECONFIG=in-cluster` uses the service account of the pod we run in.
    """
    named: str = settings.KAIWEB_KUBECONFIG
    return connect(Target(kubeconfig=None if named == IN_CLUSTER else Path(named)))
