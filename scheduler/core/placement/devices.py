"""Which devices of a node a task that shares GPUs gets: join a group, or open a whole device."""

from __future__ import annotations

from collections.abc import Sequence
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
    chosen = _best_devices(session, task_class, node)
    if chosen is None:
        return None
    must_wait = nominate_only or not fits_free or _must_wait(session, task_class, node, chosen)
    return DeviceChoice(_names(session, chosen), must_wait)


def choose_free_devices(
    session: Session, task_class: TaskClass, node: int
) -> tuple[str, ...] | None:
    """Return the groups that `choose_devices` chooses where a task fits now; None, and no new name, if it must wait."""
    chosen = _best_devices(session, task_class, node)
    if chosen is None or _must_wait(session, task_class, node, chosen):
        return None
    return _names(session, chosen)


def _best_devices(session: Session, task_class: TaskClass, node: int) -> list[str | None] | None:
    """Return the groups to join, None in place of each whole device that becomes shared; None if there are too few."""
    nodes = session.state.nodes
    memory = task_class.memory_on(nodes.gpu_memory[node])
    joinable = sorted(fitting_shared_gpus(nodes, node, memory))
    whole = int(nodes.idle_rows[GPU_ROW][node]) + int(nodes.releasing_rows[GPU_ROW][node])
    slots = int(nodes.idle_rows[PODS_ROW][node] + nodes.releasing_rows[PODS_ROW][node])
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
    chosen = ranked[: task_class.devices]
    return chosen if len(chosen) == task_class.devices else None


def _must_wait(
    session: Session, task_class: TaskClass, node: int, chosen: Sequence[str | None]
) -> bool:
    """Return whether a device, or the pod slot of a reservation pod, is still being freed."""
    nodes = session.state.nodes
    if nodes.idle_rows[PODS_ROW][node] < 1 + chosen.count(None):
        return True
    memory = task_class.memory_on(nodes.gpu_memory[node])
    return any(gpu is not None and not has_idle_room(nodes, node, gpu, memory) for gpu in chosen)


def _names(session: Session, chosen: Sequence[str | None]) -> tuple[str, ...]:
    return tuple([session.new_gpu_group_id() if gpu is None else gpu for gpu in chosen])
