"""Evictions that the API server refused, remembered so that the next cycles take other victims meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from kube.errors import DisruptionBudgetError, KubeError, TooManyRequestsError
from scheduler.load.disruptions import RefusedEviction

FIRST_S = 10.0
LONGEST_S = 300.0
#: How long after its pause ended a refusal still counts for the length of the next one.
FORGET_AFTER_S = 600.0


@dataclass(slots=True)
class RefusedEvictions:
    """Refusals by uid of the pod; each in a row doubles the pause. Written by several threads."""

    _refused: dict[str, tuple[RefusedEviction, float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, uid: str, pod: str, error: KubeError, now: float) -> RefusedEviction:
        """Remember a refusal at Unix time `now`, and return it."""
        asked_s = error.retry_after_s if isinstance(error, TooManyRequestsError) else 0.0
        with self._lock:
            before = self._refused.get(uid)
            pause_s = min(before[1] * 2, LONGEST_S) if before else FIRST_S
            pause_s = max(pause_s, asked_s)
            refusal = RefusedEviction(pod, answer_of(error), now + pause_s)
            self._refused[uid] = (refusal, pause_s)
            return refusal

    def forget(self, uid: str) -> None:
        """Forget the refusals of a pod that was evicted."""
        with self._lock:
            self._refused.pop(uid, None)

    def current(self, now: float) -> Mapping[str, RefusedEviction]:
        """Return the refusals whose pause has not ended; drop the ones that ended long ago."""
        with self._lock:
            self._refused = {
                uid: entry
                for uid, entry in self._refused.items()
                if entry[0].until + FORGET_AFTER_S > now
            }
            return {uid: e[0] for uid, e in self._refused.items() if e[0].until > now}


def answer_of(error: KubeError) -> str:
    """Return what the API server answered, for messages."""
    return error.budget_text if isinstance(error, DisruptionBudgetError) else str(error)
