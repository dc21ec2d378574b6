"""Read and write a cycle's input as a file, KAI's `snapshot.zip`.

One member, `snapshot.json`: the configuration, the scheduler's parameters, and the raw objects as the
API gave them. What KAI's file lacks (the moment it was taken, labels of namespaces) we add under keys
of our own, which KAI's tool ignores; reading does without them.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import IO, Any

import msgspec

from kube.errors import NotFoundError
from kube.gateway import Gateway, Listing
from kube.keys import QUEUE
from kube.objects.config import Override, ShardSpec
from kube.objects.meta import KubeObject, convert
from kube.resources import CONFIGMAPS, NODES, PODGROUPS, QUEUES, RESOURCE_CLAIMS, Resource
from kube.store import Store, StoreView
from scheduler.core.cluster.inputs import PlainRequest
from scheduler.core.config import SchedulerConfig
from scheduler.core.decisions import ActionName
from scheduler.settings.params import ShardParams
from scheduler.settings.shard import ShardSettings, core_config, plugin_config
from scheduler.settings.watched import WATCHED

MEMBER = "snapshot.json"
#: What pods that are gone requested: pairs of a request and a number.
PAST = "pastRequests"
LISTED = "1"  # any version: the kind is served
RAW: dict[str, Resource] = {item.archived_as: item.resource for item in WATCHED if item.archived_as}
_NANOSECONDS = 1e9


class ArchiveError(Exception):
    """A file that is no snapshot; the message says what was expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """A saved cycle: the cluster as it was, how the scheduler was set up, when, and what was there before."""

    view: StoreView
    settings: ShardSettings
    now: float
    past_requests: Mapping[PlainRequest, float] = field(default_factory=dict)


def read_archive(path: Path) -> Archive:
    """Read a snapshot file.

    Raises
    ------
    ArchiveError : no zip, no `snapshot.json` in it, or no objects in that
    """
    return archive_of(read_body(path))


def read_body(path: Path) -> dict[str, Any]:
    """Read the JSON of a snapshot file; the moment it was taken is in it, if only as the time of the file.

    Raises
    ------
    ArchiveError : no zip, no `snapshot.json` in it, or no objects in that
    """
    try:
        with zipfile.ZipFile(path) as archive:
            body = json.loads(archive.read(MEMBER))
            taken = datetime(*archive.getinfo(MEMBER).date_time, tzinfo=UTC)
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise ArchiveError(f"{path}: expected a zip with {MEMBER}: {error}") from error
    if not isinstance(body, dict) or not isinstance(body.get("rawObjects"), dict):
        raise ArchiveError(f"{path}: expected an object `rawObjects` in {MEMBER}")
    own_part = body.get("kaiweb") or {}
    return {**body, "kaiweb": {**own_part, "now": float(own_part.get("now") or taken.timestamp())}}


def archive_of(body: Mapping[str, Any]) -> Archive:
    """Return the saved cycle that the JSON of a snapshot file describes."""
    core = _core(body.get("config") or {}, body.get("schedulerParams") or {})
    params = _params(body.get("schedulerParams") or {})
    return Archive(
        view=_view(body["rawObjects"]),
        settings=ShardSettings(
            params=replace(params, keeps_room=core.has_plugin("backfill")), core=core
        ),
        now=float(body["kaiweb"]["now"]),
        past_requests=_past_requests(body["kaiweb"].get(PAST) or ()),
    )


def _past_requests(pairs: Sequence[Any]) -> dict[PlainRequest, float]:
    """Return what pods that are gone requested; equal requests of an anonymised file are added up."""
    past: dict[PlainRequest, float] = {}
    for request, count in msgspec.convert(pairs, tuple[tuple[PlainRequest, float], ...]):
        past[request] = past.get(request, 0.0) + count
    return past


def write_archive(
    path: Path,
    objects: Mapping[str, Sequence[Mapping[str, Any]]],
    settings: ShardSettings,
    now: float,
    past_requests: Mapping[PlainRequest, float] | None = None,
) -> None:
    """Write a snapshot file that KAI's own tool can read."""
    write_body(path, body_of(objects, settings, now, past_requests))


