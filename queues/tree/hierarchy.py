"""The rules of the queue tree, used by webhook, REST, dry run and the hints of the UI.

`check` judges one edit (create, update, move, delete) of one queue in a tree and returns errors, which refuse
the edit, and warnings. It never raises and reads only its arguments: no Django, no cluster.

An edit without errors keeps a sound tree sound: every queue reaches a root, so that the scheduler ignores
none. `STRICT` (REST) refuses a parent that does not exist. `ADMISSION` (the webhook) only warns about it,
because `kubectl apply -f` may create children before parents, as with KAI, and also only warns about names
too long for a label. The webhook does not check deletions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kube.values.durations import UNITS, parse_duration
from queues.tree.amounts import NO_USAGE, Usage, among_relatives, own_amounts
from queues.tree.model_bounds import model_bounds
from queues.tree.shape import (
    LABEL_LENGTH,
    Finding,
    QueueShape,
    Severity,
    read_queue,
    shown,
)

Tree = Mapping[str, QueueShape]
LONG_RUNTIME_NS = 24 * UNITS["h"]
#: Field of a shape -> its name in REST.
RUNTIMES = {
    "preempt_min_runtime": "preemptMinRuntime",
    "reclaim_min_runtime": "reclaimMinRuntime",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How strictly an edit is judged."""

    max_depth: int = 32
    missing_parent: Severity = Severity.ERROR
    long_name: Severity = Severity.ERROR
    checks_places: bool = True


STRICT = Rules()
ADMISSION = Rules(missing_parent=Severity.WARNING, long_name=Severity.WARNING, checks_places=False)


def check(
    tree: Tree,
    *,
    old: object | None,
    new: object | None,
    rules: Rules = STRICT,
    usage: Mapping[str, Usage] | None = None,
) -> tuple[Finding, ...]:
    """Judge one edit.

    Parameters
    ----------
    tree : every queue there is, by name, before the edit
    old : the Queue body before, None for a creation
    new : the Queue body after, None for a deletion
    usage : what queues hold now, by name; None skips the checks against it

    Returns
    -------
    errors first, then warnings, each in a fixed order
    """
    findings = list(_judge(tree, old, new, rules, usage or {}))
    return tuple(sorted(findings, key=lambda finding: finding.severity != Severity.ERROR))


