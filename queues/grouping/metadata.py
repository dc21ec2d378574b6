"""The base rule: one group per top owner, with the labels and annotations that users may set.

Other rules start from `base_metadata` and change what their kind needs. Only the default rule reads priority,
preemptibility and the two durations from the whole owner chain; every other rule reads them from its top owner.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from kube import keys
from kube.objects.podgroup import PREEMPTIBILITIES
from kube.values.durations import format_duration, parse_duration
from queues.grouping.base import (
    Context,
    Json,
    KindDefault,
    Metadata,
    annotations_of,
    dig_text,
    kind_of,
    labels_of,
    name_of,
    namespace_of,
    owner_reference,
    topology_from,
    uid_of,
)
from queues.grouping.errors import GroupingError

# Strings that YAML reads as such without quotes, except for the words in `_YAML_WORDS`.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._/-]*")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_YAML_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}


def default_grouper(ctx: Context) -> Metadata:
    """Group by the top owner, with labels and annotations of every owner in the chain."""
    return base_metadata(ctx, candidates=ctx.owners or (ctx.top,))


def base_metadata(
    ctx: Context, *, candidates: Sequence[Json] = (), default_priority: str = keys.TRAIN
) -> Metadata:
    """Return the group of the context's top owner, minMember 1, no subgroups.

    Parameters
    ----------
    candidates : the owners that may state priority, preemptibility and durations; without any, only the top owner
    default_priority : the class where neither owner, pod nor the defaults of the kind name one
    """
    sources = candidates or (ctx.top,)
    return Metadata(
        name=group_name(ctx.top),
        namespace=namespace_of(ctx.pod),
        owner=owner_reference(ctx.top),
        labels=_labels(ctx),
        annotations=_annotations(ctx),
        queue=queue_name(ctx),
        priority_class=priority_class(ctx, sources, default_priority),
        preemptibility=preemptibility(ctx, sources),
        preemption_delay=stated_duration(ctx, sources, keys.PREEMPTION_DELAY, negative=False),
        staleness_grace=stated_duration(ctx, sources, keys.STALENESS_GRACE, negative=True),
        topology=topology_from(annotations_of(ctx.top)),
    )


def per_pod(metadata: Metadata, pod: Json) -> Metadata:
    """Return a copy of the group that belongs to this pod alone."""
    return replace(metadata, name=group_name(pod), owner=owner_reference(pod), min_member=1)


def group_name(owner: Json) -> str:
    return f"pg-{name_of(owner)}-{uid_of(owner)}"


def queue_name(ctx: Context) -> str:
    """Return the queue that owner or pod name, else the default queue."""
    return stated_queue(ctx) or keys.DEFAULT_QUEUE


def stated_queue(ctx: Context) -> str:
    """Return the owner's queue label, the pod's, then the older `project` label of either; "" without any."""
    owner, pod = labels_of(ctx.top), labels_of(ctx.pod)
    label = ctx.settings.queue_label
    label_value = owner.get(label) or pod.get(label)
    if label_value:
        return label_value
    project = owner.get(keys.PROJECT) or pod.get(keys.PROJECT)
    if not project:
        return ""
    pool = pod.get(ctx.settings.node_pool_label) if ctx.settings.node_pool_label else None
    return f"{project}-{pool}" if pool else project


def priority_class(ctx: Context, candidates: Sequence[Json], default: str) -> str:
    """Return the first existing class that an owner or the pod names, else that of the owner's kind, else `default`."""
    pods_class = labels_of(ctx.pod).get(keys.PRIORITY_CLASS) or dig_text(
        ctx.pod, "spec", "priorityClassName"
    )
    for candidate in candidates:
        name = labels_of(candidate).get(keys.PRIORITY_CLASS) or pods_class
        if name and ctx.lookups.priority_class_exists(name):
            return name
    defaults = (kind_default(ctx, candidate).priority_class for candidate in candidates)
    return next(filter(None, defaults), default)


