"""Evictions that the API server refused, remembered so that the next cycles take other victims meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from kube.errors import DisruptionBudgetError, KubeError, TooManyRequestsError
from scheduler.load.disruptions import RefusedEviction

#: The pause after the first refusal, and the longest.
FIRST_PAUSE_S = 10.0
MAX_PAUSE_S = 300.0
#: A refusal doubles the previous pause unless that ended longer ago than this.
FORGET_AFTER_S = 600.0


@dataclass(slots=True)
class RefusedEvictions:
    """The refusals; each further one of the same pod doubles its pause. Safe to use from several threads."""

    #: uid of a pod -> (its latest refusal, the length of its pause in seconds).
    _refused: dict[str, tuple[RefusedEviction, float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, uid: str, pod: str, error: KubeError, now: float) -> RefusedEviction:
        """Remember a refusal at Unix time `now`, and return it."""
        retry_after_s = error.retry_after_s if isinstance(error, TooManyRequestsError) else 0.0
        with self._lock:
            earlier = self._refused.get(uid)
            pause_s = min(earlier[1] * 2, MAX_PAUSE_S) if earlier else FIRST_PAUSE_S
            pause_s = max(pause_s, retry_after_s)
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
