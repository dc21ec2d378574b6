"""Whose a workload is. Pure: no Django."""

from __future__ import annotations

from collections.abc import Mapping

from kube.keys import USER


def user_of(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """Return the user of a pod group by its label, else by its annotation; empty if it has neither."""
    return labels.get(USER, annotations.get(USER, ""))
