"""Webhooks that are told about events: for admins only, because their addresses and secrets open other systems."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from django.conf import settings
from drf_spectacular.utils import extend_schema
from msgspec import UNSET, Meta, UnsetType, to_builtins
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import Shows, View
from kaiweb.api.database_writes import write_database
from kaiweb.api.errors import Problem
from kaiweb.api.http import parameters
from kaiweb.api.schema import notifications as schema
from kaiweb.api.versions import expected_tag
from kaiweb.api.writes import require_admin, unless_stale, write_request
from kaiweb.items.amounts import timestamp
from kaiweb.notifications import signing, webhook_writes
from kaiweb.notifications.addresses import url_fault
from kaiweb.notifications.models import (
    MAX_URL,
    Delivery,
    DeliveryState,
    Event,
    ReportPeriod,
    Webhook,
)
from kaiweb.notifications.webhook_writes import tag_of
from queues.selectors import has_queue
from queues.tree.shape import Finding, shown
from scheduler.tools.simulate.what_if.question import Struct, read_body

WRITE = ("dryRun", "reason")
RIGHT = "reading and editing webhooks"
Name = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[^\x00-\x1f\x7f]+$")]
Url = Annotated[str, Meta(max_length=MAX_URL)]
Events = Annotated[list[Event], Meta(min_length=1, max_length=len(Event))]
Minutes = Annotated[int, Meta(ge=1, le=schema.MAX_WAIT_MINUTES)]


class _Edit(Struct, frozen=True, kw_only=True):
    name: Name | UnsetType = UNSET
    url: Url | UnsetType = UNSET
    events: Events | UnsetType = UNSET
    secret: str | UnsetType | None = UNSET
    subtree: str | UnsetType | None = UNSET
    wait_minutes: Minutes | UnsetType = UNSET
    report: ReportPeriod | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET


class _New(_Edit, frozen=True, kw_only=True):
    name: Name
    url: Url
    events: Events


class Notifications(View):
    """The collection."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"post": WRITE}

    @extend_schema(operation_id="listNotifications", responses=schema.NotificationList)
    def get(self, request: Request) -> Response:
        """List the webhooks with how their last delivery ended; secrets are never answered."""
        require_admin(request, RIGHT)
        return Response({"items": [_item(row) for row in Webhook.objects.all()]})

    @extend_schema(
        operation_id="createNotification",
        request=schema.NotificationCreate,
        parameters=[parameters.ONLY_DRY_RUN, parameters.REASON, parameters.IDEMPOTENCY_KEY],
        responses={201: schema.Notification},
    )
    def post(self, request: Request) -> Response:
        """Create a webhook; it is told what happens from now on."""
        require_admin(request, RIGHT)
        return write_database(request, lambda: _create(request))


class NotificationDetail(View):
    """One webhook."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"patch": WRITE, "delete": WRITE}

    @extend_schema(operation_id="getNotification", responses=schema.Notification)
    def get(self, request: Request, pk: int) -> Response:
        """Return the webhook."""
        require_admin(request, RIGHT)
        return _answer(webhook_writes.find_webhook(pk))

    @extend_schema(
        operation_id="patchNotification",
        request=schema.NotificationEdit,
        parameters=parameters.NOTIFICATION_WRITE,
        responses=schema.Notification,
    )
    def patch(self, request: Request, pk: int) -> Response:
        """Change some fields; a secret that is left out stays, null removes it."""
        require_admin(request, RIGHT)
        return write_database(request, lambda: _edit(request, pk))

    @extend_schema(
        operation_id="deleteNotification",
        parameters=parameters.NOTIFICATION_WRITE,
        responses={204: None},
    )
    def delete(self, request: Request, pk: int) -> Response:
        """Delete the webhook with its deliveries, those that wait included."""
        require_admin(request, RIGHT)
        return write_database(request, lambda: _delete(request, pk))


class Deliveries(View):
    """What was sent to one webhook."""

    shows = Shows.ITSELF

    @extend_schema(operation_id="listNotificationDeliveries", responses=schema.DeliveryList)
    def get(self, request: Request, pk: int) -> Response:
        """List the deliveries, newest first; the last hundred are kept."""
        require_admin(request, RIGHT)
        rows = webhook_writes.find_webhook(pk).deliveries.all()
        return Response({"items": [_delivery(row) for row in rows]})


class NotificationTest(View):
    """A test of one webhook."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"post": WRITE}

    @extend_schema(
        operation_id="testNotification",
        request=None,
        parameters=[parameters.ONLY_DRY_RUN, parameters.REASON, parameters.IDEMPOTENCY_KEY],
        responses={202: schema.Delivery},
    )
    def post(self, request: Request, pk: int) -> Response:
        """Send a message of the type `test` within seconds, once; the list of deliveries says how it ended."""
        require_admin(request, RIGHT)
        return write_database(request, lambda: _test(request, pk))


