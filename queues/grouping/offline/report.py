"""Group the pods of manifests without a cluster, by the rules of the controller.

The objects of the files are the whole cluster. Workloads without pods get those that their controller would create.
The pods are then decided on in file order, and each decision is applied to these objects, so that later pods see the
groups of earlier ones.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kube import keys
from kube.keys import ASSUMED_SCHEDULER
from queues.grouping.base import (
    Json,
    KindDefault,
    Settings,
    annotations_of,
    dig,
    dig_list,
    dig_map,
    dig_text,
    full_name,
    kind_of,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from queues.grouping.engine.reconcile import GroupingDecision, decide
from queues.grouping.engine.write import pod_group_patch, pod_patch
from queues.grouping.errors import GroupingError, NotReadableError, NotThereError
from queues.grouping.metadata import parse_kind_defaults
from queues.grouping.offline.file_cluster import POD_GROUP_API, FileCluster, key_of
from queues.grouping.offline.manifests import CLUSTER_SCOPED
from queues.grouping.offline.rights import granted_rights
from queues.grouping.offline.synthesis.described import described_pods
from queues.grouping.offline.synthesis.pods import stable_suffix, stable_uid
from queues.grouping.offline.synthesis.serving import pod_clique_objects
from queues.grouping.offline.synthesis.table import children_of
from queues.grouping.offline.without_pods import Making, is_passive, notes_on


@dataclass(frozen=True, slots=True, kw_only=True)
class PodResult:
    """The result for one pod.

    Attributes
    ----------
    error : why the pod cannot be grouped
    skipped : why the pod grouper passes it over
    """

    pod_group: str = ""
    sub_group: str = ""
    error: str = ""
    skipped: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReport:
    """The pod groups that the files would get, and the result for each pod."""

    pod_groups: tuple[Json, ...]
    pods: Mapping[str, PodResult]
    notes: Mapping[str, str] = field(default_factory=dict)
    """Notes on objects without pods, see `without_pods`."""


def group_objects(
    objects: Sequence[Json], settings: Settings, *, defaults_config_map: tuple[str, str] = ("", "")
) -> GroupReport:
    """Group every pod of the objects, and the pods that controllers would create for the others.

    Parameters
    ----------
    objects : parsed manifests, which are not modified
    defaults_config_map : namespace and name of the ConfigMap with defaults per kind; a Config among the
        objects may name it too
    """
    expanded = expand(objects, settings, defaults_config_map=defaults_config_map)
    cluster, settings = expanded.cluster, expanded.settings
    results: dict[str, PodResult] = {}
    for pod in cluster.of_kind("", "Pod"):
        results[full_name(pod)] = _group(pod, cluster, settings)
    return GroupReport(
        pod_groups=tuple(cluster.objects[_key(name)] for name in cluster.written),
        pods=results,
        notes=notes_on(expanded.manifests, expanded.making, cluster, settings),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedPods:
    """The pods of manifests and of their controllers, and the pod groups they belong to.

    Attributes
    ----------
    errors : why a pod cannot be grouped, by `namespace/name`
    """

    pods: tuple[Json, ...]
    pod_groups: tuple[Json, ...]
    errors: Mapping[str, str]


def group_pods(objects: Sequence[Json], settings: Settings) -> GroupedPods:
    """Return the bodies that the controllers of the objects and the grouper would create."""
    expanded = expand(objects, settings)
    cluster, errors = expanded.cluster, {}
    for pod in cluster.of_kind("", "Pod"):
        result = _group(pod, cluster, expanded.settings)
        if result.error:
            errors[full_name(pod)] = result.error
    return GroupedPods(
        pods=tuple(cluster.of_kind("", "Pod")),
        pod_groups=tuple(cluster.objects[_key(name)] for name in cluster.written),
        errors=errors,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandedObjects:
    """The objects, the pods of their workloads, and the settings of a Config among them.

    Attributes
    ----------
    manifests : the objects of the files, without those of controllers
    making : what is known about the pods that were predicted
    """

    cluster: FileCluster
    settings: Settings
    manifests: Sequence[Json]
    making: Making


def expand(
    objects: Sequence[Json], settings: Settings, *, defaults_config_map: tuple[str, str] = ("", "")
) -> ExpandedObjects:
    """Complete the objects as an API server and the controllers of workloads would."""
    cluster = FileCluster()
    for number, obj in enumerate(objects):
        cluster.add(_completed(copy.deepcopy(obj), number))
    cluster.rights = granted_rights(cluster.objects.values())
    settings, config_map = _configured(cluster, settings, defaults_config_map)
    cluster.defaults = _defaults(cluster, config_map)
    _link_owners(cluster)
    manifests = tuple(cluster.objects.values())
    making = _make_pods(cluster, settings)
    return ExpandedObjects(cluster=cluster, settings=settings, manifests=manifests, making=making)


def _group(pod: Json, cluster: FileCluster, settings: Settings) -> PodResult:
    """Decide on one pod, and write what was decided into the objects."""
    try:
        decision = decide(pod, cluster, settings)
    except GroupingError as error:
        return PodResult(error=str(error))
    if decision.skip is None:
        _apply(pod, decision, cluster, settings)
    return PodResult(
        pod_group=annotations_of(pod).get(keys.POD_GROUP, ""),
        sub_group=labels_of(pod).get(keys.SUB_GROUP, ""),
        skipped=decision.skip.value if decision.skip else "",
    )


def _apply(pod: Json, decision: GroupingDecision, cluster: FileCluster, settings: Settings) -> None:
    assert decision.body is not None
    stored = cluster.pod_group(namespace_of(pod), decision.pod_group)
    if stored is None:
        cluster.add(decision.body)
    else:
        merge(stored, pod_group_patch(stored, decision.body, settings) or {})
    cluster.written[f"{namespace_of(pod)}/{decision.pod_group}"] = None
    merge(pod, pod_patch(pod, decision.pod_group, decision.sub_group) or {})


def _key(name: str) -> tuple[str, str, str, str]:
    """Return the key of a pod group among the objects, from its `namespace/name`."""
    namespace, _, group = name.partition("/")
    return (POD_GROUP_API, "PodGroup", namespace, group)


def merge(target: Json, patch: Json) -> None:
    """Apply a JSON merge patch in place."""
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            inner = target.get(key)
            if not isinstance(inner, dict):
                inner = target[key] = {}
            merge(inner, value)
        else:
            target[key] = value


def _completed(obj: Json, number: int) -> Json:
    """Set what the API server would: namespace, uid and name; `number` makes generated names differ."""
    metadata = obj["metadata"]
    if kind_of(obj).kind not in CLUSTER_SCOPED:
        metadata.setdefault("namespace", "default")
    if not metadata.get("name"):
        prefix = metadata["generateName"]
        metadata["name"] = prefix + stable_suffix(5, obj["kind"], prefix, str(number))
    if not metadata.get("uid"):
        metadata["uid"] = stable_uid(
            obj["apiVersion"], obj["kind"], namespace_of(obj), metadata["name"]
        )
    return obj


def _link_owners(cluster: FileCluster) -> None:
    """Set the uid of owner references without one, if the files have the owner."""
    for obj in list(cluster.objects.values()):
        for reference in dig_list(obj, "metadata", "ownerReferences"):
            if not isinstance(reference, dict) or reference.get("uid"):
                continue
            try:
                owner = cluster.get(
                    dig_text(reference, "apiVersion"),
                    dig_text(reference, "kind"),
                    namespace_of(obj),
                    dig_text(reference, "name"),
                )
            except (NotThereError, NotReadableError):
                continue
            reference["uid"] = uid_of(owner)


def _make_pods(cluster: FileCluster, settings: Settings) -> Making:
    """Add the pods of each workload that owns no pod or workload among the objects."""
    owner_uids = {
        dig_text(reference, "uid")
        for obj in cluster.objects.values()
        if not is_passive(kind_of(obj)) or obj["kind"] == "Pod"
        for reference in dig_list(obj, "metadata", "ownerReferences")
    }
    making = Making()
    for obj in list(cluster.objects.values()):
        if obj["kind"] == "Pod" or uid_of(obj) in owner_uids:
            continue
        try:
            children = _children(obj, cluster)
        except GroupingError as error:
            making.failed[uid_of(obj)] = str(error)
            continue
        for child in children:
            if child.pop(ASSUMED_SCHEDULER, False):
                making.assumed.add(uid_of(obj))
                child["spec"]["schedulerName"] = settings.scheduler_name
            if key_of(child) not in cluster.objects:
                cluster.add(child)
    return making


def _children(obj: Json, cluster: FileCluster) -> list[Json]:
    if obj["kind"] != "PodCliqueSet":
        described = described_pods(obj, cluster.kartas(kind_of(obj)))
        return children_of(obj) if described is None else described
    # The operator names the gangs of a set `<set>-<number>`.
    gangs = [
        gang
        for gang in cluster.of_kind("scheduler.grove.io", "PodGang")
        if name_of(gang).rpartition("-")[0] == name_of(obj)
    ]
    return pod_clique_objects(obj, gangs)


def _configured(
    cluster: FileCluster, settings: Settings, config_map: tuple[str, str]
) -> tuple[Settings, tuple[str, str]]:
    """Apply a `kai-config` among the files, as the operator passes it on to the pod grouper.

    Returns
    -------
    the settings, and namespace and name of the ConfigMap with defaults: the given one, else that of the Config
    """
    config = cluster.objects.get(("kai.scheduler", "Config", "", "kai-config"))
    if config is None:
        return settings, config_map
    common = dig_map(config, "spec", "global")
    args = dig_map(config, "spec", "podGrouper", "args")
    flags = {
        "scheduler_name": dig_text(common, "schedulerName"),
        "queue_label": dig_text(common, "queueLabelKey"),
        "node_pool_label": dig_text(common, "nodePoolLabelKey"),
        "knative_gang": dig(args, "gangScheduleKnative"),
        "karta_fallback": dig(args, "genericKartaFallback"),
    }
    stated_flags: dict[str, Any] = {
        key: value for key, value in flags.items() if value not in (None, "")
    }
    named_config_map = (
        dig_text(args, "defaultPrioritiesConfigMapNamespace"),
        dig_text(args, "defaultPrioritiesConfigMapName"),
    )
    return replace(settings, **stated_flags), config_map if any(config_map) else named_config_map


def _defaults(cluster: FileCluster, config_map: tuple[str, str]) -> Mapping[str, KindDefault]:
    if not all(config_map):
        return {}
    body = cluster.objects.get(("", "ConfigMap", *config_map))
    if body is None:
        return {}
    try:
        return parse_kind_defaults(body)
    except GroupingError:
        return {}
