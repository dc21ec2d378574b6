"""Build the admission server from settings and environment; the web process starts it."""

from __future__ import annotations

import os
from pathlib import Path

from django.conf import settings

from kube.keys import SYSTEM_NAMESPACE
from queues import cluster
from queues.admission.install.registration import (
    Registration,
    ServiceTarget,
    UrlTarget,
)
from queues.admission.objects.watched_tree import WatchedTree
from queues.admission.routes import Routes
from queues.admission.server.server import AdmissionServer
from queues.admission.server.switches import (
    configurations_off,
    flag,
    settings_from_environment,
)
from queues.admission.server.withdrawal import AdmissionWithdrawal


def admission_server() -> AdmissionServer | AdmissionWithdrawal:
    """Return the server, not started, or with `KAIWEB_ADMISSION=0` what removes the webhooks of an earlier one.

    In a cluster (`KAIWEB_ADMISSION_SERVICE=<namespace>/<name>`) it listens on all addresses and is registered
    by its Service; elsewhere on loopback and by its URL.
    """
    gateway = cluster.gateway()
    if not flag("KAIWEB_ADMISSION", default=True):
        return AdmissionWithdrawal(gateway)
    pods, compares_quotas = settings_from_environment()
    namespace = SYSTEM_NAMESPACE
    service = os.environ.get("KAIWEB_ADMISSION_SERVICE", "")
    target: ServiceTarget | UrlTarget = UrlTarget(base="")
    names = ["127.0.0.1", "localhost"]
    if service:
        namespace, _, name = service.partition("/")
        target = ServiceTarget(namespace=namespace, name=name or "admission")
        names = [f"{target.name}.{namespace}.svc", f"{target.name}.{namespace}.svc.cluster.local"]
    tree = WatchedTree(gateway)
    return AdmissionServer(
        gateway=gateway,
        routes=Routes(
            tree=tree,
            with_ancestors=tree.with_ancestors,
            remember=tree.assume,
            settings=pods,
            compares_quotas=compares_quotas,
        ),
        follow=tree.start,
        folder=Path(settings.KAIWEB_HOME) / "admission",
        registration=Registration(
            target=target,
            bundle=b"",
            namespace=namespace,
            scheduler_name=pods.scheduler_name,
            asks_about_every_pod=pods.block_visible_devices,
            is_reachable=bool(service) or cluster.is_on_this_host(),
            off=configurations_off(),
        ),
        host="0.0.0.0" if service else "127.0.0.1",
        port=int(os.environ.get("KAIWEB_ADMISSION_PORT", "9443" if service else "0")),
        names=names,
        secret_namespace=namespace if service else "",
    )