def errors(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the findings that refuse the edit."""
    return tuple(finding for finding in findings if finding.severity == Severity.ERROR)


def warnings(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the findings that do not refuse the edit."""
    return tuple(finding for finding in findings if finding.severity == Severity.WARNING)


def ancestors(tree: Tree, name: str) -> list[str]:
    """Return the queue, its parent and so on; ends at a root, a missing parent or a circle."""
    path: list[str] = []
    visited: set[str] = set()
    while name and name in tree and name not in visited:
        path.append(name)
        visited.add(name)
        name = tree[name].parent
    return path


def children(tree: Tree, name: str) -> list[str]:
    """Return the names of the direct children, sorted."""
    return sorted(child.name for child in tree.values() if child.parent == name)


def subtree(tree: Tree, name: str) -> set[str]:
    """Return the queue and everything below it."""
    children: dict[str, list[str]] = {}
    for queue in tree.values():
        children.setdefault(queue.parent, []).append(queue.name)
    return below([name], children)


def below(names: Iterable[str], children: Mapping[str, Iterable[str]]) -> set[str]:
    """Return queues and everything below them.

    children : parent -> its direct children
    """
    subtree: set[str] = set()
    to_visit = list(names)
    while to_visit:
        name = to_visit.pop()
        if name not in subtree:
            subtree.add(name)
            to_visit += children.get(name, ())
    return subtree


def problem_of(tree: Tree, name: str) -> str:
    """Return why the scheduler ignores this queue; empty if it does not."""
    path = ancestors(tree, name)
    if not path:
        return f"queue '{name}' does not exist"
    missing = tree[path[-1]].parent
    if not missing:
        return ""
    if missing in tree:
        return f"queue '{missing}' is among its own ancestors"
    if len(path) == 1:
        return f"parent queue '{missing}' does not exist"
    return f"parent queue '{missing}' of its ancestor '{path[-1]}' does not exist"


def _judge(
    tree: Tree, old: object | None, new: object | None, rules: Rules, usage: Mapping[str, Usage]
) -> Iterator[Finding]:
    if new is None:
        yield from _deletion(tree, read_queue(old)[0].name, usage)
        return
    shape, unreadable = read_queue(new)
    yield from unreadable
    before = read_queue(old)[0] if old is not None else None
    if before is None and shape.name in tree:
        yield Finding(
            pointer="/name",
            code="exists",
            message=f"queue '{shape.name}' exists already",
            given=shape.name,
        )
        return
    if before is not None and before.name != shape.name:
        yield Finding(
            pointer="/name",
            code="immutable",
            message=f"the name of a queue cannot change: expected '{before.name}',"
            f" got '{shape.name}'",
            given=shape.name,
            allowed=before.name,
        )
        return
    if not shape.name:
        return  # reported above; the other rules need a name
    if before is None and len(shape.name) > LABEL_LENGTH:
        yield Finding(
            pointer="/name",
            code="name",
            message=f"queue '{shown(shape.name)}': expected a name of at most {LABEL_LENGTH} characters,"
            f" got {len(shape.name)}; no label of a workload can hold it",
            severity=rules.long_name,
            given=shown(shape.name),
            allowed=LABEL_LENGTH,
        )
    after = {**tree, shape.name: shape}
    yield from _place(after, shape, before, rules, usage)
    yield from own_amounts(
        shape, usage.get(shape.name, NO_USAGE), checks_places=rules.checks_places
    )
    yield from among_relatives(after, shape, before)
    yield from model_bounds(after, shape)
    yield from _runtimes(shape)


def _deletion(tree: Tree, name: str, usage: Mapping[str, Usage]) -> Iterator[Finding]:
    below = [child for child in children(tree, name) if child != name]
    if below:
        yield Finding(
            pointer="/name",
            code="has-children",
            message=f"cannot delete queue {name}: it has child queues [{' '.join(below)}]",
            given=name,
        )
    workloads = usage.get(name, NO_USAGE).workloads
    if workloads:
        yield Finding(
            pointer="/name",
            code="has-workloads",
            message=f"queue '{name}' has {workloads} workloads, which would no longer be scheduled",
            severity=Severity.WARNING,
            given=workloads,
        )


def _place(
    after: Tree,
    shape: QueueShape,
    before: QueueShape | None,
    rules: Rules,
    usage: Mapping[str, Usage],
) -> Iterator[Finding]:
    is_kept = before is not None and before.parent == shape.parent
    path = ancestors(after, shape.name)
    top = after[path[-1]].parent
    if top and top in after:
        # A circle that exists already must not refuse edits that leave the parent as it is.
        yield _parent_finding(
            shape,
            "cycle",
            f"queue '{shape.name}' cannot be below '{shape.parent}':"
            f" '{top}' would be among its own ancestors",
            Severity.WARNING if is_kept else Severity.ERROR,
        )
        return
    if top:
        severity = Severity.WARNING if is_kept else rules.missing_parent
        yield _parent_finding(shape, "missing-parent", problem_of(after, shape.name), severity)
        return
    if is_kept:
        return
    depth = len(path) + _height(after, shape.name) - 1
    if depth > rules.max_depth:
        yield _parent_finding(
            shape,
            "depth",
            f"queue '{shape.name}' would make the tree {depth} levels deep,"
            f" allowed are {rules.max_depth}",
            Severity.ERROR,
            allowed=rules.max_depth,
        )
    if shape.parent and usage.get(shape.parent, NO_USAGE).workloads:
        yield _parent_finding(
            shape,
            "parent-has-workloads",
            f"queue '{shape.parent}' has workloads of its own; only leaf queues run work,"
            " so they would stop being scheduled",
            Severity.WARNING,
        )


def _parent_finding(
    shape: QueueShape, code: str, message: str, severity: Severity, allowed: object = None
) -> Finding:
    return Finding(
        pointer="/parent",
        code=code,
        message=message,
        severity=severity,
        given=shape.parent or None,
        allowed=shown(allowed),
    )


def _height(tree: Tree, name: str) -> int:
    """Return the number of levels of the subtree (1 for a leaf)."""
    below: dict[str, list[str]] = {}
    for queue in tree.values():
        below.setdefault(queue.parent, []).append(queue.name)
    level, height = [name], 0
    visited: set[str] = set()
    while level:
        height += 1
        visited.update(level)
        level = [child for name in level for child in below.get(name, []) if child not in visited]
    return height


def _runtimes(shape: QueueShape) -> Iterator[Finding]:
    for field, name in RUNTIMES.items():
        text = getattr(shape, field)
        if text and parse_duration(text) > LONG_RUNTIME_NS:
            yield Finding(
                pointer=f"/{name}",
                code="long-runtime",
                message=f"{name} {text} is longer than 24 hours",
                severity=Severity.WARNING,
                given=text,
                allowed="24h",
            )
