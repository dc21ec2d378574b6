"""Notes on objects without pods: why none can be predicted, and which group a pod of theirs would get.

Without a note, users would conclude that the object needs no pod group. Only objects that never own pods (queues,
services, secrets) get none. There are also notes on predicted pods whose template is not in the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kube.keys import ASSUMED_SCHEDULER
from queues.grouping.base import (
    Json,
    Kind,
    Lookups,
    Settings,
    dig,
    dig_list,
    dig_map,
    dig_text,
    kind_of,
    name_of,
    namespace_of,
    uid_of,
)
from queues.grouping.engine.owners import reference_kind, references_of
from queues.grouping.engine.reconcile import decide
from queues.grouping.engine.table import select_grouper
from queues.grouping.errors import GroupingError
from queues.grouping.families.launchers import skip_top_owner_grouper
from queues.grouping.karta.karta import fitting_definitions, refusal_of
from queues.grouping.offline.file_cluster import OPTIONAL
from queues.grouping.offline.manifests import object_label
from queues.grouping.offline.rights import ACCOUNT
from queues.grouping.offline.synthesis.pods import pod_of
from queues.grouping.offline.synthesis.suspended import suspension_of
from queues.grouping.offline.synthesis.table import has_synthesis

RUN_AI = "the run.ai operator makes its pods and decides how many"
ELSEWHERE: Mapping[tuple[str, str], str] = {
    ("run.ai", "TrainingWorkload"): RUN_AI,
    ("run.ai", "InteractiveWorkload"): RUN_AI,
    ("run.ai", "DistributedWorkload"): RUN_AI,
    ("run.ai", "InferenceWorkload"): RUN_AI,
    ("run.ai", "DistributedInferenceWorkload"): RUN_AI,
    ("grove.io", "PodGangSet"): "the Grove operator makes its PodGangs and pods",
    (
        "kubeflow.org",
        "ScheduledWorkflow",
    ): "spec.workflow.spec is no workflow that can be read here",
    ("argoproj.io", "Workflow"): (
        "its entrypoint leads to no template with a container (a WorkflowTemplate is not read)"
    ),
}
PASSIVE_GROUPS = {
    "autoscaling",
    "policy",
    "kai.scheduler",
    "scheduling.run.ai",
    "scheduler.grove.io",
}
KARTA = ("run.ai", "Karta")
PASSIVE_KINDS = {KARTA, ("apps", "ControllerRevision")}


@dataclass(slots=True)
class Making:
    """Problems and assumptions of predicted pods, by the uid of their workload.

    Attributes
    ----------
    failed : why the pods of a workload cannot be predicted
    assumed : workloads whose pods' template, and so their scheduler, is not in the files
    """

    failed: dict[str, str] = field(default_factory=dict)
    assumed: set[str] = field(default_factory=set)


class Cluster(Lookups, Protocol):
    """The objects of the files, including predicted ones."""

    @property
    def objects(self) -> Mapping[tuple[str, str, str, str], Json]: ...


def notes_on(
    objects: Iterable[Json], making: Making, cluster: Cluster, settings: Settings
) -> dict[str, str]:
    """Return notes on objects without pods, or with pods whose scheduler is assumed.

    Parameters
    ----------
    objects : the objects of the files
    """
    objects = list(objects)
    view = _View(
        making=making,
        cluster=cluster,
        settings=settings,
        above_pods=_above_pods(cluster.objects.values()),
        owners={dig_text(reference, "uid") for obj in objects for reference in references_of(obj)},
    )
    notes = _missing_owners(objects, cluster)
    for obj in objects:
        note = _note_on(obj, view)
        if note:
            notes[object_label(obj)] = note
    return notes


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """What notes are derived from.

    Attributes
    ----------
    above_pods : uids of the owners of pods, at any level
    owners : uids of the owners of the files' objects
    """

    making: Making
    cluster: Cluster
    settings: Settings
    above_pods: set[str]
    owners: set[str]


def _note_on(obj: Json, view: _View) -> str:
    """Return the note on one object, or "" if there is nothing to say."""
    kind, uid = kind_of(obj), uid_of(obj)
    if (kind.group, kind.kind) == KARTA:
        refusal = refusal_of(obj) or _rivals(obj, view.cluster)
        return f"not used: {refusal}" if refusal else ""
    if uid in view.making.assumed:
        return (
            "the template of its pods is not in these files: they are taken to name the scheduler "
            f"{view.settings.scheduler_name}"
        )
    if uid in view.making.failed:
        return f"its pods cannot be told: {view.making.failed[uid]}"
    if uid in view.above_pods:
        return "" if view.cluster.may_read(kind) else _outside_role(uid, view.cluster)
    return "" if kind.kind == "Pod" or is_passive(kind) else _without_pods(obj, view)


def _without_pods(obj: Json, view: _View) -> str:
    """Return why no pods are predicted for an object, and what a pod of it would get."""
    is_owner = uid_of(obj) in view.owners
    reason = "it owns other objects here, but no pod is among them" if is_owner else _reason(obj)
    preview = _preview(obj, view.cluster, view.settings)
    return f"no pods are foretold: {reason}" + (f"; {preview}" if preview else "")


def _missing_owners(objects: Iterable[Json], cluster: Cluster) -> dict[str, str]:
    """Return a note for every owner that a cluster would hold and let the grouper read, but the files do not hold."""
    notes = {}
    for obj in objects:
        for reference in references_of(obj):
            kind, namespace = reference_kind(reference), namespace_of(obj)
            name = dig_text(reference, "name")
            key = (kind.group, kind.kind, namespace, name)
            if (kind.group, kind.kind) in OPTIONAL and key not in cluster.objects:
                notes[f"{kind.kind} {namespace}/{name}"] = (
                    f"{object_label(obj)} names it as its owner, but it is not in these files: "
                    "what it says about the pod group is not known"
                )
    return notes


def _outside_role(uid: str, cluster: Cluster) -> str:
    """Return how a cluster groups below an owner that the pod grouper's role does not cover."""
    owns_pods = any(
        dig_text(reference, "uid") == uid
        for obj in cluster.objects.values()
        if obj["kind"] == "Pod"
        for reference in references_of(obj)[:1]
    )
    consequence = (
        "each pod of it gets a group of its own"
        if owns_pods
        else "its pods are grouped by the owner below it"
    )
    return (
        f"the role of the pod grouper does not cover this kind: {consequence}, "
        f"until a ClusterRole bound to the account {ACCOUNT} lets it be read"
    )


