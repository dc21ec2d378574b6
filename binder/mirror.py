"""Turn bind requests into database rows, and find the errors of those that failed."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from binder.models import BindRequest
from kube.objects.bindrequest import BindRequest as BindRequestObject
from kube.resources import BINDREQUESTS
from queues.mirror.rollup import Touched
from queues.mirror.rows import identity
from queues.mirror.writer import MirroredKind
from queues.models import Pod


def bind_request_row(item: BindRequestObject) -> BindRequest:
    """Return the database row of a bind request."""
    meta, spec, status = item.metadata, item.spec, item.status
    return BindRequest(
        key=item.key,
        namespace=meta.namespace,
        name=meta.name,
        **identity(item),
        pod=f"{meta.namespace}/{spec.pod_name}",
        node=spec.selected_node,
        phase=status.phase or "Pending",
        reason=status.reason,
        failed_attempts=status.failed_attempts,
        resource_type=spec.received_resource_type,
        gpu_groups=list(spec.selected_gpu_groups),
    )


def _touch(old: BindRequest | None, new: BindRequest | None, touched: Touched) -> None:
    """Sum up the groups of pods whose binds failed; the others only show that they are being bound."""
    rows = [row for row in (old, new) if row is not None]
    has_failed = any(row.phase == "Failed" for row in rows)
    (touched.pods if has_failed else touched.shown_pods).update(row.pod for row in rows)


def bind_errors(groups: Collection[str]) -> Mapping[str, str]:
    """Return the error text of a failed bind request for each group that has one."""
    failed = dict(BindRequest.objects.filter(phase="Failed").values_list("pod", "reason"))
    if not failed:
        return {}
    pods = Pod.objects.filter(key__in=failed, group__in=groups, node="")
    return {group: failed[key] for key, group in pods.values_list("key", "group")}


KIND = MirroredKind(
    resource=BINDREQUESTS,
    as_type=BindRequestObject,
    model=BindRequest,
    to_row=bind_request_row,
    touch=_touch,
    skips_equal=True,
)
