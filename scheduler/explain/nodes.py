"""The long explanation of why a pod fits nowhere: node by node, with amounts.

Used only with `detailed-fit-errors`, because every node is checked once more at the end of a cycle for each
class of tasks. That costs as much as a cycle in which nothing fits.
"""

from __future__ import annotations

from scheduler.core.cluster.amount_text import human_amount, plain_amount
from scheduler.core.cluster.axis import CPU_ROW, GPU_ROW, MEMORY_ROW
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.decisions import TaskRef
from scheduler.core.placement.explain import count_rejections
from scheduler.core.placement.place import Placer
from scheduler.core.session.fit import NodeReason, NodeReasonKind
from scheduler.core.session.nodeset import NodeSet
from scheduler.core.session.session import Session
from scheduler.explain import texts

#: Resource -> its word in a message, and its row. Other resources have no word: their name is written.
_WORD_AND_ROW = {
    "gpu": ("GPUs", GPU_ROW),
    "cpu": ("CPU cores", CPU_ROW),
    "memory": ("memory", MEMORY_ROW),
}


class NodeDetails:
    """Explains the refusals of single nodes in one finished session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._placer = Placer(session)
        #: (task class, queue, whether preemptible) -> name and reasons of each node.
        self._refusals_of: dict[tuple[int, int, bool], list[tuple[str, list[NodeReason]]]] = {}

    def message(self, task: int, ref: TaskRef, base: str, capacity_text: str) -> str:
        """Return the long message of a pod: `base` and a line for each node; "" when no node has a reason."""
        session = self._session
        task_class = session.state.tasks.task_class[task]
        group = session.state.tasks.pod_group[task]
        is_gang = session.state.pod_groups.task_count[group] > 1
        lines = []
        for node, reasons in self._refusals(task_class, task, group):
            details = [
                self._detail(task_class, node, reason, ref, capacity_text, is_gang)
                for reason in reasons
            ]
            if details:
                lines.append(f"\n<{node}>: {', '.join(details)}.")
        if not lines:
            return ""
        return "".join(sorted([*lines, f"\n{base}."]))

    def _refusals(
        self, task_class: TaskClass, task: int, group: int
    ) -> list[tuple[str, list[NodeReason]]]:
        session = self._session
        view = session.view(group)
        key = (task_class.index, view.queue, session.is_next_preemptible(group))
        refusals = self._refusals_of.get(key)
        if refusals is None:
            rules = self._placer.rules(task_class, task)
            refusals = [
                (
                    name,
                    list(
                        count_rejections(session, task_class, rules, NodeSet.of([node]), task, view)
                    ),
                )
                for node, name in enumerate(session.state.nodes.names)
            ]
            if not rules.is_volatile:
                self._refusals_of[key] = refusals
        return refusals

    def _detail(
        self,
        task_class: TaskClass,
        node: str,
        reason: NodeReason,
        ref: TaskRef,
        capacity_text: str,
        is_gang: bool,
    ) -> str:
        if reason.kind is NodeReasonKind.INSUFFICIENT_GPU_MEMORY:
            if is_gang:
                return _without_amounts("GPU memory")
            memory = self._session.state.nodes.gpu_memory[self._index(node)]
            return (
                "Node didn't have enough resources: Each gpu on the node has a gpu memory capacity "
                f"of {int(memory)} Mib. {task_class.share_memory_mib} Mib of gpu memory has been requested."
            )
        if reason.kind is NodeReasonKind.INSUFFICIENT:
            detail = self._lacking(task_class, node, reason.subject, is_gang=is_gang)
            return detail + texts.overhead_suffix(reason)
        return texts.node_reason(reason, ref, capacity_text)

    def _lacking(self, task_class: TaskClass, node: str, resource: str, *, is_gang: bool) -> str:
        word = _WORD_AND_ROW[resource][0] if resource in _WORD_AND_ROW else resource
        if is_gang:
            return _without_amounts(word)
        state, index = self._session.state, self._index(node)
        row = state.axis.row_of[resource]
        capacity = state.nodes.allocatable_rows[row][index]
        used = capacity - state.nodes.idle_rows[row][index]
        requested = float(task_class.vector[row])
        if resource not in _WORD_AND_ROW:
            figures = [plain_amount(resource, amount) for amount in (requested, used, capacity)]
            return (
                f"Node didn't have enough resource: {resource}, requested: {figures[0]}, "
                f"used: {figures[1]}, capacity: {figures[2]}"
            )
        if resource == "gpu":
            memory = state.nodes.gpu_memory[index]
            figures = [_gpus(task_class, requested, memory), f"{used:.3g}", f"{capacity:.3g}"]
        else:
            figures = [human_amount(amount, row) for amount in (requested, used, capacity)]
        return (
            f"Node didn't have enough resources: {word}, requested: {figures[0]}, "
            f"used: {figures[1]}, capacity: {figures[2]}"
        )

    def _index(self, node: str) -> int:
        return self._session.state.nodes.index_of[node]


def _without_amounts(word: str) -> str:
    """Return a refusal without amounts: whether a pod of a gang fits depends on what its other pods took before."""
    return f"Node didn't have enough resources: {word}, taking all considerations into account"


def _gpus(task_class: TaskClass, requested: float, gpu_memory_mib: int) -> str:
    portion = task_class.portion_on(gpu_memory_mib) if task_class.is_shared else 0.0
    if task_class.is_shared and task_class.devices > 1:
        return f"{task_class.devices} X {portion:.3g}"
    if task_class.is_dra:
        return f"{task_class.dra_gpus:.3g} as DRA gpu claims "
    return f"{portion or requested:.3g}"
