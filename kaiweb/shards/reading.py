"""Read SchedulingShard objects and the Config from the cluster."""

from __future__ import annotations

from typing import Any

from kube.errors import BadValueError, NotFoundError
from kube.gateway import Gateway
from kube.objects.config import Config, SchedulingShard
from kube.objects.meta import convert
from kube.resources import CONFIGS, SHARDS
from queues.editing.tags import edit_tag
from scheduler.core.errors import ConfigError
from scheduler.settings.shard import CONFIG_NAME, DEFAULT_SHARD, settings_of

Body = dict[str, Any]


class UnknownShardError(Exception):
    """There is no shard of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"shard '{name}' does not exist")


def all_shards(gateway: Gateway) -> dict[str, Body]:
    """Return the SchedulingShard objects by name, in the order of names; none in a cluster without the custom resource."""
    try:
        items = gateway.list(SHARDS, as_type=dict).items
    except NotFoundError:
        return {}
    return dict(sorted((body["metadata"]["name"], body) for body in items))


def find_shard(gateway: Gateway, name: str) -> Body:
    """Return one object.

    It is looked for in the list, because a name from an address must not become part of a request to the cluster.

    Raises
    ------
    UnknownShardError
    """
    body = all_shards(gateway).get(name)
    if body is None:
        raise UnknownShardError(name)
    return body


def pool_of(body: Body) -> str:
    """Return the node pool that a shard schedules; empty for the nodes without a label."""
    return str((body.get("spec") or {}).get("partitionLabelValue") or "")


def shard_of_pool(gateway: Gateway, pool: str) -> str:
    """Return the name of the shard that schedules a node pool; `default` if no shard names that pool."""
    for name, body in all_shards(gateway).items():
        if pool_of(body) == pool:
            return name
    return DEFAULT_SHARD


def find_or_default(gateway: Gateway, name: str) -> Body | None:
    """Return one object; None if the shard `default` has none, because it then runs on default settings.

    Raises
    ------
    UnknownShardError
    """
    body = all_shards(gateway).get(name)
    if body is None and name != DEFAULT_SHARD:
        raise UnknownShardError(name)
    return body


def read_config(gateway: Gateway) -> Config | None:
    """Return the Config of the installation, None if there is none."""
    try:
        return gateway.get(CONFIGS, CONFIG_NAME, as_type=Config)
    except NotFoundError:
        return None


def tag_of_shard(body: Body) -> str:
    """Return the edit tag, which changes with the spec and not with the status."""
    metadata = body["metadata"]
    return edit_tag(
        uid=str(metadata.get("uid", "")),
        generation=int(metadata.get("generation", 0)),
        labels={},
        options={},
    )


def problem_in(body: Body, config: Config | None) -> str:
    """Return why a scheduler would refuse the settings, "" if it would not.

    The settings of past usage are not checked: their connection may be named by an environment variable that only
    the scheduler has.
    """
    try:
        settings_of(str(body["metadata"]["name"]), convert(body, SchedulingShard), config)
    except (ConfigError, BadValueError) as error:
        return str(error)
    return ""
