"""Apply the edits of a question to a copy of the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from kube.errors import BadValueError
from kube.keys import POD_GROUP
from kube.objects.bindrequest import BindRequest
from kube.objects.config import SchedulingShard
from kube.objects.meta import KubeObject, convert
from kube.objects.pod import Pod, PodStatus
from kube.objects.podgroup import PodGroup
from kube.resources import BINDREQUESTS, NODES, PODGROUPS, PODS, Resource
from kube.values.times import format_time
from queues.editing import edits
from queues.tree import hierarchy
from queues.tree.amounts import Usage
from queues.tree.shape import Finding, QueueShape, shapes_of
from queues.workloads.holds import Hold, annotations_of_hold
from scheduler.core.errors import ConfigError
from scheduler.settings.params import ShardParams
from scheduler.settings.shard import ShardSettings, settings_of
from scheduler.tools.simulate.what_if.objects import (
    manifest_objects,
    node_objects,
    workload_objects,
)
from scheduler.tools.simulate.what_if.picture import Body, Picture
from scheduler.tools.simulate.what_if.question import (
    NodeEdits,
    Question,
    QuestionError,
    QueueEdit,
    WorkloadEdits,
)

UNKNOWN_QUEUE = "unknown-queue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """The cluster after the edits.

    Attributes
    ----------
    errors : why the edits could not be made; then the cluster is as it was
    """

    picture: Picture
    settings: ShardSettings
    errors: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()


def settings_of_picture(picture: Picture, name: str) -> ShardSettings:
    """Return the settings of the shard as it is.

    Raises
    ------
    ConfigError : its object has a wrong value
    """
    if picture.settings is not None:
        return picture.settings
    shard = None if picture.shard is None else convert(picture.shard, SchedulingShard)
    return settings_of(name, shard, picture.config)


def apply_edits(picture: Picture, question: Question, usage: Mapping[str, Usage]) -> Edited:
    """Return the edited cluster.

    Parameters
    ----------
    usage : what queues hold now, for the warnings of edits

    Raises
    ------
    QuestionError : an added or removed object that cannot be read or does not exist
    """
    settings, errors = _edited_settings(picture, question)
    queues = EditedQueues({body["metadata"]["name"]: body for body in picture.queues}, usage)
    for number, edit in enumerate(question.queues):
        queues.apply(number, edit, picture.taken_at)
    objects: Mapping[Resource, tuple[KubeObject, ...]] = picture.objects
    warnings: tuple[Finding, ...] = ()
    if question.workloads != WorkloadEdits() or question.nodes != NodeEdits():
        objects, warnings = _edited_objects(picture, question, settings.params)
    return Edited(
        picture=replace(picture, objects=objects, queues=tuple(queues.bodies.values())),
        settings=settings,
        errors=(*errors, *queues.errors),
        warnings=(*queues.warnings, *warnings),
    )


def _edited_settings(
    picture: Picture, question: Question
) -> tuple[ShardSettings, tuple[Finding, ...]]:
    current = settings_of_picture(picture, question.shard)
    if not question.settings:
        return current, ()
    if picture.settings is not None:
        text = "settings of a saved cycle are read from its file and cannot be edited"
        return current, (Finding(pointer="/settings", code="settings", message=text),)
    base = picture.shard or {"metadata": {"name": question.shard}, "spec": {}}
    spec = merged(base.get("spec") or {}, question.settings)
    try:
        shard = convert({**base, "spec": spec}, SchedulingShard)
        return settings_of(question.shard, shard, picture.config), ()
    except (ConfigError, BadValueError) as error:
        return current, (Finding(pointer="/settings", code="settings", message=str(error)),)


def merged(base: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON value after a merge patch (RFC 7396)."""
    result = dict(base)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping):
            old = result.get(name)
            result[name] = merged(old if isinstance(old, Mapping) else {}, value)
        else:
            result[name] = value
    return result


