"""Scheduling shards and their effective settings."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers as s

from kaiweb.api.schema.queues import Difference, Finding
from kaiweb.api.schema.simulations import WithPreview
from scheduler.settings.flags import OptionKind

OPTION_VALUE = {"type": ["string", "number", "boolean"]}


@extend_schema_field({"type": "object", "additionalProperties": True})
class Spec(s.JSONField):
    """The spec of a SchedulingShard, as the custom resource has it."""


@extend_schema_field(OPTION_VALUE)
class OptionValue(s.JSONField):
    """A value of the form that `kind` names; durations in seconds."""


class Condition(s.Serializer[object]):
    type = s.CharField()
    status = s.CharField()
    reason = s.CharField(allow_blank=True)
    message = s.CharField(allow_blank=True)
    lastTransitionTime = s.DateTimeField(allow_null=True)


class Shard(s.Serializer[object]):
    name = s.CharField()
    partitionLabelValue = s.CharField(
        allow_blank=True, help_text="Empty: the nodes without the label."
    )
    spec = Spec(
        help_text="Callers who are no admins do not see the connection of the usage database."
    )
    problem = s.CharField(
        allow_blank=True, help_text="Why a scheduler refuses these settings and keeps its old ones."
    )
    conditions = Condition(many=True)
    createdAt = s.DateTimeField(allow_null=True)
    generation = s.IntegerField()
    etag = s.CharField()


class ShardList(s.Serializer[object]):
    items = Shard(many=True)


class ShardWrite(s.Serializer[object]):
    spec = Spec()


class ShardCreate(ShardWrite):
    name = s.CharField()
    spec = Spec(required=False)


class ShardWritten(WithPreview):
    shard = Shard()
    changed = s.BooleanField()
    dryRun = s.BooleanField()
    warnings = Finding(many=True)
    diff = Difference(many=True)


class ActionSetting(s.Serializer[object]):
    name = s.CharField()
    enabled = s.BooleanField()
    priority = s.IntegerField(help_text="The action with the highest one runs first.")
    queueDepth = s.IntegerField(
        allow_null=True, help_text="Workloads of a queue it looks at; null: all."
    )


class PluginSetting(s.Serializer[object]):
    name = s.CharField()
    enabled = s.BooleanField()
    onByDefault = s.BooleanField()
    priority = s.IntegerField()
    arguments = s.DictField(child=s.CharField(allow_blank=True))


class OptionSetting(s.Serializer[object]):
    name = s.CharField(help_text="Its key in `args` of the shard.")
    kind = s.ChoiceField(choices=[kind.value for kind in OptionKind])
    value = OptionValue()
    default = OptionValue()
    choices = s.ListField(child=s.CharField(), allow_null=True)
    stated = s.BooleanField(help_text="Whether the shard states it.")


class Settings(s.Serializer[object]):
    shard = s.CharField()
    exists = s.BooleanField(
        help_text="Whether there is an object; the shard `default` runs without."
    )
    partitionLabelValue = s.CharField(allow_blank=True)
    problem = s.CharField(
        allow_blank=True, help_text="Why a scheduler refuses them; then the lists are empty."
    )
    actions = ActionSetting(many=True)
    plugins = PluginSetting(many=True)
    options = OptionSetting(many=True)
