"""A part of the queue tree as one nested document, and the edits that make the cluster agree with it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kaiweb.planning.plan import Body, difference_of, edit_to, fields_of
from queues.editing import edits
from queues.editing.bodies import parent_of
from queues.tree import hierarchy
from queues.tree.shape import Finding, shown
from scheduler.tools.simulate.what_if.question import QuestionError, QueueEdit

MAX_QUEUES = 5_000
MAX_DEPTH = 64
CHILDREN = "children"


@dataclass(frozen=True, slots=True)
class _Node:
    """A queue of the document; `parent` is None for its root."""

    name: str
    parent: str | None
    fields: dict[str, Any]
    pointer: str


def tree_of(queues: Mapping[str, Body], root: str) -> dict[str, Any]:
    """Return the editable fields of a queue, and those of the queues below it as `children`."""
    below = _children(queues)

    def node(name: str, path: frozenset[str]) -> dict[str, Any]:
        names = [child for child in below.get(name, ()) if child not in path]
        fields = edit_to({}, fields_of(queues[name]))
        fields.pop("parent", None)
        children = [node(child, path | {child}) for child in names]
        return {"name": name, **fields, CHILDREN: children}

    return node(root, frozenset({root}))


def names_below(queues: Mapping[str, Body], root: str) -> set[str]:
    """Return the names of a queue and of all queues below it."""
    return hierarchy.below([root], _children(queues)) if root in queues else set()


def _children(queues: Mapping[str, Body]) -> dict[str, list[str]]:
    """Return parent -> the names of its children; only the parent of each body is read."""
    children: dict[str, list[str]] = {}
    for name, body in sorted(queues.items()):
        children.setdefault(parent_of(body), []).append(name)
    return children


def edits_to(
    queues: Mapping[str, Body], root: str, document: object, *, prune: bool
) -> list[QueueEdit]:
    """Return the edits after which the queues have the fields that the document names.

    A field that the document does not name stays, and so does the parent of the root. Queues of the document that do
    not exist are created; with `prune` those below the root that it does not name are deleted.

    Raises
    ------
    QuestionError : the document is malformed, or names a queue twice
    """
    queue_edits: list[QueueEdit] = []
    named: set[str] = set()
    for node in _nodes(document, None, "", 0):
        name = node.name
        if name in named:
            raise _fault(f"{node.pointer}/name", f"queue '{shown(name)}' is named twice")
        if not named and name != root:
            raise _fault("/name", f"name: expected '{shown(root)}' as in the address, got '{shown(name)}'")  # fmt: skip
        named.add(name)
        if len(named) > MAX_QUEUES:
            raise _fault("", f"expected at most {MAX_QUEUES} queues")
        edit = _edit(queues.get(name), node)
        if edit is not None:
            queue_edits.append(edit)
    if prune:
        surplus = sorted(names_below(queues, root) - named)
        queue_edits += [QueueEdit(name=name, action="delete") for name in surplus]
    return queue_edits


def _edit(body: Body | None, node: _Node) -> QueueEdit | None:
    """Return the edit of one queue, None if it has these fields already."""
    name, fields = node.name, dict(node.fields)
    if node.parent is not None:
        fields["parent"] = node.parent
    if body is None:
        return QueueEdit(name=name, action="create", edit=fields)
    new, faults = edits.apply(body, fields)
    is_change = bool(faults) or bool(difference_of(fields_of(body), fields_of(new)))
    return QueueEdit(name=name, edit=fields) if is_change else None


def _nodes(value: object, parent: str | None, pointer: str, depth: int) -> Iterator[_Node]:
    """Yield the queues of the document, parents first."""
    if depth > MAX_DEPTH:
        raise _fault(pointer, f"expected at most {MAX_DEPTH} levels")
    if not isinstance(value, Mapping):
        raise _fault(pointer, f"expected an object, got {shown(value)}")
    name, children = value.get("name"), value.get(CHILDREN, [])
    if not isinstance(name, str) or not name:
        raise _fault(f"{pointer}/name", f"name: expected a string, got {shown(name)}")
    if "parent" in value:
        raise _fault(f"{pointer}/parent", "parent: expected none, the nesting says it")
    if not isinstance(children, list):
        raise _fault(f"{pointer}/{CHILDREN}", f"children: expected a list, got {shown(children)}")
    fields = {key: field for key, field in value.items() if key not in ("name", CHILDREN)}
    yield _Node(name, parent, fields, pointer)
    for index, child in enumerate(children):
        yield from _nodes(child, name, f"{pointer}/{CHILDREN}/{index}", depth + 1)


def _fault(pointer: str, message: str) -> QuestionError:
    return QuestionError(Finding(pointer=pointer, code="type", message=message))
