"""Webhooks and the deliveries to them."""

from __future__ import annotations

from rest_framework import serializers as s

from kaiweb.notifications.models import ALL_EVENTS, MAX_URL, DeliveryState, Event, ReportPeriod

EVENTS_HELP = "what it is told about"
WAIT_HELP = "for `workloadWaits`: how long a workload has waited"
MAX_WAIT_MINUTES = 60 * 24 * 30


class NotificationWrite(s.Serializer[object]):
    secret = s.CharField(
        required=False,
        allow_null=True,
        help_text="`whsec_` and the Base64 of 24 to 64 random bytes, for signatures; null: none. Never answered.",
    )
    subtree = s.CharField(required=False, allow_null=True, help_text="null: the whole cluster")
    waitMinutes = s.IntegerField(
        required=False, min_value=1, max_value=MAX_WAIT_MINUTES, help_text=WAIT_HELP
    )
    report = s.ChoiceField(choices=ReportPeriod.choices, required=False)
    enabled = s.BooleanField(required=False)


class NotificationCreate(NotificationWrite):
    name = s.CharField(max_length=64)
    url = s.CharField(max_length=MAX_URL)
    events = s.ListField(child=s.ChoiceField(choices=Event.choices), help_text=EVENTS_HELP)


class NotificationEdit(NotificationWrite):
    name = s.CharField(max_length=64, required=False)
    url = s.CharField(max_length=MAX_URL, required=False)
    events = s.ListField(
        child=s.ChoiceField(choices=Event.choices), required=False, help_text=EVENTS_HELP
    )


class Delivery(s.Serializer[object]):
    id = s.CharField(help_text="as in the header `webhook-id`, the same for each try")
    event = s.ChoiceField(choices=ALL_EVENTS)
    state = s.ChoiceField(choices=DeliveryState.choices)
    attempts = s.IntegerField()
    createdAt = s.DateTimeField()
    finishedAt = s.DateTimeField(allow_null=True)
    status = s.IntegerField(allow_null=True, help_text="HTTP status of the last answer")
    error = s.CharField(help_text="why the last try failed; empty if it did not")


class DeliveryList(s.Serializer[object]):
    items = Delivery(many=True)


class Notification(s.Serializer[object]):
    id = s.IntegerField()
    name = s.CharField()
    url = s.CharField()
    hasSecret = s.BooleanField(help_text="whether deliveries are signed")
    events = s.ListField(child=s.ChoiceField(choices=Event.choices), help_text=EVENTS_HELP)
    subtree = s.CharField(allow_null=True)
    waitMinutes = s.IntegerField(help_text=WAIT_HELP)
    report = s.ChoiceField(choices=ReportPeriod.choices)
    enabled = s.BooleanField()
    createdAt = s.DateTimeField()
    failures = s.IntegerField(help_text="tries that failed in a row")
    nextTryAt = s.DateTimeField(allow_null=True, help_text="until then none is made")
    pending = s.IntegerField(help_text="deliveries that wait to be sent")
    lastDelivery = Delivery(allow_null=True)
    etag = s.CharField()


class NotificationList(s.Serializer[object]):
    items = Notification(many=True)
