"""Metrics, request ids, and log lines."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from kaiweb import history
from kaiweb.settings.logging import JsonFormatter, LineFormatter
from kaiweb.tasks import trim_history
from queues.mirror.feed import write_heartbeat
from scheduler.models import SessionRecord

pytestmark = pytest.mark.django_db


def test_metrics_hold_the_age_of_the_mirror() -> None:
    write_heartbeat(datetime.now(UTC))
    text = Client().get("/metrics").content.decode()
    age = next(
        line
        for line in text.splitlines()
        if line.startswith('kaiweb_mirror_age_seconds{kind="mirror"}')
    )
    assert 0 <= float(age.split()[1]) < 60
    assert "kaiweb_live_position 0.0" in text
    assert 'kaiweb_mirror_rows{kind="PodGroup/pending"} 0.0' in text


def test_requests_are_counted_by_route_and_not_by_path() -> None:
    Client().get("/api/v1/queues/secret-name")
    text = Client().get("/metrics").content.decode()
    assert 'kaiweb_http_requests_total{method="GET",route="queue",status="401"}' in text
    assert "secret-name" not in text


def test_old_sessions_go_but_the_last_ones_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "STORED_CYCLES", 2)
    now = datetime.now(UTC)
    for number, age_h in enumerate((50, 40, 2, 30, 30)):
        SessionRecord.objects.create(
            shard="default", number=number, duration_ms=1, started_at=now - timedelta(hours=age_h)
        )
    assert trim_history() == 2
    assert list(SessionRecord.objects.order_by("id").values_list("number", flat=True)) == [2, 3, 4]


def test_a_harmless_request_id_is_kept_and_a_bad_one_replaced() -> None:
    assert Client().get("/healthz", headers={"Request-Id": "ci-7"})["Request-Id"] == "ci-7"
    trace = f"00-{'ab' * 16}-{'cd' * 8}-01"
    assert Client().get("/healthz", headers={"traceparent": trace})["Request-Id"] == "ab" * 16
    unusable = {"traceparent": f"00-{'0' * 32}-{'cd' * 8}-01"}
    assert Client().get("/healthz", headers=unusable)["Request-Id"] != "0" * 32
    answer = Client().get("/healthz", headers={"Request-Id": "a b\tc"})["Request-Id"]
    assert len(answer) == 32


def test_every_answer_has_a_content_security_policy() -> None:
    policy = Client().get("/login")["Content-Security-Policy"]
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy


def record(**extra: object) -> logging.LogRecord:
    log_record = logging.makeLogRecord(
        {"name": "queues", "levelname": "INFO", "msg": "listed", "created": 0.0}
    )
    vars(log_record).update(extra)
    return log_record


def test_both_log_formats_carry_the_same_fields() -> None:
    line = LineFormatter().format(record(kind="Pod"))
    assert line == "1970-01-01T00:00:00.000Z INFO    queues  listed kind=Pod"
    assert json.loads(JsonFormatter().format(record(kind="Pod"))) == {
        "time": "1970-01-01T00:00:00.000Z", "level": "INFO", "logger": "queues",
        "message": "listed", "kind": "Pod",
    }  # fmt: skip