def _rivals(karta: Json, cluster: Cluster) -> str:
    """Return a note if several definitions are for the same kind, so that none is used."""
    root_kind = dig_map(karta, "spec", "structureDefinition", "rootComponent", "kind")
    kind = Kind(**{part: dig_text(root_kind, part) for part in ("group", "version", "kind")})
    count = len(fitting_definitions(cluster.kartas(kind), kind))
    return (
        f"{count} definitions are for {kind.kind}, so the base rules are used" if count > 1 else ""
    )


def _above_pods(objects: Iterable[Json]) -> set[str]:
    """Return the uids of all owners of pods, at any level."""
    everything = list(objects)
    parents = {uid_of(obj): references_of(obj) for obj in everything}
    uids_to_visit = [
        uid_of(obj)
        for obj in everything
        if kind_of(obj) == Kind(group="", version="v1", kind="Pod")
    ]
    owner_uids: set[str] = set()
    while uids_to_visit:
        for reference in parents.get(uids_to_visit.pop(), ()):
            uid = dig_text(reference, "uid")
            if uid not in owner_uids:
                owner_uids.add(uid)
                uids_to_visit.append(uid)
    return owner_uids


def is_passive(kind: Kind) -> bool:
    """Return whether objects of this kind never own pods."""
    if (kind.group, kind.kind) in PASSIVE_KINDS or kind.group in PASSIVE_GROUPS:
        return True
    if kind.group == "":
        return kind.kind != "ReplicationController"
    return kind.group.endswith(".k8s.io") and not kind.group.endswith(".x-k8s.io")


def _reason(obj: Json) -> str:
    kind, suspension = kind_of(obj), suspension_of(obj)
    if suspension:
        return f"it is suspended ({suspension})"
    explanation = ELSEWHERE.get((kind.group, kind.kind))
    if explanation:
        return explanation
    if has_synthesis(kind.group, kind.kind):
        return "its spec asks for none"
    return f"kind {kind.kind} of {kind.group or 'the core group'} is not known here and has no pod template at spec.template"


def _preview(obj: Json, cluster: Cluster, settings: Settings) -> str:
    """Return the group that a pod of the object would get; empty if such a pod cannot be grouped."""
    pod = pod_of(f"{name_of(obj)}-pod", obj, {})
    pod.pop(ASSUMED_SCHEDULER, None)
    pod["spec"]["schedulerName"] = settings.scheduler_name
    try:
        body = decide(pod, cluster, settings).body
    except GroupingError:
        return ""
    if body is None:
        return ""
    spec = body["spec"]
    (owner,) = dig_list(body, "metadata", "ownerReferences")
    least = spec.get("minMember", 0) if dig(spec, "minSubGroup") is None else spec["minSubGroup"]
    terms = f"queue {spec['queue']}, min member {least}, priority class {spec['priorityClassName']}"
    if owner["kind"] != "Pod":
        return f"a pod of it in these files would join {body['metadata']['name']} ({terms})"
    if select_grouper(kind_of(obj), settings) is skip_top_owner_grouper:
        return (
            f"a pod that it owns directly would get a group of its own ({terms}), "
            "pods of a workload that it makes are grouped by the rules of that kind"
        )
    return f"a pod of it in these files would get a group of its own ({terms})"