def body_of(
    objects: Mapping[str, Sequence[Mapping[str, Any]]],
    settings: ShardSettings,
    now: float,
    past_requests: Mapping[PlainRequest, float] | None = None,
) -> dict[str, Any]:
    """Return the JSON of a snapshot file; only a running scheduler knows the past requests."""
    return {
        "config": _config_body(settings.core),
        "schedulerParams": _params_body(settings),
        "rawObjects": {key: list(objects[key]) for key in RAW if key in objects},
        "discovery": {},
        "kaiweb": {
            "now": now,
            "shard": settings.params.name,
            PAST: msgspec.to_builtins(tuple((past_requests or {}).items())),
        },
    }


def write_body(file: Path | IO[bytes], body: Mapping[str, Any]) -> None:
    """Write the JSON of a snapshot file."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MEMBER, json.dumps(body))


def read_objects(
    gateway: Gateway, params: ShardParams, without: Collection[Resource] = ()
) -> dict[str, list[dict[str, Any]]]:
    """Read the raw objects of a snapshot, but not some kinds; a kind that is not served is empty."""
    objects: dict[str, list[dict[str, Any]]] = {}
    for key, resource in RAW.items():
        if resource in without:
            continue
        try:
            listing = gateway.list(resource, as_type=dict)
        except NotFoundError:
            objects[key] = []
            continue
        is_shared = resource not in (NODES, QUEUES, PODGROUPS)
        objects[key] = [
            item
            for item in listing.items
            if is_shared or params.owns(item["metadata"].get("labels") or {})
        ]
    return objects


def _view(objects: Mapping[str, Any]) -> StoreView:
    types: dict[Resource, type[KubeObject]] = {item.resource: item.as_type for item in WATCHED}
    store = Store()
    for key, resource in RAW.items():
        saved = objects.get(key)
        if saved is None and resource in (CONFIGMAPS, RESOURCE_CLAIMS):
            continue  # not saved is not the same as empty
        items = tuple(convert(item, types[resource]) for item in saved or ())
        store.replace(resource, Listing(items=items, resource_version=LISTED))
    return store.view()


# ------------------------------------------------------------------------------------ configuration


def _core(config: Mapping[str, Any], params: Mapping[str, Any]) -> SchedulerConfig:
    """Return the core's configuration; what the file lacks has KAI's built-in default."""
    text = config.get("actions")
    base = core_config(
        ShardSpec(
            scenario_search_budgets=config.get("scenarioSearchBudgets") or None,
            actions={name.value: Override(enabled=True) for name in ActionName},
        )
    )
    actions = base.actions
    if text:
        actions = tuple(ActionName(name.strip()) for name in text.split(",") if name.strip())
    tiers = config.get("tiers") or ()
    plugins = [plugin for tier in tiers for plugin in tier.get("plugins") or ()]
    victims = params.get("maxNumberConsolidationPreemptees", 16)
    grace = params.get("globalDefaultStalenessGracePeriod")
    return replace(
        base,
        actions=actions,
        plugins=tuple(plugin_config(item["name"], item.get("arguments") or {}) for item in plugins)
        if plugins
        else SchedulerConfig().plugins,
        queue_depth={
            ActionName(key): depth
            for key, depth in (config.get("queueDepthPerAction") or {}).items()
            if ActionName(key) in actions
        },
        max_consolidation_victims=inf if victims < 0 else victims,
        restrict_node_scheduling=bool(params.get("restrictSchedulingNodes", False)),
        schedule_csi_storage=bool(params.get("scheduleCSIStorage", False)),
        use_scheduling_signatures=bool(params.get("useSchedulingSignatures", True)),
        full_hierarchy_fairness=bool(params.get("fullHierarchyFairness", True)),
        allow_consolidating_reclaim=bool(params.get("allowConsolidatingReclaim", True)),
        staleness_grace_s=60.0 if grace is None else grace / _NANOSECONDS,
        queue_label_key=params.get("queueLabelKey") or QUEUE,
        broken_gangs_first=bool(params.get("brokenGangsFirst", False)),
        reclaim_in_quota_by_priority=bool(params.get("reclaimInQuotaByPriority", False)),
    )


def _params(body: Mapping[str, Any]) -> ShardParams:
    partition = body.get("partitionParams") or {}
    default = ShardParams()
    stuck = body.get("stuckInReleasingThreshold")
    return ShardParams(
        scheduler_name=body.get("schedulerName") or default.scheduler_name,
        node_pool_label_key=partition.get("NodePoolLabelKey", default.node_pool_label_key),
        partition_value=partition.get("NodePoolLabelValue", ""),
        queue_label_key=body.get("queueLabelKey") or default.queue_label_key,
        restrict_node_scheduling=bool(body.get("restrictSchedulingNodes", False)),
        stuck_in_releasing_s=default.stuck_in_releasing_s if not stuck else stuck / _NANOSECONDS,
        schedule_csi_storage=bool(body.get("scheduleCSIStorage", False)),
        detailed_fit_errors=bool(body.get("detailedFitErrors", False)),
    )


def _config_body(core: SchedulerConfig) -> dict[str, Any]:
    plugins = [
        {"name": plugin.name, "arguments": argument_texts(plugin.arguments)}
        for plugin in core.plugins
    ]
    return {
        "actions": ", ".join(action.value for action in core.actions),
        "tiers": [{"plugins": plugins}],
        "queueDepthPerAction": {key.value: value for key, value in core.queue_depth.items()},
    }


def argument_texts(arguments: Any) -> dict[str, str]:
    """Return a plugin's arguments as KAI names and writes them."""
    names = {
        "k_value": "kValue",
        "saturation_multiplier": "reclaimerUtilizationMultiplier",
        "cpu": "cpu",
        "gpu": "gpu",
        "default_preempt_s": "defaultPreemptMinRuntime",
        "default_reclaim_s": "defaultReclaimMinRuntime",
        "reclaim_resolve_method": "reclaimResolveMethod",
        "ignore": "ignoreList",
        "reconstruct_available": "reconstructAvailable",
        "max_cel_cache_entries": "maxCelCacheEntries",
        "reservations": "reservations",
        "horizon_s": "horizon",
    }
    texts = {}
    for name in arguments.__dataclass_fields__:
        value = getattr(arguments, name)
        if name.endswith("_s"):
            texts[names[name]] = f"{value:.15g}s"
        elif isinstance(value, bool):
            texts[names[name]] = str(value).lower()
        elif isinstance(value, tuple):
            texts[names[name]] = ",".join(value)
        else:
            texts[names[name]] = f"{value:.15g}" if isinstance(value, float) else str(value)
    return texts


