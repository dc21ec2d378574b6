"""Read queues of the cluster, and fields of their bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kube.errors import NotFoundError
from kube.gateway import Gateway
from kube.resources import QUEUES
from queues.editing import edits
from queues.editing.write_requests import Body
from queues.tree.options import option_annotations
from queues.tree.shape import NAME_PATTERN, QueueShape, shapes_of

Tree = dict[str, QueueShape]


def read_or_none(gateway: Gateway, name: str) -> Body | None:
    """Return a queue of the cluster, None if it does not exist."""
    if not NAME_PATTERN.fullmatch(name):
        return None  # no object can have this name, and it must not become part of a URL
    try:
        return gateway.get(QUEUES, name, as_type=dict)
    except NotFoundError:
        return None


def live_tree(gateway: Gateway) -> Tree:
    """Return the cluster's queues as shapes by name."""
    listing = gateway.list(QUEUES, as_type=dict)
    return shapes_of(listing.items)


def patch_between(before: Body, after: Body) -> Body:
    """Return the merge patch of spec, labels and options."""
    return edits.merge_patch(
        {"spec": before.get("spec") or {}, "metadata": _edited_metadata(before)},
        {"spec": after.get("spec") or {}, "metadata": _edited_metadata(after)},
    )


def _edited_metadata(body: Mapping[str, Any]) -> Body:
    metadata = body["metadata"]
    return {
        "labels": metadata.get("labels") or {},
        "annotations": option_annotations(metadata.get("annotations")),
    }


def parent_of(body: Mapping[str, Any] | None) -> str:
    """Return the name of the parent; empty for a root queue or no queue."""
    return str(((body or {}).get("spec") or {}).get("parentQueue") or "")


def resource_version_of(body: Mapping[str, Any]) -> str:
    """Return the resourceVersion; empty if there is none."""
    return str(body["metadata"].get("resourceVersion", ""))
