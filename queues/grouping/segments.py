"""Segments: equal slices of a gang that must each land close together, such as one rack per slice."""

from __future__ import annotations

from collections.abc import Mapping

from kube import keys
from queues.grouping.base import Topology

MAX_SEGMENTS = 10_000


def segment_topology(topology_name: str, *speakers: Mapping[str, str]) -> Topology | None:
    """Return the placement of one segment, read from the first speaker that names each part.

    Returns
    -------
    None without a topology name or without any level: such a constraint would mean nothing
    """
    required = first_of(keys.SEGMENT_REQUIRED, *speakers)
    preferred = first_of(keys.SEGMENT_PREFERRED, *speakers)
    if not topology_name or not (required or preferred):
        return None
    return Topology(name=topology_name, required=required, preferred=preferred)


def first_of(key: str, *speakers: Mapping[str, str]) -> str:
    return next((speaker[key] for speaker in speakers if speaker.get(key)), "")
