"""Compare two previews of one change: the present one may do no more harm than the one its author has seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler.tools.simulate.what_if.answer import VERDICTS

Answer = Mapping[str, Any]


def is_worse(now: Answer, before: Answer) -> bool:
    """Return whether the verdict is worse than before, or the edits evict more, or others."""
    if VERDICTS.index(now["verdict"]) > VERDICTS.index(before["verdict"]):
        return True
    more = now["totals"]["evictedOnlyByEdits"] > before["totals"]["evictedOnlyByEdits"]
    return more or not _evicted(now) <= _evicted(before)


def _evicted(answer: Answer) -> set[str]:
    """Return the workloads that only the edits evict."""
    return {entry["workload"] for entry in answer["evictions"] if not entry["withoutEdits"]}
