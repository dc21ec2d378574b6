"""Shards and their effective settings as REST shows them."""

from __future__ import annotations

import math
from typing import Any

from kaiweb.items.amounts import rounded
from kaiweb.shards.reading import Body, problem_in, tag_of_shard
from kube.errors import BadValueError
from kube.objects.config import Config, Override, SchedulingShard, ShardSpec
from kube.objects.meta import convert
from scheduler.core.errors import ConfigError
from scheduler.core.plugins.table import PLUGINS
from scheduler.load.archive import argument_texts
from scheduler.settings.flags import Option
from scheduler.settings.shard import ACTION_PRIORITIES, ShardSettings, options_of, settings_of

Item = dict[str, Any]
CONDITION_FIELDS = ("type", "status", "reason", "message")
USAGE, CONNECTION = "usageDBConfig", "connectionString"


def shard_item(body: Body, config: Config | None, *, is_admin: bool) -> Item:
    """Return the item of a shard; only admins see the connection of the usage database, which may hold a password."""
    metadata, spec = body["metadata"], body.get("spec") or {}
    conditions = (body.get("status") or {}).get("conditions") or []
    return {
        "name": metadata["name"],
        "partitionLabelValue": spec.get("partitionLabelValue") or "",
        "spec": spec if is_admin else without_connection(spec),
        "problem": problem_in(body, config),
        "conditions": [
            {
                **{name: str(condition.get(name, "")) for name in CONDITION_FIELDS},
                "lastTransitionTime": condition.get("lastTransitionTime"),
            }
            for condition in conditions
        ],
        "createdAt": metadata.get("creationTimestamp"),
        "generation": int(metadata.get("generation", 0)),
        "etag": f'"{tag_of_shard(body)}"',
    }


def without_connection(spec: Item) -> Item:
    """Return the spec without the connection of the usage database."""
    usage = spec.get(USAGE)
    if not isinstance(usage, dict) or CONNECTION not in usage:
        return spec
    return {**spec, USAGE: {name: value for name, value in usage.items() if name != CONNECTION}}


def settings_item(name: str, body: Body | None, config: Config | None) -> Item:
    """Return the effective settings of a shard; without an object it runs on defaults."""
    item: Item = {
        "shard": name,
        "exists": body is not None,
        "partitionLabelValue": "",
        "problem": "",
        "actions": [],
        "plugins": [],
        "options": [],
    }
    try:
        shard = None if body is None else convert(body, SchedulingShard)
        spec = ShardSpec() if shard is None else shard.spec
        settings = settings_of(name, shard, config)
        options = options_of(name, spec, config)
    except (ConfigError, BadValueError) as error:
        return {**item, "problem": str(error)}
    return {
        **item,
        "partitionLabelValue": spec.partition_label_value,
        "actions": _actions(spec, settings),
        "plugins": _plugins(spec, settings),
        "options": [_option(option) for option in options],
    }


def _actions(spec: ShardSpec, settings: ShardSettings) -> list[Item]:
    """Return all actions, the first one first."""
    core = settings.core
    items = [
        {
            "name": name.value,
            "enabled": name in core.actions,
            "priority": _priority(spec.actions.get(name.value), default),
            "queueDepth": None if math.isinf(core.depth_of(name)) else int(core.depth_of(name)),
        }
        for name, default in ACTION_PRIORITIES.items()
    ]
    return sorted(items, key=lambda item: (-item["priority"], item["name"]))


def _plugins(spec: ShardSpec, settings: ShardSettings) -> list[Item]:
    """Return all plugins there are, the first one first; those that are off with the arguments they would have."""
    arguments = {plugin.name: plugin.arguments for plugin in settings.core.plugins}
    items = [
        {
            "name": plugin.name,
            "enabled": plugin.name in arguments,
            "onByDefault": plugin.on_by_default,
            "priority": _priority(spec.plugins.get(plugin.name), plugin.priority),
            "arguments": argument_texts(arguments.get(plugin.name, plugin.arguments())),
        }
        for plugin in PLUGINS
    ]
    return sorted(items, key=lambda item: (-item["priority"], item["name"]))


def _priority(override: Override | None, default: int) -> int:
    return default if override is None or override.priority is None else override.priority


def _option(option: Option) -> Item:
    return {
        "name": option.name,
        "kind": option.kind.value,
        "value": _plain(option.value),
        "default": _plain(option.default),
        "choices": list(option.choices) or None,
        "stated": option.is_stated,
    }


def _plain(value: object) -> object:
    return rounded(value) if isinstance(value, float) and math.isfinite(value) else value
