"""A claim that several pods use is charged to its node once, and the two kinds of GPUs of one node apart.

Both are rules about the GPU row of a node. It counts the GPUs of a device plugin together with those that a
driver publishes in resource slices.
"""

from __future__ import annotations

from scheduler.core.cluster.axis import GPU_ROW
from scheduler.core.cluster.classes import RowAmounts, TaskClass
from scheduler.core.cluster.state import ClusterState
from scheduler.core.cluster.status import ACTIVE_USED, TaskStatus
from scheduler.core.plugins.device_claims.ledger import ClaimKey, ClaimLedger


class SharedDevices:
    """Claims that more than one pod uses, and the discount that each of these pods gets."""

    def __init__(self, state: ClusterState, ledger: ClaimLedger) -> None:
        self._state = state
        self._ledger = ledger
        users: dict[ClaimKey, list[int]] = {}
        for task, task_class in enumerate(state.tasks.task_class):
            if task_class.is_dra:
                for reference in task_class.constraints.device_claims:
                    users.setdefault((task_class.namespace, reference.claim), []).append(task)
        self._users = {key: tasks for key, tasks in users.items() if len(tasks) > 1}
        #: Task -> its shared claims.
        self._claims: dict[int, list[ClaimKey]] = {}
        for key, tasks in self._users.items():
            for task in tasks:
                self._claims.setdefault(task, []).append(key)

    @property
    def exist(self) -> bool:
        """Return whether any claim is shared."""
        return bool(self._users)

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether tasks request GPUs through claims."""
        return task_class.is_dra

    def adjust(self, task: int, node: int, needs: RowAmounts) -> RowAmounts:
        """Return the needs without the claims that are charged to another pod on the node already."""
        keys = self._claims.get(task)
        if not keys:
            return needs
        discount = sum(self._gpus(key) for key in keys if self._is_charged(key, task, node))
        if not discount:
            return needs
        return tuple(
            (row, max(amount - discount, 0.0) if row == GPU_ROW else amount)
            for row, amount in needs
        )

    def correct_charges(self) -> None:
        """Undo what the opening of the session charged more than once."""
        nodes, status = self._state.nodes, self._state.tasks.status
        for key, tasks in self._users.items():
            gpus = self._gpus(key)
            for node in {self._state.tasks.node[task] for task in tasks} - {-1}:
                on_node = [
                    t for t in tasks if self._state.tasks.node[t] == node and ACTIVE_USED[status[t]]
                ]
                leaving = sum(status[t] == TaskStatus.RELEASING for t in on_node)
                if not on_node:
                    continue
                nodes.idle_rows[GPU_ROW][node] += (len(on_node) - 1) * gpus
                nodes.whole_gpus_used[node] -= (len(on_node) - 1) * gpus
                surplus = leaving - 1 if leaving == len(on_node) else leaving
                nodes.releasing_rows[GPU_ROW][node] -= surplus * gpus
                nodes.touched.append(node)

    def _gpus(self, key: ClaimKey) -> float:
        """Return how many GPUs a claim counts for."""
        claim, allocation = self._ledger.claims.get(key), self._ledger.allocation(key)
        if claim is None:
            return 0.0
        if claim.gpus or allocation is None:
            return claim.gpus
        return float(sum(not device.is_admin for device in allocation.devices))

    def _is_charged(self, key: ClaimKey, task: int, node: int) -> bool:
        tasks = self._state.tasks
        return any(
            other != task
            and tasks.node[other] == node
            and ACTIVE_USED[tasks.status[other]]
            and tasks.status[other] != TaskStatus.RELEASING
            for other in self._users[key]
        )


class MixedNodes:
    """A fit rule: a request for whole GPUs gets those of the device plugin only, where a node has both kinds."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._published = {
            index: node.dra_gpus
            for index, node in enumerate(state.nodes.inputs)
            if 0 < node.dra_gpus < state.nodes.allocatable_rows[GPU_ROW][index]
        }

    @property
    def exist(self) -> bool:
        """Return whether any node has both kinds."""
        return bool(self._published)

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether tasks request whole GPUs of a device plugin."""
        return task_class.request.gpus > 0

    def adjust(self, task: int, node: int, needs: RowAmounts) -> RowAmounts:
        """Return the needs with the free GPUs that only claims can have."""
        published = self._published.get(node)
        if published is None:
            return needs
        unclaimed = max(published - self._claimed(node), 0.0)
        return tuple(
            (row, amount + unclaimed if row == GPU_ROW else amount) for row, amount in needs
        )

    def _claimed(self, node: int) -> float:
        """Return how many GPUs claims hold on a node, as the row of the node counts them."""
        state = self._state
        claimed = 0.0
        for task in state.nodes.tasks[node]:
            task_class = state.tasks.task_class[task]
            if task_class.is_dra:
                charged = dict(state.charge_amounts(task, node)).get(GPU_ROW, 0.0)
                claimed += max(charged - task_class.request.gpus, 0.0)
        return claimed
