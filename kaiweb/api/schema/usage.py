"""History and usage: series of queues, GPU-hours and their cost."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers as s

from kaiweb.api.schema.shared import BOUND, Page

Fields = dict[str, s.Field[Any, Any, Any, Any]]
AMOUNT = {"type": ["number", "null"]}
BOUND_OR_UNKNOWN = {"oneOf": [*BOUND["oneOf"], {"type": "null"}]}


@extend_schema_field({"type": "array", "items": AMOUNT})
class Series(s.JSONField):
    """One number for each step, null where nothing was observed."""


@extend_schema_field({"type": "array", "items": BOUND_OR_UNKNOWN})
class BoundSeries(s.JSONField):
    """Quota or limit at the end of each step, null before it is known."""


class Steps(s.Serializer[object]):
    stepSeconds = s.IntegerField()
    times = s.ListField(child=s.DateTimeField())
    coveredSeconds = s.ListField(child=s.FloatField())

    def get_fields(self) -> Fields:
        """Add the fields whose name or default is no Python name."""
        return {"from": s.DateTimeField(), "to": s.DateTimeField(), **super().get_fields()}


class QueueSeries(s.Serializer[object]):
    queue = s.CharField()
    allocated = Series(required=False)
    waiting = Series(required=False)
    share = Series(required=False)
    quota = BoundSeries(required=False)
    limit = BoundSeries(required=False)


class QueuesHistory(Steps):
    series = QueueSeries(many=True)


class QueueDay(s.Serializer[object]):
    day = s.DateField()
    starts = s.IntegerField()
    evictions = s.IntegerField()
    waitedP50Seconds = s.FloatField(allow_null=True)
    waitedP90Seconds = s.FloatField(allow_null=True)
    waitedMaxSeconds = s.FloatField(allow_null=True)


class QueueHistory(QueuesHistory):
    days = QueueDay(many=True)


class UsageHistory(Steps):
    inQuotaHours = Series()
    overQuotaHours = Series()
    waitingHours = Series()
    capacityHours = Series()
    idleHours = Series()
    allocatedButIdleHours = Series(
        help_text="Held but not used; null where no utilisation of GPUs is known."
    )


class NotUsed(s.Serializer[object]):
    allocatedButIdleHours = s.FloatField(
        allow_null=True,
        help_text="held by pods whose GPUs were not used; null: unknown without the metrics of the devices (DCGM)",
    )
    utilisationUnknownHours = s.FloatField(
        help_text="held by pods, and of which it is not known whether they were used"
    )


class UsageAmounts(NotUsed):
    gpuHours = s.FloatField()
    inQuotaHours = s.FloatField()
    overQuotaHours = s.FloatField()
    waitingHours = s.FloatField()
    cost = s.FloatField(allow_null=True)


class UsageRow(UsageAmounts):
    key = s.CharField(allow_blank=True)


class CapacityHours(NotUsed):
    capacityHours = s.FloatField()
    allocatedHours = s.FloatField()
    idleHours = s.FloatField()


class UtilisationSource(s.Serializer[object]):
    idleBelowPercent = s.IntegerField(help_text="a held GPU counts as idle below this utilisation")
    readAt = s.DateTimeField(allow_null=True, help_text="of the last reading; null: there was none")
    devices = s.IntegerField(help_text="GPUs whose utilisation the last reading had")
    error = s.CharField(allow_blank=True, help_text="why the last attempt failed")
    configured = s.BooleanField(help_text="whether a Prometheus is known")


class UsageReport(Page):
    items = UsageRow(many=True)
    by = s.ChoiceField(choices=["queue", "owner", "model"])
    to = s.DateTimeField()
    coveredSeconds = s.FloatField()
    total = UsageAmounts()
    cluster = CapacityHours()
    utilisation = UtilisationSource()
    currency = s.CharField(allow_null=True)

    def get_fields(self) -> Fields:
        """Add the field whose name is no Python name."""
        return {**super().get_fields(), "from": s.DateTimeField()}


class Month(s.Serializer[object]):
    month = s.CharField(help_text="For example 2026-11.")
    closed = s.BooleanField()

    def get_fields(self) -> Fields:
        """Add the fields whose name is no Python name."""
        return {**super().get_fields(), "from": s.DateTimeField(), "to": s.DateTimeField()}


class ReportList(s.Serializer[object]):
    items = Month(many=True)


MODEL_HELP = "as the nodes name it; `*`: all models without a price of their own"


class PriceCreate(s.Serializer[object]):
    model = s.CharField(max_length=253, help_text=MODEL_HELP)
    price = s.FloatField(min_value=0, help_text="of a GPU-hour")
    validFrom = s.DateField(help_text="the first day (UTC), by default today", required=False)


class PriceEdit(s.Serializer[object]):
    price = s.FloatField(min_value=0, required=False)
    validFrom = s.DateField(required=False)


class Price(s.Serializer[object]):
    id = s.IntegerField()
    model = s.CharField(help_text=MODEL_HELP)
    price = s.FloatField(help_text="of a GPU-hour")
    validFrom = s.DateField(help_text="the first day (UTC)")
    state = s.ChoiceField(
        choices=["valid", "later", "replaced"],
        help_text="today (UTC); `replaced`: another price of the model holds",
    )
    etag = s.CharField()


class SettingPrice(s.Serializer[object]):
    model = s.CharField()
    price = s.FloatField()


class PriceList(s.Serializer[object]):
    items = Price(many=True)
    defaults = SettingPrice(many=True, help_text="of KAIWEB_GPU_PRICES, where none is stored")
    currency = s.CharField()
    models = s.ListField(child=s.CharField(), help_text="GPU models of the nodes there are")
    etag = s.CharField(help_text="of the currency")


class CurrencyEdit(s.Serializer[object]):
    currency = s.CharField(max_length=16)