def _params_body(settings: ShardSettings) -> dict[str, Any]:
    core, params = settings.core, settings.params
    victims = core.max_consolidation_victims
    return {
        "schedulerName": params.scheduler_name,
        "restrictSchedulingNodes": core.restrict_node_scheduling,
        "partitionParams": {
            "NodePoolLabelKey": params.node_pool_label_key,
            "NodePoolLabelValue": params.partition_value,
        },
        "maxNumberConsolidationPreemptees": -1 if victims == inf else int(victims),
        "scheduleCSIStorage": core.schedule_csi_storage,
        "useSchedulingSignatures": core.use_scheduling_signatures,
        "fullHierarchyFairness": core.full_hierarchy_fairness,
        "allowConsolidatingReclaim": core.allow_consolidating_reclaim,
        "numOfStatusRecordingWorkers": 5,
        "globalDefaultStalenessGracePeriod": int(core.staleness_grace_s * _NANOSECONDS),
        "schedulePeriod": int(params.schedule_period_s * _NANOSECONDS),
        "stuckInReleasingThreshold": int(params.stuck_in_releasing_s * _NANOSECONDS),
        "detailedFitErrors": params.detailed_fit_errors,
        "updatePodEvictionCondition": params.update_pod_eviction_condition,
        "queueLabelKey": params.queue_label_key,
        "brokenGangsFirst": core.broken_gangs_first,
        "reclaimInQuotaByPriority": core.reclaim_in_quota_by_priority,
    }
