"""Segments: equal parts of a gang, each of which is placed in one topology domain, such as a rack."""

from __future__ import annotations

from collections.abc import Mapping

from kube import keys
from queues.grouping.base import Topology

MAX_SEGMENTS = 10_000


def segment_topology(topology_name: str, *sources: Mapping[str, str]) -> Topology | None:
    """Return the placement of a segment; each part is read from the first source that has it.

    Returns
    -------
    None without a topology name or without a level, because both are needed
    """
    required = first_of(keys.SEGMENT_REQUIRED, *sources)
    preferred = first_of(keys.SEGMENT_PREFERRED, *sources)
    if not topology_name or not (required or preferred):
        return None
    return Topology(name=topology_name, required=required, preferred=preferred)


def first_of(key: str, *sources: Mapping[str, str]) -> str:
    return next((source[key] for source in sources if source.get(key)), "")
