"""Refuse questions and change sets that name what the caller may not see, as if it did not exist."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kaiweb.items.visibility import Visibility
from kube.keys import QUEUE
from queues.errors import UnknownQueueError
from queues.models import PodGroup, Queue
from queues.tree.shape import Finding
from scheduler.tools.simulate.what_if.question import Question, QuestionError, QueueEdit

#: Lists of existing workloads in a question.
ACTIONS = ("remove", "hold", "release", "requeue")


def refuse_hidden_names(question: Question, visibility: Visibility) -> None:
    """Raise QuestionError if a question names a queue or a workload that the caller may not see."""
    if not visibility.is_partial:
        return
    created = {edit.name for edit in question.queues if edit.action == "create"}
    findings = [
        _finding(pointer, f"queue '{name}' does not exist")
        for pointer, name in _named_queues(question)
        if name not in created and not visibility.shows(name)
    ]
    workloads = dict(_named_workloads(question))
    rows = visibility.rows(PodGroup.objects.filter(key__in=workloads.values()))
    visible = set(rows.values_list("key", flat=True))
    findings += [
        _finding(pointer, f"workload '{key}' does not exist")
        for pointer, key in workloads.items()
        if key not in visible
    ]
    if findings:
        raise QuestionError(*findings)


def refuse_hidden_edits(edits: Sequence[QueueEdit], visibility: Visibility) -> None:
    """Raise UnknownQueueError if edits name a queue that exists and that the caller may not see."""
    if not visibility.is_partial:
        return
    names = {name for edit in edits for name in (edit.name, _parent(edit.edit)) if name}
    unseen = [name for name in names if not visibility.shows(name)]
    hidden = Queue.objects.filter(name__in=unseen).order_by("name").values_list("name", flat=True)
    for name in hidden:
        raise UnknownQueueError(name)


def _named_queues(question: Question) -> Iterator[tuple[str, str]]:
    for index, edit in enumerate(question.queues):
        yield f"/queues/{index}/name", edit.name
        if _parent(edit.edit):
            yield f"/queues/{index}/edit/parent", _parent(edit.edit)
    for index, workload in enumerate(question.workloads.add):
        yield f"/workloads/add/{index}/queue", workload.queue
    for index, manifest in enumerate(question.workloads.manifests):
        for name in _labelled_queues(manifest):
            yield f"/workloads/manifests/{index}", name


def _named_workloads(question: Question) -> Iterator[tuple[str, str]]:
    for action in ACTIONS:
        for index, key in enumerate(getattr(question.workloads, action)):
            yield f"/workloads/{action}/{index}", key


def _labelled_queues(manifest: Any) -> Iterator[str]:
    """Yield the queues in the labels of an object and of its pod template."""
    for path in (("metadata",), ("spec", "template", "metadata")):
        part = manifest
        for name in (*path, "labels"):
            part = part.get(name) if isinstance(part, dict) else None
        if isinstance(part, dict) and isinstance(part.get(QUEUE), str):
            yield part[QUEUE]


def _parent(edit: dict[str, Any]) -> str:
    parent = edit.get("parent")
    return parent if isinstance(parent, str) else ""


def _finding(pointer: str, message: str) -> Finding:
    return Finding(pointer=pointer, code="unknown", message=message)
