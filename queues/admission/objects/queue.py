"""The queue webhook: the rules of the tree (`queues.tree.hierarchy`), and optionally KAI's quota comparison.

The comparison repeats KAI's warnings word for word for installations that enable it; like KAI's, it does not treat -1
as unlimited. Our own rules do, and always run.
"""

from __future__ import annotations

from collections.abc import Iterator

from queues.admission.review import ALLOWED, DeniedError, ReviewRequest, Verdict
from queues.tree import hierarchy
from queues.tree.hierarchy import ADMISSION, Tree
from queues.tree.shape import RESOURCES, Finding, QueueShape, read_queue

NO_RESOURCES = "resources must be specified"
NAMES = {"cpu": "CPU", "gpu": "GPU", "memory": "Memory"}
ORDER = ("cpu", "gpu", "memory")
PLACES = {"cpu": 0, "gpu": 2, "memory": 0}


def validate_queue(request: ReviewRequest, tree: Tree, *, compares_quotas: bool = False) -> Verdict:
    """Validate a creation or an update against the current tree.

    Deletions are allowed, as in KAI, because clients that delete by name may delete parents before children. The
    children are then orphans, are shown as such, and recover when their parent is created again.
    """
    if request.operation == "DELETE":
        return ALLOWED
    old = request.old_object or None
    spec = request.object.get("spec")
    if not isinstance(spec, dict) or spec.get("resources") is None:
        return Verdict(message=NO_RESOURCES, warnings=(NO_RESOURCES,))
    # The tree may already hold the queue that this request creates.
    tree = {
        name: shape for name, shape in tree.items() if old is not None or name != _name(request)
    }
    verdict = _verdict(hierarchy.check(tree, old=old, new=request.object, rules=ADMISSION))
    if not compares_quotas or not verdict.is_allowed:
        return verdict
    compared = tuple(quota_warnings(read_queue(request.object)[0], tree, is_update=old is not None))
    return Verdict(warnings=(*verdict.warnings, *compared))


def quota_warnings(queue: QueueShape, tree: Tree, *, is_update: bool) -> Iterator[str]:
    """Yield KAI's warnings about quotas that exceed the parent's, and the children's of an updated parent.

    Raises
    ------
    DeniedError : the parent does not exist or states no resources
    """
    if queue.parent:
        yield from _against_parent(queue, tree)
    children = [tree[name] for name in hierarchy.children(tree, queue.name)]
    if is_update and children:
        yield from _against_children(queue, children)


def _against_parent(queue: QueueShape, tree: Tree) -> Iterator[str]:
    parent = tree.get(queue.parent)
    if parent is None:
        raise DeniedError(
            f"failed to get parent queue {queue.parent}: queues.scheduling.run.ai "
            f'"{queue.parent}" not found'
        )
    if not parent.has_resources:
        raise DeniedError(f"parent queue {queue.parent} has no resources defined")
    siblings = [tree[name] for name in hierarchy.children(tree, parent.name) if name != queue.name]
    for resource in ORDER:
        own_quota, parent_quota = _quota(queue, resource), _quota(parent, resource)
        if own_quota > parent_quota:
            yield (
                f"child queue {NAMES[resource]} quota ({_number(own_quota, resource)}) exceeds parent queue "
                f"{parent.name} {NAMES[resource]} quota ({_number(parent_quota, resource)})"
            )
        total = own_quota + sum(_quota(sibling, resource) for sibling in siblings)
        if total > parent_quota:
            yield (
                f"total children {NAMES[resource]} quota ({_number(total, resource)}) exceeds parent "
                f"queue {parent.name} {NAMES[resource]} quota ({_number(parent_quota, resource)})"
            )


def _against_children(queue: QueueShape, children: list[QueueShape]) -> Iterator[str]:
    for resource in ORDER:
        above = _quota(queue, resource)
        for child in children:
            child_quota = _quota(child, resource)
            if child_quota > above:
                yield (
                    f"child queue {child.name} {NAMES[resource]} quota ({_number(child_quota, resource)}) "
                    f"exceeds parent {NAMES[resource]} quota ({_number(above, resource)})"
                )
        total = sum(_quota(child, resource) for child in children)
        if total > above:
            yield (
                f"total children {NAMES[resource]} quota ({_number(total, resource)}) exceeds parent "
                f"{NAMES[resource]} quota ({_number(above, resource)})"
            )


def _verdict(findings: tuple[Finding, ...]) -> Verdict:
    return Verdict(
        message="; ".join(finding.message for finding in hierarchy.errors(findings)),
        warnings=tuple(finding.message for finding in hierarchy.warnings(findings)),
    )


def _quota(queue: QueueShape, resource: str) -> float:
    assert resource in RESOURCES
    return queue.quota[resource] or 0.0


def _number(value: float, resource: str) -> str:
    return f"{value:.{PLACES[resource]}f}"


def _name(request: ReviewRequest) -> str:
    metadata = request.object.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else request.name