def _create(request: Request) -> Response:
    body = read_body(request.data, _New)
    row = webhook_writes.create_webhook(_checked(body), write_request(request))
    item = _item(row)
    headers = {"ETag": item["etag"], "Location": f"/api/v1/notifications/{row.pk}"}
    return Response(item, status=201, headers=headers)


def _edit(request: Request, pk: int) -> Response:
    write = write_request(request, expected_tag=expected_tag(request, "webhook"))
    values = _checked(read_body(request.data, _Edit))
    return _answer(unless_stale(lambda: webhook_writes.edit_webhook(pk, values, write), _item))


def _delete(request: Request, pk: int) -> Response:
    write = write_request(request, expected_tag=expected_tag(request, "webhook"))
    unless_stale(lambda: webhook_writes.delete_webhook(pk, write), _item)
    return Response(status=204)


def _test(request: Request, pk: int) -> Response:
    return Response(_delivery(webhook_writes.send_test(pk, write_request(request))), status=202)


def _checked(body: _Edit) -> dict[str, Any]:
    """Return the values by their names in REST, as they are stored.

    Raises
    ------
    Problem : an address that may not be called, a secret of another form, a queue that does not exist
    """
    values: dict[str, Any] = to_builtins(body)
    for name in ("secret", "subtree"):
        if name in values:
            values[name] = values[name] or ""
    if "url" in values:
        fault = url_fault(values["url"], settings.KAIWEB_NOTIFY_NETWORKS)
        if fault:
            raise _refusal("url", fault, values["url"])
    if values.get("secret"):
        try:
            signing.key_of(values["secret"])
        except ValueError as error:
            raise _refusal("secret", str(error), None) from error
    subtree = values.get("subtree")
    if subtree and not has_queue(subtree):
        raise _refusal("subtree", f"expected a queue, got '{shown(subtree)}'", subtree)
    if "events" in values:
        values["events"] = sorted(set(values["events"]))
    return values


def _refusal(field: str, fault: str, value: str | None) -> Problem:
    finding = Finding(pointer=f"/{field}", code="value", message=fault, given=shown(value))
    return Problem("validation", f"{field}: {fault}", errors=[finding.as_dict()])


def _answer(row: Webhook) -> Response:
    item = _item(row)
    return Response(item, headers={"ETag": item["etag"]})


def _item(row: Webhook) -> dict[str, Any]:
    last = row.deliveries.first()
    return {
        "id": row.pk,
        "name": row.name,
        "url": row.url,
        "hasSecret": bool(row.secret),
        "events": row.events,
        "subtree": row.subtree or None,
        "waitMinutes": row.wait_minutes,
        "report": row.report,
        "enabled": row.is_enabled,
        "createdAt": timestamp(row.created_at),
        "failures": row.failures,
        "nextTryAt": timestamp(row.next_try_at),
        "pending": row.deliveries.filter(state=DeliveryState.PENDING).count(),
        "lastDelivery": None if last is None else _delivery(last),
        "etag": f'"{tag_of(row)}"',
    }


def _delivery(row: Delivery) -> dict[str, Any]:
    return {
        "id": row.message,
        "event": row.event,
        "state": row.state,
        "attempts": row.attempts,
        "createdAt": timestamp(row.created_at),
        "finishedAt": timestamp(row.finished_at),
        "status": row.status,
        "error": row.error,
    }