@dataclass(slots=True)
class EditedQueues:
    """The queues while edits are applied one after the other; `put` changes them."""

    #: By name.
    bodies: dict[str, Body]
    #: By queue.
    usage: Mapping[str, Usage]
    errors: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    #: By name, as in `bodies`: reading thousands of bodies anew for each edit would take seconds.
    shapes: dict[str, QueueShape] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read the shapes of the bodies, unless they are known."""
        if not self.shapes:
            self.shapes = shapes_of(self.bodies.values())

    def copy(self) -> EditedQueues:
        """Return the same queues without findings."""
        return EditedQueues(dict(self.bodies), self.usage, shapes=dict(self.shapes))

    def put(self, name: str, body: Body | None) -> None:
        """Set the body of a queue; None removes the queue."""
        self.bodies.pop(name, None)
        self.shapes.pop(name, None)
        if body is not None:
            self.bodies[name] = body
            self.shapes |= shapes_of([body])

    def apply(self, number: int, edit: QueueEdit, now: float) -> None:
        """Apply an edit unless it or the tree with it has errors; keep the findings."""
        old = self.bodies.get(edit.name)
        new, faults = _edited_queue(old, edit, now)
        findings: tuple[Finding, ...]
        if old is None and edit.action != "create":
            text = f"queue '{edit.name}' does not exist"
            findings = (Finding(pointer="", code=UNKNOWN_QUEUE, message=text),)
        else:
            before = None if edit.action == "create" else old
            judged = hierarchy.check(self.shapes, old=before, new=new, usage=self.usage)
            findings = (*faults, *judged)
        errors = hierarchy.errors(findings)
        self.errors += [_in_question(number, finding) for finding in errors]
        self.warnings += [_in_question(number, finding) for finding in hierarchy.warnings(findings)]
        if not errors:
            self.put(edit.name, new)


def _edited_queue(
    old: Body | None, edit: QueueEdit, now: float
) -> tuple[Body | None, tuple[Finding, ...]]:
    if edit.action == "delete":
        return None, ()
    if edit.action == "create":
        new, faults = edits.apply(edits.new_queue(edit.name), edit.edit)
        moment = format_time(datetime.fromtimestamp(now, UTC))
        new["metadata"].update(uid=f"simulated-{edit.name}", creationTimestamp=moment)
        return new, faults
    if old is None:
        return None, ()
    base = old if edit.action == "update" else edits.bare_queue(edit.name, old["metadata"])
    return edits.apply(base, edit.edit)


def _in_question(number: int, finding: Finding) -> Finding:
    """Return a finding about an edit with its pointer from the root of the question."""
    return replace(finding, pointer=f"/queues/{number}/edit{finding.pointer}")


def _edited_objects(
    picture: Picture, question: Question, params: ShardParams
) -> tuple[dict[Any, tuple[KubeObject, ...]], tuple[Finding, ...]]:
    objects = dict(picture.objects)
    groups: dict[str, Any] = _by_key(objects.get(PODGROUPS, ()))
    pods: dict[str, Any] = _by_key(objects.get(PODS, ()))
    nodes: dict[str, Any] = _by_key(objects.get(NODES, ()))
    removed_nodes = _existing(question.nodes.remove, nodes, "/nodes/remove", "node")
    removed_groups = _existing(question.workloads.remove, groups, "/workloads/remove", "workload")
    requeued = _existing(question.workloads.requeue, groups, "/workloads/requeue", "workload")
    pods = _remaining_pods(pods, removed_groups, removed_nodes, requeued)
    _set_holds(groups, question.workloads)
    groups = {key: group for key, group in groups.items() if key not in removed_groups}
    models = dict(nodes)
    nodes = {name: node for name, node in nodes.items() if name not in removed_nodes}
    for entry in question.nodes.add:
        for node in node_objects(entry, models, picture.taken_at):
            _add(nodes, node, "/nodes/add", "node")
    warnings = _add_workloads(groups, pods, question, params, picture.taken_at)
    requests = [
        item
        for item in objects.get(BINDREQUESTS, ())
        if isinstance(item, BindRequest)
        and f"{item.metadata.namespace}/{item.spec.pod_name}" in pods
        and item.spec.selected_node not in removed_nodes
    ]
    objects.update(
        {
            PODGROUPS: tuple(groups.values()),
            PODS: tuple(pods.values()),
            NODES: tuple(nodes.values()),
            BINDREQUESTS: tuple(requests),
        }
    )
    return objects, warnings


def _by_key(items: Iterable[KubeObject]) -> dict[str, KubeObject]:
    return {item.key: item for item in items}


def _existing(names: list[str], objects: Mapping[str, Any], pointer: str, what: str) -> set[str]:
    """Return names as a set; refuse one that no object has."""
    for index, name in enumerate(names):
        if name not in objects:
            raise QuestionError(
                Finding(
                    pointer=f"{pointer}/{index}",
                    code=f"unknown-{what}",
                    message=f"{what} '{name}' does not exist",
                    given=name,
                )
            )
    return set(names)


def _set_holds(groups: dict[str, PodGroup], workload_edits: WorkloadEdits) -> None:
    """Hold and release workloads by the annotations of their pod groups."""
    for action, hold in (("hold", Hold("simulated")), ("release", None)):
        patch = annotations_of_hold(hold)
        names = getattr(workload_edits, action)
        for key in _existing(names, groups, f"/workloads/{action}", "workload"):
            metadata = groups[key].metadata
            annotations = merged(metadata.annotations, patch)
            groups[key] = msgspec.structs.replace(
                groups[key], metadata=msgspec.structs.replace(metadata, annotations=annotations)
            )


def _remaining_pods(
    pods: Mapping[str, Pod], removed_groups: set[str], removed_nodes: set[str], requeued: set[str]
) -> dict[str, Pod]:
    """Return the pods that remain; those of removed nodes and of requeued workloads are pending again.

    Pods of removed nodes that no workload owns are gone.
    """
    remaining = {}
    for key, pod in pods.items():
        group = pod.metadata.annotations.get(POD_GROUP, "")
        group_key = f"{pod.metadata.namespace}/{group}"
        if group and group_key in removed_groups:
            continue
        loses_place = pod.spec.node_name in removed_nodes or (group and group_key in requeued)
        if loses_place and pod.spec.node_name and not pod.is_finished:
            if not group:
                continue
            spec = msgspec.structs.replace(pod.spec, node_name="")
            pod = msgspec.structs.replace(pod, spec=spec, status=PodStatus(phase="Pending"))
        remaining[key] = pod
    return remaining


def _add_workloads(
    groups: dict[str, PodGroup],
    pods: dict[str, Pod],
    question: Question,
    params: ShardParams,
    now: float,
) -> tuple[Finding, ...]:
    for workload in question.workloads.add:
        group, members = workload_objects(workload, params, now)
        _add(groups, group, "/workloads/add", "workload")
        for pod in members:
            _add(pods, pod, "/workloads/add", "pod")
    if not question.workloads.manifests:
        return ()
    added_groups, added_pods, warnings = manifest_objects(question.workloads.manifests, params, now)
    for group in added_groups:
        _add(groups, group, "/workloads/manifests", "workload")
    for pod in added_pods:
        _add(pods, pod, "/workloads/manifests", "pod")
    return warnings


def _add(objects: dict[str, Any], value: KubeObject, pointer: str, what: str) -> None:
    if value.key in objects:
        raise QuestionError(
            Finding(
                pointer=pointer,
                code="exists",
                message=f"{what} '{value.key}' exists already",
                given=value.key,
            )
        )
    objects[value.key] = value
