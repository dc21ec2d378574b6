"""Start a simulation from a saved cycle instead of the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kube.objects.meta import KubeObject, convert
from kube.resources import QUEUES, Resource
from scheduler.load.archive import archive_of
from scheduler.settings.watched import WATCHED
from scheduler.tools.simulate.what_if.picture import Picture


def picture_of(body: Mapping[str, Any]) -> Picture:
    """Return the cluster as the file has it, with the settings of the file."""
    raw = body["rawObjects"]
    objects: dict[Resource, tuple[KubeObject, ...]] = {}
    absent = set()
    for kind in WATCHED:
        if not kind.archived_as or kind.resource == QUEUES:
            continue
        items = raw.get(kind.archived_as)
        if items is None and kind.is_optional:
            absent.add(kind.resource)
        objects[kind.resource] = tuple(convert(item, kind.as_type) for item in items or ())
    archive = archive_of(body)
    return Picture(
        objects={resource: items for resource, items in objects.items() if resource not in absent},
        queues=tuple(raw.get("queues") or ()),
        taken_at=archive.now,
        settings=archive.settings,
        absent=frozenset(absent),
    )
