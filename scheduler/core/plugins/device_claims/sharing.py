"""A device that several pods use through one claim is charged to its node once.

Which devices are shared is known from the claims that are allocated when the cycle begins. A claim that
gets its devices within the cycle counts in full for every pod until the next snapshot shows its devices.
"""

from __future__ import annotations

from scheduler.core.cluster.axis import GPU_ROW
from scheduler.core.cluster.classes import RowAmounts, TaskClass
from scheduler.core.cluster.device_inputs import ClaimAllocation, DeviceId
from scheduler.core.cluster.state import ClusterState
from scheduler.core.cluster.status import ACTIVE_USED, TaskStatus
from scheduler.core.plugins.device_claims.ledger import ClaimLedger


class SharedDevices:
    """Devices that more than one pod uses, and the discount that each of these pods gets."""

    def __init__(self, state: ClusterState, ledger: ClaimLedger) -> None:
        self._state = state
        sharers: dict[DeviceId, list[int]] = {}
        devices: dict[int, list[DeviceId]] = {}
        for task, task_class in enumerate(state.tasks.task_class):
            if not task_class.is_dra:
                continue
            for reference in task_class.constraints.device_claims:
                allocation = ledger.allocation((task_class.namespace, reference.claim))
                for device in _held_devices(allocation):
                    sharers.setdefault(device, []).append(task)
                    devices.setdefault(task, []).append(device)
        self._sharers = {device: tasks for device, tasks in sharers.items() if len(tasks) > 1}
        self._devices = {
            task: [device for device in held if device in self._sharers]
            for task, held in devices.items()
        }

    @property
    def exist(self) -> bool:
        """Return whether any device is shared."""
        return bool(self._sharers)

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether tasks request GPUs through claims."""
        return task_class.is_dra

    def adjust(self, task: int, node: int, needs: RowAmounts) -> RowAmounts:
        """Return the needs without the devices that are charged to another pod on the node already."""
        held = self._devices.get(task)
        if not held:
            return needs
        discount = sum(1 for device in held if self._is_charged(device, task, node))
        if not discount:
            return needs
        return tuple(
            (row, max(amount - discount, 0.0) if row == GPU_ROW else amount)
            for row, amount in needs
        )

    def correct_charges(self) -> None:
        """Undo what the opening of the session charged more than once."""
        nodes, status = self._state.nodes, self._state.tasks.status
        for device, tasks in self._sharers.items():
            places = {self._state.tasks.node[task] for task in tasks} - {-1}
            for node in places:
                on_node = [
                    t for t in tasks if self._state.tasks.node[t] == node and ACTIVE_USED[status[t]]
                ]
                leaving = sum(status[t] == TaskStatus.RELEASING for t in on_node)
                if not on_node or device not in self._devices[on_node[0]]:
                    continue
                nodes.idle_rows[GPU_ROW][node] += len(on_node) - 1
                nodes.whole_gpus_used[node] -= len(on_node) - 1
                surplus = leaving - 1 if leaving == len(on_node) else leaving
                nodes.releasing_rows[GPU_ROW][node] -= surplus
                nodes.touched.append(node)

    def _is_charged(self, device: DeviceId, task: int, node: int) -> bool:
        tasks = self._state.tasks
        return any(
            other != task
            and tasks.node[other] == node
            and ACTIVE_USED[tasks.status[other]]
            and tasks.status[other] != TaskStatus.RELEASING
            for other in self._sharers[device]
        )


def _held_devices(allocation: ClaimAllocation | None) -> list[DeviceId]:
    """Return the devices that a claim holds as a whole."""
    devices = allocation.devices if allocation is not None else ()
    return [device.id for device in devices if not device.is_admin and not device.share]
