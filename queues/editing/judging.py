"""Check an edit against the rules of the tree and the rights of the caller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from queues import selectors
from queues.editing.bodies import Tree
from queues.editing.write_requests import Body, WriteRequest
from queues.errors import HierarchyError, MissingRightError
from queues.tree import hierarchy
from queues.tree.shape import Finding, Severity, read_queue

# These are warnings for admins, but errors for callers whose rights cover only a subtree.
BORDER_CODES = frozenset({"children-over-parent", "limit-over-parent"})


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
    refuse_faults(hierarchy.errors(findings))
    return findings


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
