"""Check the tree again after an edit, and undo the edit if a concurrent one made the tree unsound.

Our own edits run one at a time, and the webhook checks those of other clients. This covers clusters whose API
server cannot reach our webhook.
"""

from __future__ import annotations

import logging

from kube.errors import ConflictError
from kube.gateway import Gateway, PatchOptions
from kube.resources import QUEUES
from queues.editing.bodies import (
    live_tree,
    parent_of,
    patch_between,
    read_or_none,
    resource_version_of,
)
from queues.editing.tags import tag_of_body
from queues.editing.write_requests import Body
from queues.errors import HierarchyError
from queues.tree import hierarchy
from queues.tree.shape import Finding

log = logging.getLogger(__name__)

FIELD_MANAGER = "kaiweb"
# Status is written a few times a second at most; each write costs one try.
TRIES = 8


def undo_if_unsound(gateway: Gateway, before: Body | None, written: Body) -> None:
    """Check the tree after a creation or a move, and undo it if the queue no longer reaches a root.

    Raises
    ------
    HierarchyError : the edit was undone
    """
    tree = live_tree(gateway)
    name = written["metadata"]["name"]
    problem = hierarchy.problem_of(tree, name) if name in tree else ""
    if not problem:
        return
    _undo(gateway, before, written)
    raise HierarchyError(
        [
            Finding(
                pointer="/parent",
                code="tree-changed",
                message=f"the tree changed during the edit, which was undone: {problem}",
                given=parent_of(written) or None,
            )
        ]
    )


def _undo(gateway: Gateway, before: Body | None, written: Body) -> None:
    name = written["metadata"]["name"]
    for _attempt in range(TRIES):
        current = read_or_none(gateway, name)
        if current is None or tag_of_body(current) != tag_of_body(written):
            return  # edited by somebody else since, which must not be undone
        try:
            if before is None:
                gateway.delete(QUEUES, name, resource_version=resource_version_of(current))
            else:
                patch = patch_between(current, before)
                patch.setdefault("metadata", {})["resourceVersion"] = resource_version_of(current)
                options = PatchOptions(field_manager=FIELD_MANAGER)
                gateway.patch(QUEUES, name, patch, options=options)
        except ConflictError:
            continue
        return
    log.error("queue '%s': the edit that made the tree unsound could not be undone", name)


def recreate_if_parent(gateway: Gateway, deleted: Body) -> None:
    """Create a deleted queue again if a queue was created below it during the deletion.

    Raises
    ------
    HierarchyError : it was created again
    """
    name = deleted["metadata"]["name"]
    tree = live_tree(gateway)
    children = [child for child in hierarchy.children(tree, name) if child != name]
    if not children or name in tree:
        return
    fields = ("name", "labels", "annotations")
    metadata = {key: deleted["metadata"][key] for key in fields if key in deleted["metadata"]}
    gateway.create(QUEUES, {**deleted, "metadata": metadata})
    raise HierarchyError(
        [
            Finding(
                pointer="/name",
                code="has-children",
                message=f"queue '{name}' got child queues [{' '.join(children)}] while it was deleted,"
                " so it was created again",
                given=name,
            )
        ]
    )
