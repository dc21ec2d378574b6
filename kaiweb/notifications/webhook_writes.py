"""Create, edit, delete and try webhooks, with entries in the audit log that have neither secret nor full address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.db import transaction
from django.db.models import QuerySet

from kaiweb.notifications import signing
from kaiweb.notifications.models import TEST, Delivery, Webhook
from kaiweb.notifications.outbox import delivery
from queues.editing.audit_entries import record
from queues.editing.edits import Difference
from queues.editing.write_requests import WriteRequest, refuse_stale
from queues.models import AuditAction, AuditKind
from queues.selectors import row_with_number

MAX_WEBHOOKS = 50
#: Name in REST -> column; those that say what a webhook is told start it anew.
COLUMNS = {
    "name": "name", "url": "url", "secret": "secret", "events": "events", "subtree": "subtree",
    "waitMinutes": "wait_minutes", "report": "report", "enabled": "is_enabled",
}  # fmt: skip
RESTARTS = frozenset({"events", "subtree", "waitMinutes", "report", "enabled"})


class WebhookExistsError(Exception):
    """Another webhook has this name, or there are as many as there may be."""


class UnknownWebhookError(Exception):
    """There is no webhook of this number."""


def tag_of(webhook: Webhook) -> str:
    """Return the edit tag."""
    return f"{webhook.pk}-{webhook.version}"


def create_webhook(values: Mapping[str, Any], request: WriteRequest) -> Webhook:
    """Create a webhook from its values by their names in REST; it is told what happens from now on.

    Raises
    ------
    WebhookExistsError : the name is in use, or there are 50 already
    """
    with transaction.atomic():
        _refuse_name(values["name"])
        if Webhook.objects.count() >= MAX_WEBHOOKS:
            raise WebhookExistsError(f"expected at most {MAX_WEBHOOKS} webhooks; delete one first")
        now = request.now
        row = Webhook(created_at=now, since=now, looked_at=now)
        _set(row, values)
        row.save()
        _record(AuditAction.CREATE, row, request, [Difference("", None, _shown(row))])
    return row


def edit_webhook(pk: int, values: Mapping[str, Any], request: WriteRequest) -> Webhook:
    """Set some values of a webhook by their names in REST; an empty secret removes it.

    Raises
    ------
    StaleRowError, UnknownWebhookError, WebhookExistsError
    """
    with transaction.atomic():
        row = _locked(pk, request)
        if values.get("name", row.name) != row.name:
            _refuse_name(values["name"])
        before = _shown(row)
        old_url = row.url
        _set(row, values)
        after = _shown(row)
        diff = [
            Difference(f"/{name}", before[name], after[name])
            for name in COLUMNS
            if before[name] != after[name]
            or (name == "secret" and bool(values.get("secret")))
            or (name == "url" and row.url != old_url)
        ]
        if diff:
            row.version += 1
            # Another address or secret is tried at once.
            row.failures, row.next_try_at = 0, None
            if any(entry.pointer[1:] in RESTARTS for entry in diff):
                row.since = row.looked_at = request.now
            row.save()
            _record(AuditAction.UPDATE, row, request, diff)
    return row


def delete_webhook(pk: int, request: WriteRequest) -> None:
    """Delete a webhook with its deliveries.

    Raises
    ------
    StaleRowError, UnknownWebhookError
    """
    with transaction.atomic():
        row = _locked(pk, request)
        _record(AuditAction.DELETE, row, request, [Difference("", _shown(row), None)])
        row.delete()


def send_test(pk: int, request: WriteRequest) -> Delivery:
    """Store a message that says nothing but that the webhook works; a worker sends it, whatever went wrong before.

    Raises
    ------
    UnknownWebhookError
    """
    with transaction.atomic():
        row = find_webhook(pk)
        message = delivery(row, TEST, [{"by": request.rights.username}], request.now)
        message.save()
        _record(AuditAction.TEST, row, request, [])
    return message


def find_webhook(pk: int) -> Webhook:
    """Return the webhook of a number.

    Raises
    ------
    UnknownWebhookError
    """
    return _webhook(Webhook.objects.all(), pk)


def _locked(pk: int, request: WriteRequest) -> Webhook:
    row = _webhook(Webhook.objects.select_for_update(), pk)
    refuse_stale(request, row, tag_of(row), f"webhook '{row}' has changed since you read it")
    return row


def _webhook(rows: QuerySet[Webhook], pk: int) -> Webhook:
    row = row_with_number(rows, pk)
    if row is None:
        raise UnknownWebhookError(f"webhook {pk} does not exist")
    return row


def _refuse_name(name: str) -> None:
    if Webhook.objects.filter(name=name).exists():
        raise WebhookExistsError(f"there is a webhook '{name}' already")


def _set(row: Webhook, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        is_secret = name == "secret" and bool(value)
        setattr(row, COLUMNS[name], signing.encrypted(value) if is_secret else value)


def _record(
    action: AuditAction, row: Webhook, request: WriteRequest, diff: list[Difference]
) -> None:
    record(AuditKind.NOTIFICATION, action, row.name, request, diff=diff)


def _shown(row: Webhook) -> dict[str, Any]:
    """Return what everybody who reads the audit log may see: the path of an address is often a secret, too."""
    values = {name: getattr(row, column) for name, column in COLUMNS.items()}
    parts = urlsplit(row.url)
    return {
        **values,
        "url": f"{parts.scheme}://{parts.hostname}",
        "secret": "set" if row.secret else "none",
    }
