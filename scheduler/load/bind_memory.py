"""What failed binds mean for a cycle: pods that wait for their next attempt, and nodes that get no new pods.

A pod whose bind failed holds no place and is not tried before its pause is over, so that others go first. The
memory is an annotation of the pod (`queues.workloads.bind_failures`); a bind request that failed since is counted
here and written before the request is deleted.

A person resets the memory of a pod by removing its annotation, or that of a pod group's pods by annotation
`kaiweb.dev/binds-reset-at`: what failed up to that time counts no more.

A node rests when different pods failed on it and on no other node, and none was bound there since. If that is true
of many nodes, none rests, because the cause is elsewhere: a webhook that refuses the pods of one user, for example.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from kube.keys import BIND_FAILURES, BINDS_RESET_AT
from kube.objects.bindrequest import OUTDATED, SCALING_UP, BindRequest
from kube.objects.pod import Pod
from kube.objects.podgroup import PodGroup
from kube.values.times import time_or_none
from queues.workloads.bind_failures import BindFailures, after_failure, read_failures

#: How many pods must have failed on a node for it to rest, and within which time.
BLAMING_PODS = 3
BLAMED_FOR_S = 300.0
REST_S = 60.0
#: At most one node in four rests; in a smaller cluster one node may, if there is another.
NODES_PER_REST = 4

_read = lru_cache(maxsize=8192)(read_failures)


@dataclass(frozen=True, slots=True, kw_only=True)
class BindMemory:
    """The failed binds that a cycle knows.

    Attributes
    ----------
    held : pods without a node that wait for their next attempt, by `namespace/name`
    known : all pods without a node whose bind has failed
    unwritten : those of them whose annotation does not count the last failure yet
    resting : node -> Unix time until which it gets no new pods
    """

    held: Mapping[str, BindFailures] = field(default_factory=dict)
    known: Mapping[str, BindFailures] = field(default_factory=dict)
    unwritten: Mapping[str, BindFailures] = field(default_factory=dict)
    resting: Mapping[str, float] = field(default_factory=dict)

    def pods_blaming(self, node: str) -> list[str]:
        """Return the waiting pods that failed on this node and on no other, sorted."""
        return sorted(key for key, failures in self.known.items() if failures.nodes == (node,))


def bind_memory(
    pods: Mapping[str, Pod],
    groups: Mapping[str, PodGroup],
    spent: Iterable[BindRequest],
    nodes: Collection[str],
    now: float,
    *,
    remembering: Iterable[str] | None = None,
) -> BindMemory:
    """Return the memory at `now` (Unix time).

    Parameters
    ----------
    remembering : keys of the pods that carry the annotation, if they are known
    spent : bind requests of this shard that are to be deleted
    nodes : names of this shard's nodes
    """
    memories = {
        key: failures
        for key in (pods if remembering is None else sorted(remembering))
        if (failures := _read(pods[key].metadata.annotations.get(BIND_FAILURES))) is not None
        and not _is_reset(failures, pods[key], groups, now)
    }
    unwritten = dict(_uncounted(pods, spent, memories, now))
    memories |= unwritten
    known = {key: failures for key, failures in memories.items() if not pods[key].spec.node_name}
    held = {
        key: failures
        for key, failures in known.items()
        if failures.holds(now) and not pods[key].is_finished
    }
    return BindMemory(
        held=held,
        known=known,
        unwritten=unwritten,
        resting=_resting(pods, memories, nodes, now) if memories else {},
    )


def _is_reset(failures: BindFailures, pod: Pod, groups: Mapping[str, PodGroup], now: float) -> bool:
    group = groups.get(pod.pod_group_key)
    reset_at = time_or_none(group.metadata.annotations.get(BINDS_RESET_AT)) if group else None
    return reset_at is not None and failures.last <= reset_at.timestamp() <= now + 1


def _uncounted(
    pods: Mapping[str, Pod],
    spent: Iterable[BindRequest],
    memories: Mapping[str, BindFailures],
    now: float,
) -> Iterable[tuple[str, BindFailures]]:
    """Yield the pods whose failed bind request their annotation does not count yet, with the new memory."""
    for request in spent:
        meta = request.metadata
        key = f"{meta.namespace}/{request.spec.pod_name}"
        pod, earlier = pods.get(key), memories.get(key)
        # A pause would outlast the scaling, which ends at any moment.
        is_elsewhere = any(text in request.status.reason for text in (OUTDATED, SCALING_UP))
        is_pods_fault = request.is_failed and not is_elsewhere
        if pod is None or pod.spec.node_name or not is_pods_fault or not request.is_for(pod):
            continue
        if earlier is None or earlier.request != meta.uid:
            node, reason = request.spec.selected_node, request.status.reason
            yield key, after_failure(earlier, node=node, request=meta.uid, reason=reason, now=now)


def _resting(
    pods: Mapping[str, Pod],
    memories: Mapping[str, BindFailures],
    nodes: Collection[str],
    now: float,
) -> dict[str, float]:
    """Return the nodes that rest, each with the Unix time until which it does."""
    failed_at: dict[str, list[float]] = defaultdict(list)
    for failures in memories.values():
        if len(failures.nodes) == 1 and now - BLAMED_FOR_S <= failures.last <= now + 1:
            failed_at[failures.nodes[0]].append(failures.last)
    until = {
        node: max(times) + REST_S
        for node, times in failed_at.items()
        if len(times) >= BLAMING_PODS and now < max(times) + REST_S and node in nodes
    }
    if not until:
        return {}
    for pod in pods.values():
        node = pod.spec.node_name
        if node in until and _bound_at(pod) > until[node] - REST_S:
            del until[node]
    max_resting = max(len(nodes) // NODES_PER_REST, min(1, len(nodes) - 1))
    return until if len(until) <= max_resting else {}


def _bound_at(pod: Pod) -> float:
    condition = pod.condition("PodScheduled")
    if condition is None or condition.status != "True" or condition.last_transition_time is None:
        return 0.0
    return condition.last_transition_time.timestamp()
