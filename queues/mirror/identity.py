"""Empty the mirror when it holds the rows of another cluster.

resourceVersions are ordered only within one cluster. If the database outlives its cluster (a fresh sandbox, a
restored etcd under a new name, another kubeconfig), old rows could have higher versions than all new objects and
would never be replaced. The uid of the namespace `kube-system` identifies the cluster.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from django.db import transaction

from kube.gateway import Gateway
from kube.objects.meta import KubeObject
from kube.resources import NAMESPACES
from queues import live
from queues.mirror.part import Part
from queues.mirror.turns import RECORD, workers_of
from queues.mirror.writer import MirroredKind
from queues.models import MirrorState

log = logging.getLogger(__name__)

ANCHOR = "kube-system"


def start_with_cluster(
    cluster: Gateway, kinds: Iterable[MirroredKind], now: datetime, part: Part | None = None
) -> Part | None:
    """Prepare the rows for this cluster; return the part with the uid of the cluster, by default that of one worker.

    The first worker deletes all rows if they are of another cluster, and stores among how many workers the mirror is
    divided. For the others the result is None until it has done so.

    Raises
    ------
    kube.errors.KubeError : the cluster does not answer
    """
    uid = cluster.get(NAMESPACES, ANCHOR, as_type=KubeObject).metadata.uid
    part = replace(part or Part(), cluster=uid)
    record = MirrorState.objects.filter(kind=RECORD).first()
    is_known = record is not None and record.identity == uid
    if is_known and workers_of(record) == part.count:
        return part
    if not part.is_first:
        return None
    with transaction.atomic():
        # Waits for the turns of workers of the former division; none begins afterwards.
        MirrorState.objects.select_for_update().filter(kind=RECORD).first()
        if not is_known:
            for kind in kinds:
                kind.model.objects.all().delete()
        # Without heartbeats the workers know that they must sum up their parts.
        MirrorState.objects.exclude(kind=RECORD).delete()
        values = {"identity": uid, "version": part.count, "seen_at": now}
        MirrorState.objects.update_or_create(kind=RECORD, defaults=values)
        if not is_known:
            live.start_epoch()
    if not is_known and record is not None:
        log.warning("another cluster than before: the mirror starts empty")
    return part
