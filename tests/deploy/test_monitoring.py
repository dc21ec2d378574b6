"""Alert rules and boards ask for metrics that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from django.test import Client
from prometheus_client import CollectorRegistry, generate_latest

import kaiweb.live.consumers
from kaiweb.health.views import READINESS
from kube.resources import QUEUES
from kube.store import Store
from queues.controllers.metrics import QueueMetrics
from scheduler.metrics import SchedulerMetrics
from tests.deploy.chart import CHART

NAME = re.compile(r"\bkai(?:web)?_[a-z0-9_]+")
ALERTS = CHART / "files" / "alerts.yaml"
BOARDS = sorted((CHART / "files" / "dashboards").glob("*.json"))


def rules() -> list[dict[str, object]]:
    return [
        rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]
    ]


def queries() -> list[str]:
    boards = [json.loads(file.read_text()) for file in BOARDS]
    shown = [
        target["expr"]
        for board in boards
        for panel in board["panels"]
        for target in panel["targets"]
    ]
    return [*shown, *(str(rule["expr"]) for rule in rules())]


@pytest.fixture
def exposed(tmp_path: Path, settings, transactional_db) -> set[str]:
    """The names of all series that the processes serve."""
    assert (
        kaiweb.live.consumers.SOCKETS
    )  # loaded, as in the web process, so that its series are there
    settings.KAIWEB_HOME = tmp_path
    READINESS.forget()
    text = Client().get("/metrics").content.decode()
    text += SchedulerMetrics().exposition().decode()
    registry = CollectorRegistry()
    registry.register(QueueMetrics(Store([QUEUES])))
    text += generate_latest(registry).decode()
    return set(re.findall(r"^(?:# TYPE )?([a-z_0-9]+)", text, re.MULTILINE))


def test_every_alert_and_board_asks_for_a_metric_that_exists(exposed: set[str]) -> None:
    queried = {name for query in queries() for name in NAME.findall(query)}
    assert len(queried) > 10
    assert {name for name in queried if name.removesuffix("_bucket") not in exposed} == set()


def test_every_check_of_readiness_is_a_metric(exposed: set[str]) -> None:
    text = Client().get("/metrics").content.decode()
    checks = set(re.findall(r'^kaiweb_check_failed\{check="(\w+)"\}', text, re.MULTILINE))
    assert checks == set(READINESS.checks)
    assert 'kaiweb_check_failed{check="mirror"} 1.0' in text


def test_alerts_about_one_check_name_a_check_that_exists() -> None:
    named = {check for query in queries() for check in re.findall(r'check="(\w+)"', query)}
    assert named == {"cycles", "mirror"}
    assert named <= set(READINESS.checks)


def test_every_alert_says_how_bad_it_is_and_what_to_do() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in ("warning", "critical")  # type: ignore[index]
        assert rule["annotations"]["description"]  # type: ignore[index]
