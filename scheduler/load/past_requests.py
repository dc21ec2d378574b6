"""What tasks that are gone requested, so that a quiet hour does not forget the usual work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import nlargest
from operator import itemgetter

from scheduler.core.cluster.inputs import PlainRequest
from scheduler.core.cluster.state import ClusterState
from scheduler.core.config import SchedulerConfig
from scheduler.core.plugins.fragmentation.mix import plain_request
from scheduler.core.plugins.placement_strategy import FRAGMENTATION, NodePlacementArguments

#: A task that has been gone for so long counts half.
HALF_LIFE_S = 86_400.0
#: The most requests that are remembered.
MAX_REMEMBERED = 1_024


def keeps_fragments_small(config: SchedulerConfig) -> bool:
    """Return whether tasks of any kind are placed by the strategy `fragmentation`."""
    return any(
        isinstance(plugin.arguments, NodePlacementArguments)
        and FRAGMENTATION in (plugin.arguments.cpu, plugin.arguments.gpu)
        for plugin in config.plugins
    )


@dataclass(slots=True)
class RequestMemory:
    """Follows which tasks come and go, from cycle to cycle."""

    half_life_s: float = HALF_LIFE_S
    #: Uid of a task that is there -> what it requests; None if not plain devices.
    _present: dict[str, PlainRequest | None] = field(default_factory=dict)
    #: What tasks that are gone requested -> how many there were, as of `_as_of`.
    _gone: dict[PlainRequest, float] = field(default_factory=dict)
    _as_of: float = 0.0

    def past(self, now: float) -> Mapping[PlainRequest, float]:
        """Return what tasks that are gone at a moment requested -> how many there were; long ago counts for less.

        Parameters
        ----------
        now : seconds on any clock that does not jump far; the same one for all calls
        """
        self._fade(now)
        return dict(self._gone)

    def observe(self, state: ClusterState, now: float) -> None:
        """Note the tasks that are there now; those that were there and are not count as gone from now on."""
        self._fade(now)
        requests = [plain_request(state, task_class) for task_class in state.classes.classes]
        present = {
            task.uid: requests[task_class.index]
            for task, task_class in zip(state.tasks.inputs, state.tasks.task_class, strict=True)
        }
        for uid in self._present.keys() - present.keys():
            request = self._present[uid]
            if request is not None:
                self._gone[request] = self._gone.get(request, 0.0) + 1.0
        self._present = present
        if len(self._gone) > MAX_REMEMBERED:
            self._gone = dict(nlargest(MAX_REMEMBERED, self._gone.items(), key=itemgetter(1)))

    def _fade(self, now: float) -> None:
        elapsed_s = max(now - self._as_of, 0.0)
        if elapsed_s and self._gone:
            factor = 0.5 ** (elapsed_s / self.half_life_s)
            self._gone = {request: weight * factor for request, weight in self._gone.items()}
        self._as_of = now
