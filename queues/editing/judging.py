"""Check an edit against the rules of the tree and the rights of the caller."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kube.values.durations import parse_duration
from queues import selectors
from queues.editing.bodies import Tree
from queues.editing.policies import change_policy
from queues.editing.write_requests import Body, WriteRequest
from queues.errors import HierarchyError, MissingRightError
from queues.models import BelowUse
from queues.tree import hierarchy
from queues.tree.amounts import priority_of
from queues.tree.shape import Finding, QueueShape, Severity, read_queue

# These are warnings for admins, but errors for callers whose rights cover only a subtree.
BORDER_CODES = frozenset({"children-over-parent", "limit-over-parent"})
#: Findings about a bound that falls below what the queue uses.
BELOW_USE = frozenset({"limit-below-allocated", "quota-below-non-preemptible"})


def judge(
    tree: Tree, old: Body | None, new: Body, faults: Sequence[Finding], request: WriteRequest
) -> tuple[Finding, ...]:
    """Return the warnings of an edit.

    Raises
    ------
    HierarchyError : the edit has errors
    """
    usage = selectors.usage()
    findings = (*faults, *hierarchy.check(tree, old=old, new=new, usage=usage))
    if not request.rights.is_admin:
        earlier_findings = (
            hierarchy.check(tree, old=old, new=old, usage=usage) if old is not None else ()
        )
        findings = tuple(
            replace(finding, severity=Severity.ERROR)
            if finding.code in BORDER_CODES and finding not in earlier_findings
            else finding
            for finding in findings
        )
        findings += tuple(_above_the_subtree(tree, old, new))
    if not request.is_planned and change_policy().below_use == BelowUse.BLOCK:
        findings = tuple(
            replace(finding, severity=Severity.ERROR) if finding.code in BELOW_USE else finding
            for finding in findings
        )
    refuse_faults(hierarchy.errors(findings))
    return findings


def _above_the_subtree(tree: Tree, old: Body | None, new: Body) -> Iterator[Finding]:
    """Yield what only an admin may grant: more priority or a longer minimum runtime than the queues above have.

    What the queue has already may stay.
    """
    shape = read_queue(new)[0]
    before = read_queue(old)[0] if old is not None else None
    above = [tree[name] for name in hierarchy.ancestors(tree, shape.parent) if name in tree]
    if not above:
        return
    highest = priority_of(above[0])
    is_same_priority = before is not None and shape.priority == before.priority
    if shape.priority is not None and not is_same_priority and shape.priority > highest:
        yield Finding(
            pointer="/priority",
            code="priority-over-parent",
            message=f"queue '{shape.name}': only an admin may set a priority above that of its parent,"
            f" {highest}, got {shape.priority}",
            given=shape.priority,
            allowed=highest,
        )
    for field, name in hierarchy.RUNTIMES.items():
        runtime, allowed = getattr(shape, field), _nearest(above, field)
        is_same = before is not None and runtime == getattr(before, field)
        if is_same or not runtime or parse_duration(runtime) <= parse_duration(allowed or "0"):
            continue
        bound = (
            f"longer than that of the queues above, {allowed}"
            if allowed
            else "where the queues above state none"
        )
        yield Finding(
            pointer=f"/{name}",
            code="runtime-over-parent",
            message=f"queue '{shape.name}': only an admin may set a {name} {bound}, got {runtime}",
            given=runtime,
            allowed=allowed or "0s",
        )


def _nearest(above: Sequence[QueueShape], field: str) -> str:
    """Return the value of the nearest queue above that states one, else an empty text."""
    return next((value for shape in above if (value := getattr(shape, field))), "")


def refuse_faults(faults: Sequence[Finding]) -> None:
    """Raise HierarchyError if there are any."""
    if faults:
        raise HierarchyError(faults)


def name_faults(body: Body) -> tuple[Finding, ...]:
    """Return what is wrong with the name of a queue."""
    return tuple(finding for finding in read_queue(body)[1] if finding.pointer == "/name")


def require_edit(tree: Tree, old: Body, new: Body, request: WriteRequest) -> None:
    """Raise MissingRightError unless the caller may make this edit."""
    before, after = read_queue(old)[0], read_queue(new)[0]
    if not request.rights.may_edit(hierarchy.ancestors(tree, before.name)):
        raise MissingRightError(
            f"changing queue '{before.name}' needs the right 'edit' on a queue above it"
        )
    if before.parent != after.parent:
        require_place(tree, after.parent, request)


def require_place(tree: Tree, parent: str, request: WriteRequest) -> None:
    """Raise MissingRightError unless the caller may create or move a queue below this parent."""
    if not request.rights.may_place_under(hierarchy.ancestors(tree, parent)):
        place_text = f"below '{parent}'" if parent else "at the top of the tree"
        raise MissingRightError(f"placing a queue {place_text} needs the right 'edit' there")