def preemptibility(ctx: Context, candidates: Sequence[Json]) -> str:
    """Return one of `PREEMPTIBILITIES`, or "" to derive it from the priority. Unknown values are skipped."""
    for source in (*candidates, ctx.pod):
        value = labels_of(source).get(keys.PREEMPTIBILITY, "").lower()
        if value in PREEMPTIBILITIES:
            return value
    defaults = (kind_default(ctx, candidate).preemptibility for candidate in candidates)
    return next(filter(None, defaults), "")


def kind_default(ctx: Context, owner: Json) -> KindDefault:
    """Return the defaults of an owner's kind, without a class that does not exist or an unknown preemptibility."""
    entry = ctx.lookups.kind_default(kind_of(owner)) or KindDefault()
    exists = ctx.lookups.priority_class_exists(entry.priority_class)
    preemptibility = entry.preemptibility.lower()
    return KindDefault(
        priority_class=entry.priority_class if exists else "",
        preemptibility=preemptibility if preemptibility in PREEMPTIBILITIES else "",
    )


def parse_kind_defaults(config_map: Json) -> dict[str, KindDefault]:
    """Return the defaults ConfigMap's entries by `<Kind>.<group>`, or `<Kind>` where no group is given."""
    data = config_map.get("data")
    if not isinstance(data, dict) or not data:
        raise GroupingError(
            "default priorities configmap is empty, cannot parse default priorities"
        )
    if "types" not in data:
        raise GroupingError("default priorities configmap Data does not contain <types> key")
    try:
        entries = json.loads(data["types"])
    except (TypeError, ValueError) as error:
        raise GroupingError(
            f"default priorities configmap key types is not a JSON list: {error}"
        ) from error
    if not isinstance(entries, list):
        raise GroupingError("default priorities configmap key types is not a JSON list")
    return {
        _entry_key(entry): KindDefault(
            priority_class=dig_text(entry, "priorityName"),
            preemptibility=dig_text(entry, "preemptibility"),
        )
        for entry in entries
        if dig_text(entry, "typeName")
    }


def _entry_key(entry: Json) -> str:
    kind, group = dig_text(entry, "typeName"), dig_text(entry, "group")
    return f"{kind}.{group}" if group else kind


def _labels(ctx: Context) -> dict[str, str]:
    labels = dict(labels_of(ctx.top))
    user = labels_of(ctx.pod).get(keys.USER)
    if user:
        labels.setdefault(keys.USER, user)
    return labels


def _annotations(ctx: Context) -> dict[str, str]:
    user = annotations_of(ctx.pod).get(keys.USER)
    annotations = {keys.USER: user} if user else {}
    annotations[keys.TOP_OWNER] = _top_owner(ctx.top)
    for key in (keys.MAX_RUN_TIME, keys.REQUEUE_DELAY):
        if text := annotations_of(ctx.pod).get(key):
            annotations[key] = text
    annotations.update(annotations_of(ctx.top))
    if kind_of(ctx.top).kind == "Pod":
        # A pod that owns others (a Spark driver) has our own annotation or not, depending on when they start.
        # The annotations of the group must not depend on that.
        annotations.pop(keys.POD_GROUP, None)
    return annotations


def _top_owner(owner: Json) -> str:
    """Return the owner's identity as YAML, written by hand because a YAML library takes longer than the grouping."""
    kind = kind_of(owner)
    fields = {
        "name": name_of(owner),
        "uid": uid_of(owner),
        "group": kind.group,
        "version": kind.version,
        "kind": kind.kind,
    }
    return "".join(f"{key}: {_yaml_text(value)}\n" for key, value in fields.items())


def _yaml_text(value: str) -> str:
    is_plain = _PLAIN.fullmatch(value) and value.lower() not in _YAML_WORDS
    return value if is_plain or _UUID.fullmatch(value) else json.dumps(value)


def stated_duration(ctx: Context, candidates: Sequence[Json], key: str, *, negative: bool) -> str:
    """Return the first valid duration that an owner or the pod states in an annotation, else "".

    negative : whether a duration below 0 is valid
    """
    for source in (*candidates, ctx.pod):
        text = annotations_of(source).get(key)
        if not text:
            continue
        try:
            value = parse_duration(text)
        except ValueError:
            continue
        if value >= 0 or negative:
            return format_duration(value)
    return ""
