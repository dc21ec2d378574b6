"""Convert queues to inputs of the core: -1 to infinity, megabytes to bytes, durations to seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from math import inf

from kube.objects.queue import Queue, QueueResource, QueueResources
from kube.process.set_aside import SetAside
from kube.values.durations import seconds_or_none
from queues.tree.options import read_options
from scheduler.core.arrays import Amounts
from scheduler.core.cluster.inputs import GpuModelBounds, QueueAmounts, QueueInput
from scheduler.load.changes import same_or_new

DEFAULT_PRIORITY = 100
MEGABYTE = 1_000_000.0

#: Queue name -> (cpu, memory, gpu) consumed in the past as fractions of the cluster
UsageByQueue = Mapping[str, Amounts]
_NO_USAGE = (0.0, 0.0, 0.0)


@dataclass(slots=True)
class QueueBuilder:
    """Converts queues and caches those that did not change.

    Attributes
    ----------
    origin : Unix time that creation times count from; only their order matters
    """

    origin: float
    aside: SetAside = field(default_factory=lambda: SetAside("snapshot"))
    #: Queue name -> the queue and usage of the last call, and their result.
    _cache: dict[str, tuple[Queue, Amounts, QueueInput]] = field(default_factory=dict)
    _result: tuple[QueueInput, ...] = ()

    def queues(self, queues: Mapping[str, Queue], usage: UsageByQueue) -> tuple[QueueInput, ...]:
        """Return the queues sorted by name; the same tuple as before if none changed.

        The core leaves out those whose parent is missing.
        """
        previous, self._cache = self._cache, {}
        inputs = []
        for name in sorted(queues):
            queue, queue_usage = queues[name], usage.get(name, _NO_USAGE)
            entry = previous.get(name)
            if entry is None or entry[0] is not queue or entry[1] != queue_usage:
                converted = self.aside.read(
                    "Queue", queue, partial(queue_input, origin=self.origin, usage=queue_usage)
                )
                if converted is None:
                    continue
                entry = (queue, queue_usage, converted)
            self._cache[name] = entry
            inputs.append(entry[2])
        self._result = same_or_new(self._result, inputs)
        return self._result


def queue_input(queue: Queue, origin: float, usage: Amounts = _NO_USAGE) -> QueueInput:
    """Return the input of one queue; without `resources` nothing may run in it."""
    spec = queue.spec
    resources = spec.resources or QueueResources()
    options, _ = read_options(queue.metadata.annotations)
    return QueueInput(
        name=queue.metadata.name,
        display_name=queue.display_name,
        parent=spec.parent_queue,
        priority=DEFAULT_PRIORITY if spec.priority is None else spec.priority,
        created=queue.metadata.created - origin,
        cpu=_amounts(resources.cpu, 1.0, usage[0]),
        memory=_amounts(resources.memory, MEGABYTE, usage[1]),
        gpu=_amounts(resources.gpu, 1.0, usage[2]),
        preempt_min_runtime_s=_seconds(spec.preempt_min_runtime),
        reclaim_min_runtime_s=_seconds(spec.reclaim_min_runtime),
        user_fairness=options.user_fairness,
        gpu_models=tuple(
            GpuModelBounds(
                model=model,
                quota=None if bounds.quota is None else _bound(bounds.quota, 1.0),
                limit=None if bounds.limit is None else _bound(bounds.limit, 1.0),
            )
            for model, bounds in options.gpu_models.items()
        ),
    )


def _amounts(resource: QueueResource, unit: float, used: float) -> QueueAmounts:
    return QueueAmounts(
        quota=_bound(resource.quota, unit),
        limit=_bound(resource.limit, unit),
        over_quota_weight=max(0.0, resource.over_quota_weight),
        usage=used,
    )


def _bound(amount: float, unit: float) -> float:
    """Return a quota or limit, infinite if negative; memory is rounded, as products of floats are inexact."""
    if amount < 0:
        return inf
    return amount if unit == 1 else float(round(amount * unit))


def _seconds(duration: str | None) -> float | None:
    """Return a minimum runtime; unset, negative or unreadable means "ask the parent"."""
    seconds = seconds_or_none(duration)
    return seconds if seconds is not None and seconds >= 0 else None
