"""How long each pod of a namespace waits from its creation to its node, seen from outside by one watch."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from kube.errors import KubeError
from kube.gateway import Gateway, Selectors
from kube.objects.meta import KubeObject
from kube.resources import PODS


@dataclass(slots=True)
class Waits:
    """The times of creation and of binding, by the monotonic clock.

    The watch brings bound pods only, and nothing but their metadata is read: a poll that lists thousands of pods
    would cost the API server more than what is measured.
    """

    gateway: Gateway
    namespace: str
    created: dict[str, float] = field(default_factory=dict)
    bound: dict[str, float] = field(default_factory=dict)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def follow(self) -> None:
        """Follow the namespace in a thread of its own, for as long as the process lives."""
        threading.Thread(target=self._follow, name="waits", daemon=True).start()

    def wait(self, count: int, timeout_s: float) -> float:
        """Wait until so many pods are bound; return when the last one was.

        Raises
        ------
        TimeoutError : fewer were bound in time
        """
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.bound) >= count, timeout_s):
                raise TimeoutError(f"{len(self.bound)} of {count} pods after {timeout_s:.0f} s")
        return max(self.bound.values())

    def sorted_ms(self) -> list[float]:
        """Return the waits of the bound pods, shortest first."""
        return sorted(
            1000 * (moment - self.created[name])
            for name, moment in dict(self.bound).items()
            if name in self.created
        )

    def _follow(self) -> None:
        on_nodes = Selectors(fields="spec.nodeName!=")
        version = "0"
        while True:
            try:
                for event in self.gateway.watch(
                    PODS,
                    as_type=KubeObject,
                    resource_version=version,
                    namespace=self.namespace,
                    selectors=on_nodes,
                ):
                    version = event.resource_version or version
                    with self._changed:
                        self.bound.setdefault(event.object.metadata.name, time.monotonic())
                        self._changed.notify_all()
            except KubeError:
                time.sleep(0.1)


def percentile(sorted_values: list[float], part: float) -> float:
    """Return the smallest value that so large a part of the values does not exceed."""
    return sorted_values[max(0, -int(-len(sorted_values) * part) - 1)]
