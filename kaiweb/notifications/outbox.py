"""Collect what webhooks are told, and send it: once for each event, with growing pauses while a receiver fails.

Events are collected in a window from the last look on. Because the mirror may be late, each window begins ten
minutes before, and what was told already is remembered by its key. A compare-and-swap on the row of the webhook, or
of the delivery, keeps two workers from the same work. A worker that dies between sending and noting the result is
the only reason why a message is sent twice; its id is the same then.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import orjson
from django.conf import settings
from django.db import transaction
from django.db.models import F, Q

from kaiweb.items.amounts import timestamp
from kaiweb.notifications import signing, transport
from kaiweb.notifications.events import Occurrence, Window, occurrences
from kaiweb.notifications.models import TEST, Delivery, DeliveryState, ToldEvent, Webhook
from kaiweb.notifications.transport import Message, Outcome
from queues import selectors
from queues.tree import hierarchy

log = logging.getLogger(__name__)

LOOK_BACK = timedelta(minutes=10)
#: A message lists so many events, and counts the others.
MAX_EVENTS = 50
#: Deliveries that are kept for each webhook, those that wait included.
MAX_DELIVERIES = 100
#: Webhooks that are sent to at the same time.
MAX_AT_ONCE = 16
CLAIMED_FOR = timedelta(seconds=60)
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=30), timedelta(hours=1)
GIVEN_UP_AFTER = timedelta(days=1)
NEVER_SENT = "given up: not delivered within a day"


def collect(now: datetime) -> int:
    """Make messages of what happened since the last look; return how many."""
    webhooks = list(Webhook.objects.filter(is_enabled=True))
    if not webhooks:
        return 0
    tree = selectors.tree()
    return sum(_collect_for(webhook, tree, now) for webhook in webhooks)


def _collect_for(webhook: Webhook, tree: hierarchy.Tree, now: datetime) -> int:
    with transaction.atomic():
        unchanged = Webhook.objects.filter(pk=webhook.pk, looked_at=webhook.looked_at)
        if now <= webhook.looked_at or not unchanged.update(looked_at=now):
            return 0
        start = max(webhook.since, webhook.looked_at - LOOK_BACK)
        window = Window(webhook, tree, start, now)
        deliveries = []
        for event in webhook.events:
            news = _untold(webhook, event, occurrences(event, window), now)
            if news:
                facts = [occurrence.facts for occurrence in news]
                deliveries.append(delivery(webhook, event, facts, now))
        Delivery.objects.bulk_create(deliveries)
        ToldEvent.objects.filter(webhook=webhook, at__lt=now - LOOK_BACK).delete()
        _trim(webhook)
    return len(deliveries)


def _untold(
    webhook: Webhook, event: str, candidates: Iterable[Occurrence], now: datetime
) -> list[Occurrence]:
    """Return the events that this webhook was not told about, and remember them."""
    by_key = {f"{event} {candidate.key}": candidate for candidate in candidates}
    if not by_key:
        return []
    told = set(ToldEvent.objects.filter(webhook=webhook).values_list("key", flat=True))
    news = {key: candidate for key, candidate in by_key.items() if key not in told}
    ToldEvent.objects.bulk_create(
        [ToldEvent(webhook=webhook, key=key, at=now) for key in news], batch_size=500
    )
    return list(news.values())


def delivery(
    webhook: Webhook, event: str, facts: Sequence[dict[str, Any]], now: datetime
) -> Delivery:
    """Return a message about events of one kind, not stored yet."""
    message = f"msg_{uuid4().hex}"
    body = {
        "id": message,
        "type": event,
        "webhook": webhook.name,
        "createdAt": timestamp(now),
        "events": list(facts[:MAX_EVENTS]),
        "more": max(0, len(facts) - MAX_EVENTS),
    }
    text = orjson.dumps(body).decode()
    return Delivery(webhook=webhook, message=message, event=event, body=text, created_at=now)


def _trim(webhook: Webhook) -> None:
    rows = Delivery.objects.filter(webhook=webhook).order_by("-id")
    last = rows.values_list("pk", flat=True)[MAX_DELIVERIES : MAX_DELIVERIES + 1].first()
    if last is not None:
        Delivery.objects.filter(webhook=webhook, pk__lte=last).delete()


def deliver(now: datetime) -> int:
    """Send one message to each webhook that is due, all at once; return how many arrived."""
    # Asked every few seconds, so without messages it must not write: an update of no rows takes SQLite's writer, too.
    if not Delivery.objects.filter(state=DeliveryState.PENDING).exists():
        return 0
    _give_up(now)
    claimed = [row for row in _due(now) if _claim(row, now)]
    sendable: list[tuple[Delivery, Message]] = []
    for row in claimed:
        try:
            sendable.append((row, _message(row, now)))
        except signing.LostSecretError as error:
            _record(row, Outcome(error=str(error)), now)
    if not sendable:
        return 0
    outcomes = transport.post_all(
        [message for _row, message in sendable], settings.KAIWEB_NOTIFY_NETWORKS
    )
    for (row, _message_sent), outcome in zip(sendable, outcomes, strict=True):
        _record(row, outcome, now)
    return sum(not outcome.error for outcome in outcomes)


def _due(now: datetime) -> list[Delivery]:
    """Return the next message of each webhook: a test first, which waits for no pause, then the oldest."""
    rows = Delivery.objects.filter(state=DeliveryState.PENDING).select_related("webhook")
    rows = rows.filter(Q(claimed_until=None) | Q(claimed_until__lt=now))
    is_ready = Q(webhook__next_try_at=None) | Q(webhook__next_try_at__lte=now)
    rows = rows.filter(Q(event=TEST) | (is_ready & Q(webhook__is_enabled=True)))
    first_of: dict[int, Delivery] = {}
    for row in sorted(rows, key=lambda row: (row.event != TEST, row.pk)):
        first_of.setdefault(row.webhook_id, row)
    return list(first_of.values())[:MAX_AT_ONCE]


def _claim(row: Delivery, now: datetime) -> bool:
    unclaimed = Q(claimed_until=None) | Q(claimed_until__lt=now)
    rows = Delivery.objects.filter(unclaimed, pk=row.pk, state=DeliveryState.PENDING)
    return bool(rows.update(claimed_until=now + CLAIMED_FOR, attempts=F("attempts") + 1))


def _message(row: Delivery, now: datetime) -> Message:
    webhook = row.webhook
    signature = signing.headers(row.message, int(now.timestamp()), row.body, webhook.secret)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"kaiweb/{settings.KAIWEB_VERSION}",
        **signature,
    }
    return Message(webhook.url, row.body, headers)


def _record(row: Delivery, outcome: Outcome, now: datetime) -> None:
    """Note how a try ended; a receiver that fails is left alone for a while, twice as long after each failure."""
    webhook = Webhook.objects.filter(pk=row.webhook_id)
    values: dict[str, Any] = {
        "claimed_until": None, "status": outcome.status, "error": outcome.error,
    }  # fmt: skip
    if not outcome.error:
        values |= {"state": DeliveryState.DELIVERED, "finished_at": now}
        webhook.update(failures=0, next_try_at=None)
    elif row.event == TEST:
        values |= {"state": DeliveryState.FAILED, "finished_at": now}
    else:
        failures = row.webhook.failures + 1
        pause = min(FIRST_PAUSE * 2 ** min(failures - 1, 10), LONGEST_PAUSE)
        webhook.update(failures=failures, next_try_at=now + pause)
        log.warning("webhook %s: %s", row.webhook, outcome.error)
    Delivery.objects.filter(pk=row.pk).update(**values)


def _give_up(now: datetime) -> None:
    """End what could not be delivered for a day; the error of the last try remains."""
    old = Delivery.objects.filter(state=DeliveryState.PENDING, created_at__lt=now - GIVEN_UP_AFTER)
    old.filter(error="").update(error=NEVER_SENT)
    old.update(state=DeliveryState.FAILED, finished_at=now)
