"""The question of a what-if simulation: which edits, and how many cycles. Read from JSON, with every field checked."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, field

from queues.tree.shape import Finding, shown

MAX_CYCLES = 50
MAX_EDITS = 500
MAX_PODS = 5_000
MAX_NODES = 2_000

Name = Annotated[
    str, Meta(min_length=1, max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
]
Key = Annotated[str, Meta(min_length=3, max_length=507, pattern=r"^[^/]+/[^/]+$")]
Amount = Annotated[float, Meta(ge=0, le=1e18)]
T = TypeVar("T")
#: The end of msgspec's message, which says where in the value the error is.
PLACE = re.compile(r" - at `(?:key in )?\$(.*)`$")


class Struct(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """Base of the parts of a question."""


class QueueEdit(Struct, frozen=True, kw_only=True):
    """An edit of one queue; `edit` has the fields of `PATCH /queues/{name}`."""

    name: Name
    action: Literal["update", "replace", "create", "delete"] = "update"
    edit: dict[str, Any] = {}


class NewWorkload(Struct, frozen=True, kw_only=True):
    """A workload of equal pods. `gpu` below 1 is a part of one device."""

    name: Name
    queue: Name
    namespace: Name = "default"
    pods: Annotated[int, Meta(ge=1, le=MAX_PODS)] = 1
    min_member: Annotated[int, Meta(ge=1, le=MAX_PODS)] | None = None
    priority_class: str = ""
    preemptibility: Literal["", "preemptible", "non-preemptible", "semi-preemptible"] = ""
    gpu: Amount = 0.0
    gpu_memory_mib: Annotated[int, Meta(ge=0, le=10**9)] = 0
    cpu_milli: Amount = 0.0
    memory_bytes: Amount = 0.0
    node_selector: dict[str, str] = {}


class NewNodes(Struct, frozen=True, kw_only=True):
    """Equal empty nodes: copies of a node (`like`), or nodes with the amounts given."""

    count: Annotated[int, Meta(ge=1, le=MAX_NODES)] = 1
    name: Name = "simulated"
    like: str = ""
    gpu: Annotated[int, Meta(ge=0, le=1024)] = 8
    cpu_milli: Amount = 64_000.0
    memory_bytes: Amount = 512e9
    gpu_memory_mib: Annotated[int, Meta(ge=0, le=10**9)] = 81_920
    labels: dict[str, str] = {}


class WorkloadEdits(Struct, frozen=True, kw_only=True):
    """Workloads to add (described, or as manifests), and others (`namespace/name`) to remove or to act on.

    hold : their waiting pods get no place
    release : the opposite
    requeue : their pods wait again, as if their owner had created them anew
    """

    add: Annotated[list[NewWorkload], Meta(max_length=MAX_EDITS)] = []
    manifests: Annotated[list[dict[str, Any]], Meta(max_length=MAX_EDITS)] = []
    remove: Annotated[list[Key], Meta(max_length=MAX_EDITS)] = []
    hold: Annotated[list[Key], Meta(max_length=MAX_EDITS)] = []
    release: Annotated[list[Key], Meta(max_length=MAX_EDITS)] = []
    requeue: Annotated[list[Key], Meta(max_length=MAX_EDITS)] = []


class NodeEdits(Struct, frozen=True, kw_only=True):
    """Nodes to add, and names of nodes to remove; pods of removed nodes wait for a new place."""

    add: Annotated[list[NewNodes], Meta(max_length=MAX_EDITS)] = []
    remove: Annotated[list[Name], Meta(max_length=MAX_NODES)] = []


class Question(Struct, frozen=True, kw_only=True):
    """Everything that is edited before the cycles run.

    Attributes
    ----------
    settings : a merge patch of the spec of the SchedulingShard
    """

    shard: Name = "default"
    cycles: Annotated[int, Meta(ge=1, le=MAX_CYCLES)] = 1
    queues: Annotated[list[QueueEdit], Meta(max_length=MAX_EDITS)] = []
    workloads: WorkloadEdits = field(default_factory=WorkloadEdits)
    nodes: NodeEdits = field(default_factory=NodeEdits)
    settings: dict[str, Any] = {}


class QuestionError(Exception):
    """A question that cannot be simulated; the findings point at the fields."""

    def __init__(self, *findings: Finding) -> None:
        super().__init__("; ".join(finding.message for finding in findings))
        self.findings = findings


def read_question(body: object) -> Question:
    """Return the question in a JSON value.

    Raises
    ------
    QuestionError : an unknown field, a wrong type, a value out of range
    """
    question = read_body(body, Question)
    pods = sum(workload.pods for workload in question.workloads.add)
    if pods > MAX_PODS:
        raise too_many("/workloads/add", "pods", pods, MAX_PODS)
    nodes = sum(entry.count for entry in question.nodes.add)
    if nodes > MAX_NODES:
        raise too_many("/nodes/add", "nodes", nodes, MAX_NODES)
    return question


def read_body(body: object, as_type: type[T]) -> T:
    """Return a JSON value as a struct.

    Raises
    ------
    QuestionError : an unknown field, a wrong type, a value out of range
    """
    try:
        return msgspec.convert(body, as_type)
    except msgspec.ValidationError as error:
        raise QuestionError(_finding(str(error))) from error


def too_many(pointer: str, items_text: str, count: int, limit: int) -> QuestionError:
    """Return the refusal of a question that is too large."""
    return QuestionError(
        Finding(
            pointer=pointer,
            code="too-many",
            message=f"{pointer[1:]}: expected at most {limit} {items_text}, got {count}",
            given=count,
            allowed=limit,
        )
    )


def _finding(text: str) -> Finding:
    place = PLACE.search(text)
    message = text[: place.start()] if place else text
    pointer = re.sub(r"\[(\d+|\.\.\.)\]", r"/\1", place[1]).replace(".", "/") if place else ""
    code = "unknown-field" if "unknown field" in message else "type"
    return Finding(
        pointer=pointer,
        code=code,
        message=f"{pointer[1:] or 'the body'}: {shown(message)}",
    )
