"""Empty the mirror when it holds the rows of another cluster.

resourceVersions are ordered only within one cluster. If the database outlives its cluster (a fresh sandbox, a
restored etcd under a new name, another kubeconfig), old rows could have higher versions than all new objects and
would never be replaced. The uid of the namespace `kube-system` identifies the cluster.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime

from django.db import transaction

from kube.gateway import Gateway
from kube.objects.meta import KubeObject
from kube.resources import NAMESPACES
from queues import live
from queues.mirror.writer import MirroredKind
from queues.models import MirrorState

log = logging.getLogger(__name__)

ANCHOR = "kube-system"
RECORD = "cluster"


def start_with_cluster(cluster: Gateway, kinds: Iterable[MirroredKind], now: datetime) -> bool:
    """Delete all rows if they are of another cluster; return whether they were.

    Raises
    ------
    kube.errors.KubeError : the cluster does not answer
    """
    uid = cluster.get(NAMESPACES, ANCHOR, as_type=KubeObject).metadata.uid
    record = MirrorState.objects.filter(kind=RECORD).first()
    if record is not None and record.identity == uid:
        return False
    with transaction.atomic():
        for kind in kinds:
            kind.model.objects.all().delete()
        MirrorState.objects.all().delete()
        MirrorState.objects.create(kind=RECORD, identity=uid, seen_at=now)
    live.start_epoch()
    if record is not None:
        log.warning("another cluster than before: the mirror starts empty")
    return record is not None
