"""After an edit of the tree: look at it again, and take the edit back if somebody else has broken it meanwhile.

Our own edits run one at a time, and the webhook judges those of others; what is left are others on clusters
whose API server cannot ask us.
"""

from __future__ import annotations

import logging

from kube.errors import ConflictError
from kube.gateway import Gateway
from kube.resources import QUEUES
from queues.editing.bodies import live_tree, parent_of, patch_between, read_or_none, version_of
from queues.editing.tags import tag_of_body
from queues.editing.write_requests import Body
from queues.errors import HierarchyError
from queues.tree import hierarchy
from queues.tree.shape import Finding

log = logging.getLogger(__name__)

FIELD_MANAGER = "kaiweb"
# Status writes come a few times a second at most; each costs one try.
TRIES = 8


def keep_sound(gateway: Gateway, before: Body | None, written: Body) -> None:
    """Look at the tree after a creation or a move, and take it back if it does not hold.

    Raises
    ------
    HierarchyError : it was taken back
    """
    tree = live_tree(gateway)
    name = written["metadata"]["name"]
    problem = hierarchy.problem_of(tree, name) if name in tree else ""
    if not problem:
        return
    _take_back(gateway, before, written)
    raise HierarchyError(
        [
            Finding(
                pointer="/parent",
                code="tree-changed",
                message=f"the tree changed under the edit, which was taken back: {problem}",
                given=parent_of(written) or None,
            )
        ]
    )


def _take_back(gateway: Gateway, before: Body | None, written: Body) -> None:
    name = written["metadata"]["name"]
    for _attempt in range(TRIES):
        current = read_or_none(gateway, name)
        if current is None or tag_of_body(current) != tag_of_body(written):
            return  # somebody has edited it since: theirs to judge
        try:
            if before is None:
                gateway.delete(QUEUES, name, resource_version=version_of(current))
            else:
                patch = patch_between(current, before)
                patch.setdefault("metadata", {})["resourceVersion"] = version_of(current)
                gateway.patch(QUEUES, name, patch, field_manager=FIELD_MANAGER)
        except ConflictError:
            continue
        return
    log.error("queue '%s': the edit that broke the tree could not be taken back", name)


def keep_children(gateway: Gateway, deleted: Body) -> None:
    """Make a deleted queue again if somebody else has put a queue below it meanwhile.

    Raises
    ------
    HierarchyError : it was made again
    """
    name = deleted["metadata"]["name"]
    tree = live_tree(gateway)
    children = [child for child in hierarchy.children(tree, name) if child != name]
    if not children or name in tree:
        return
    kept = ("name", "labels", "annotations")
    metadata = {key: deleted["metadata"][key] for key in kept if key in deleted["metadata"]}
    gateway.create(QUEUES, {**deleted, "metadata": metadata})
    raise HierarchyError(
        [
            Finding(
                pointer="/name",
                code="has-children",
                message=f"queue '{name}' got child queues [{' '.join(children)}] while it was deleted,"
                " so it was made again",
                given=name,
            )
        ]
    )
