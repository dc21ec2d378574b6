"""What a cycle decided, summed by workload: the rows of a session's page, and the record of evictions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler.apply.evictions import MAX_RUN_TIME, REQUEUE
from scheduler.core.decisions import ActionName, Bind, Decision, Evict, TaskRef
from scheduler.core.session.session import Session
from scheduler.explain.texts import evict_message
from scheduler.loop.cycle import CycleSummary

BIND, NOMINATE, MOVE, EVICT = "bind", "nominate", "move", "evict"
#: How many nodes of one decision are named.
NAMED_NODES = 8


@dataclass(slots=True, kw_only=True)
class WorkloadDecision:
    """What one action decided about the pods of one workload.

    Attributes
    ----------
    kind : bind, nominate (room that is still being freed), move (a victim that gets another place), evict
    workload, evictor : namespace/name; the evictor is the workload that gets the room, or empty
    pods, refused : pods for which it was carried out, and for which the cluster refused it
    text : why, for evictions
    """

    action: str
    kind: str
    workload: str
    queue: str
    evictor: str = ""
    evictor_queue: str = ""
    pods: int = 0
    refused: int = 0
    gpu: float = 0.0
    nodes: list[str] = field(default_factory=list)
    text: str = ""

    def add(self, node: str, gpu: float, *, is_written: bool) -> None:
        """Count one pod."""
        self.pods += is_written
        self.refused += not is_written
        self.gpu += gpu
        if node and node not in self.nodes and len(self.nodes) < NAMED_NODES:
            self.nodes.append(node)

    def as_json(self) -> dict[str, Any]:
        """Return the entry as it is stored and as REST shows it."""
        return {
            "action": self.action,
            "kind": self.kind,
            "workload": self.workload,
            "queue": self.queue,
            "evictor": self.evictor,
            "evictorQueue": self.evictor_queue,
            "pods": self.pods,
            "refused": self.refused,
            "gpu": round(self.gpu, 3),
            "nodes": self.nodes,
            "text": self.text,
        }


def decisions_of(summary: CycleSummary) -> list[WorkloadDecision]:
    """Return what the cycle decided, in the order in which it was decided; requested evictions come last."""
    session, commit = summary.session, summary.commit
    evicted = _uids(commit.evicted)
    if not session.decisions and not evicted:
        return []
    workloads = _Workloads(session)
    written = {BIND: _uids(commit.bound), EVICT: evicted}
    rows: dict[tuple[str, ...], WorkloadDecision] = {}
    for decision in session.decisions:
        row = _row_of(rows, decision, workloads)
        uid = decision.task.uid
        gpu = workloads.gpu(f"{decision.pod_group_namespace}/{decision.pod_group}", uid)
        row.add(decision.node, gpu, is_written=uid in written.get(row.kind, (uid,)))
    decided = {decision.task.uid for decision in session.decisions if isinstance(decision, Evict)}
    for ref in commit.evicted:
        if ref.uid not in decided:
            _add_requeued(rows, ref, summary, workloads)
    return list(rows.values())


def _uids(refs: Collection[TaskRef]) -> set[str]:
    return {ref.uid for ref in refs}


def _row_of(
    rows: dict[tuple[str, ...], WorkloadDecision], decision: Decision, workloads: _Workloads
) -> WorkloadDecision:
    workload = f"{decision.pod_group_namespace}/{decision.pod_group}"
    action, kind, evictor = _action_of(decision).value, _kind_of(decision), ""
    if isinstance(decision, Evict) and decision.reason.evictor:
        evictor = f"{decision.reason.evictor_namespace}/{decision.reason.evictor}"
    key = (action, kind, workload, evictor)
    row = rows.get(key)
    if row is None:
        row = rows[key] = WorkloadDecision(
            action=action,
            kind=kind,
            workload=workload,
            queue=workloads.queue(workload),
            evictor=evictor,
            evictor_queue=workloads.queue(evictor),
            text=evict_message(decision) if isinstance(decision, Evict) else "",
        )
    return row


def _action_of(decision: Decision) -> ActionName:
    return decision.reason.action if isinstance(decision, Evict) else decision.action


def _kind_of(decision: Decision) -> str:
    if isinstance(decision, Bind):
        return BIND
    if isinstance(decision, Evict):
        return EVICT
    return MOVE if decision.is_moved_victim else NOMINATE


def _add_requeued(
    rows: dict[tuple[str, ...], WorkloadDecision],
    ref: TaskRef,
    summary: CycleSummary,
    workloads: _Workloads,
) -> None:
    """Count a pod that was evicted because a person requested it, or because of a maximum run time."""
    pod = summary.snapshot.pods.get(f"{ref.namespace}/{ref.name}")
    if pod is None:
        return
    workload = pod.pod_group_key
    action = MAX_RUN_TIME if ref.uid in summary.commit.run_ended else REQUEUE
    row = rows.setdefault(
        (action, EVICT, workload, ""),
        WorkloadDecision(
            action=action, kind=EVICT, workload=workload, queue=workloads.queue(workload)
        ),
    )
    row.add(pod.spec.node_name, workloads.gpu(workload, ref.uid), is_written=True)


class _Workloads:
    """Looks up the queue of a workload and the GPUs of its pods in the state of a session."""

    def __init__(self, session: Session) -> None:
        self._state = session.state
        groups = session.state.pod_groups
        self._index_of: Mapping[str, int] = {
            f"{group.namespace}/{group.name}": index for index, group in enumerate(groups.inputs)
        }
        #: Workload -> uid of a pod -> its GPUs.
        self._gpus: dict[str, dict[str, float]] = {}

    def queue(self, workload: str) -> str:
        """Return the name of the queue, or an empty text for no workload."""
        index = self._index_of.get(workload)
        return "" if index is None else self._state.pod_groups.inputs[index].queue

    def gpu(self, workload: str, uid: str) -> float:
        """Return the GPUs that a pod requests."""
        gpus = self._gpus.get(workload)
        if gpus is None:
            gpus = self._gpus[workload] = self._gpus_of(workload)
        return gpus.get(uid, 0.0)

    def _gpus_of(self, workload: str) -> dict[str, float]:
        index = self._index_of.get(workload)
        if index is None:
            return {}
        tasks = self._state.tasks
        return {
            tasks.inputs[task].uid: tasks.task_class[task].requested[2]
            for task in self._state.pod_groups.tasks_of(index)
        }
