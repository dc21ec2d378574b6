"""Conditions in the status of pods."""

from __future__ import annotations

from sandbox.apiserver.model import clock
from sandbox.apiserver.model.entry import Obj


def set_condition(pod: Obj, condition: Obj) -> None:
    """Add a condition to a pod that was loaded for a change, or replace the one of its type."""
    status = pod.setdefault("status", {})
    others = [c for c in status.get("conditions") or () if c["type"] != condition["type"]]
    stamped = {**condition, "lastProbeTime": None, "lastTransitionTime": clock.stamp()}
    status["conditions"] = [*others, stamped]
