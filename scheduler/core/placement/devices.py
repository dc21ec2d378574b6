"""Which devices of a node a task that shares GPUs gets: join a group, or open a whole device."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.core.cluster.axis import GPU_ROW, PODS_ROW
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.gpus import fitting_shared_gpus, has_idle_room
from scheduler.core.cluster.nodes import USED_COLUMN
from scheduler.core.session.session import Session


@dataclass(frozen=True, slots=True)
class DeviceChoice:
    """The groups a task joins; `must_wait` if any of them is still being freed."""

    groups: tuple[str, ...]
    must_wait: bool


def choose_devices(
    session: Session, task_class: TaskClass, node: int, *, fits_free: bool, nominate_only: bool
) -> DeviceChoice | None:
    """Choose distinct devices of a node for a task that shares them.

    Parameters
    ----------
    fits_free : the task fits into what is free on the node now
    nominate_only : nothing may be taken at once

    Returns
    -------
    the groups (new names for devices that become shared), None if there are too few, or too few
    pod slots for the reservation pods of newly shared devices

    Notes
    -----
    KAI requires two free pod slots for every such task. We require the second one only for a device
    that becomes shared by this task, since only that device gets a reservation pod. So where slots are few
    a task joins a device that is shared already.
    """
    nodes = session.state.nodes
    memory = task_class.memory_on(nodes.gpu_memory[node])
    joinable = sorted(fitting_shared_gpus(nodes, node, memory))
    whole = int(nodes.idle_rows[GPU_ROW][node]) + int(nodes.releasing_rows[GPU_ROW][node])
    idle_slots = nodes.idle_rows[PODS_ROW][node]
    slots = int(idle_slots + nodes.releasing_rows[PODS_ROW][node])
    # The task itself takes one slot.
    max_opened = max(min(whole, task_class.devices, slots - 1), 0)
    ranked: list[str | None] = [*joinable, *([None] * max_opened)]
    score = session.hooks.gpu_score
    if score is not None:
        size = float(nodes.gpu_memory[node])
        ranked.sort(
            key=lambda gpu: (
                -score(None if gpu is None else (nodes.shared_gpus[node][gpu][USED_COLUMN], size))
            )
        )
    # None stands for a whole device that becomes shared.
    chosen = ranked[: task_class.devices]
    if len(chosen) < task_class.devices:
        return None
    must_wait = nominate_only or not fits_free or idle_slots < 1 + chosen.count(None)
    groups = []
    for gpu in chosen:
        if gpu is None:
            groups.append(session.new_gpu_group_id())
        else:
            groups.append(gpu)
            must_wait = must_wait or not has_idle_room(nodes, node, gpu, memory)
    return DeviceChoice(tuple(groups), must_wait)
