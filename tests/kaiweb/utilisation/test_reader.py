"""A reading: whose devices they are, since when they are idle, and what stays unknown."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kaiweb.utilisation import course, current, reader
from kaiweb.utilisation.models import (
    DeviceUtilisation,
    Reading,
    WorkloadStep,
    WorkloadUtilisation,
)
from kube.resources import CONFIGS
from queues.models import LiveChange, Pod
from tests.fakes.gateway import FakeGateway
from tests.kaiweb.utilisation.conftest import (
    ENGINE,
    MIDNIGHT,
    UTIL,
    Prometheus,
    hold,
    pod,
    series,
)

pytestmark = pytest.mark.django_db
ReadAt = Callable[[float], int]


def held(value: object, gpu: int, name: str, **labels: str) -> dict[str, Any]:
    return series(value, gpu, namespace="ns", pod=name, **labels)


def uses(seconds: float) -> dict[str, tuple[float, float]]:
    now = MIDNIGHT + timedelta(seconds=seconds)
    return {key: (use.known, use.idle) for key, use in current.use_by_workload(now).items()}


def test_a_pod_is_idle_since_the_first_reading_below_the_threshold(
    read_at: ReadAt, prometheus: Prometheus
) -> None:
    hold("train", 2, [0, 1])
    prometheus.answers = {UTIL: [held(80, 0, "train-0"), held(4.9, 1, "train-0")]}
    assert read_at(0) == 2
    assert read_at(600) == 2
    since = dict(DeviceUtilisation.objects.values_list("device", "idle_since"))
    assert since == {"0": None, "1": MIDNIGHT}
    row = WorkloadUtilisation.objects.get()
    assert (row.percent, row.known, row.idle, row.idle_since) == (42.45, 2, 1, None)
    prometheus.answers = {UTIL: [held(0, 0, "train-0"), held(0, 1, "train-0")]}
    read_at(630)
    assert WorkloadUtilisation.objects.get().idle_since == MIDNIGHT + timedelta(seconds=630)
    prometheus.answers = {UTIL: [held(90, 0, "train-0"), held(90, 1, "train-0")]}
    read_at(660)
    assert not DeviceUtilisation.objects.filter(idle_since__isnull=False).exists()


def test_series_of_unknown_nodes_and_of_pods_elsewhere_name_nobody(
    read_at: ReadAt, prometheus: Prometheus
) -> None:
    hold("train", 1, [0])
    prometheus.answers = {
        UTIL: [
            held(0, 0, "train-0", Hostname="n2"),  # the pod is on n1
            held(0, 1, "exporter"),
            held(0, 2, "train-0", Hostname="elsewhere"),
            series(0, 3),
        ]
    }
    assert read_at(0) == 3
    assert set(DeviceUtilisation.objects.values_list("pod", "idle_since")) == {("", None)}
    assert uses(0) == {}


def test_pods_that_share_a_device_have_the_utilisation_of_the_one_reserved_for_them(
    read_at: ReadAt, prometheus: Prometheus
) -> None:
    pod("reserve", namespace="res", reserves_group="g", gpu=0, gpu_kind="none", devices=[0])
    for name in ("a", "b"):
        hold(name, 0.5, [0], gpu_groups=["g"], gpu_share=0.5, gpu_kind="fraction")
    prometheus.answers = {UTIL: [series(3, 5, namespace="res", pod="reserve")]}
    read_at(0)
    assert uses(0) == {"ns/a": (0.5, 0.5), "ns/b": (0.5, 0.5)}


def test_a_pod_with_fewer_series_than_devices_is_known_in_part(
    read_at: ReadAt, prometheus: Prometheus
) -> None:
    hold("train", 4, [0, 1, 2, 3])
    hold("sliced", 0.5, [0])
    prometheus.answers = {
        UTIL: [held(0, 0, "train-0")],
        ENGINE: [held(0.5, 3, "sliced-0", GPU_I_ID="2")],
    }
    read_at(0)
    assert uses(0) == {"ns/train": (1, 1), "ns/sliced": (0.5, 0)}


def test_a_series_that_is_left_of_the_pod_before_does_not_count(
    read_at: ReadAt, prometheus: Prometheus
) -> None:
    hold("new", 1, [0])
    prometheus.answers = {UTIL: [held(95, 0, "gone-0"), held(1, 0, "new-0")]}
    assert read_at(0) == 1
    assert uses(0) == {"ns/new": (1, 1)}
    Pod.objects.update(phase="Succeeded")
    assert uses(0) == {}


def test_a_failure_keeps_what_was_read_until_it_is_too_old(
    read_at: ReadAt, prometheus: Prometheus, caplog: pytest.LogCaptureFixture
) -> None:
    hold("train", 1, [0])
    prometheus.answers = {UTIL: [held(0, 0, "train-0")]}
    read_at(0)
    prometheus.body = b"nonsense"
    with caplog.at_level(logging.WARNING):
        assert [read_at(30), read_at(60)] == [0, 0]
    assert len(caplog.records) == 1  # once, not once per reading
    state = Reading.objects.get()
    assert state.read_at == MIDNIGHT
    assert state.error.startswith(UTIL)
    assert prometheus.address not in state.error
    assert uses(60) == {"ns/train": (1, 1)}
    assert uses(current.max_age().total_seconds()) == {}


def test_the_address_comes_from_the_config_and_the_token_does_not_go_there(
    nodes: None, prometheus: Prometheus, settings: Any, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    settings.KAIWEB_PROMETHEUS_TOKEN_FILE = str(token)
    settings.KAIWEB_PROMETHEUS_URL = ""
    gateway = FakeGateway(now=MIDNIGHT)
    assert reader.read(gateway, MIDNIGHT) == 0
    assert prometheus.queries == []
    assert not Reading.objects.exists()
    spec = {"prometheus": {"externalPrometheusUrl": prometheus.address}}
    body = {"apiVersion": "kai.scheduler/v1", "kind": "Config", "metadata": {"name": "kai-config"}}
    gateway.seed(CONFIGS, {**body, "spec": spec})
    prometheus.answers = {UTIL: [series(1)]}
    assert reader.read(gateway, MIDNIGHT) == 1
    assert set(prometheus.authorizations) == {None}
    settings.KAIWEB_PROMETHEUS_URL = prometheus.address
    reader.read(gateway, MIDNIGHT)
    assert prometheus.authorizations[-1] == "Bearer secret"
    token.unlink()
    assert reader.read(gateway, MIDNIGHT) == 0
    assert "KAIWEB_PROMETHEUS_TOKEN_FILE" in Reading.objects.get().error


def test_without_a_prometheus_only_an_earlier_reading_costs_anything(
    read_at: ReadAt,
    prometheus: Prometheus,
    settings: Any,
    django_assert_num_queries: Callable[[int], AbstractContextManager[Any]],
) -> None:
    hold("train", 1, [0])
    prometheus.answers = {UTIL: [held(80, 0, "train-0")]}
    read_at(0)
    settings.KAIWEB_PROMETHEUS_URL = ""
    read_at(30)
    assert not Reading.objects.exists()
    assert not DeviceUtilisation.objects.exists()
    assert WorkloadStep.objects.exists()
    read_at(30 + course.KEPT.total_seconds() + course.STEP.total_seconds())
    assert not WorkloadStep.objects.exists()
    with django_assert_num_queries(2):
        assert read_at(60 + course.KEPT.total_seconds() + course.STEP.total_seconds()) == 0


def test_clients_hear_of_what_looks_different(read_at: ReadAt, prometheus: Prometheus) -> None:
    hold("train", 1, [0])
    for value, changes in ((80, 2), (81, 0), (3, 2), (4, 0), (95, 2)):
        LiveChange.objects.all().delete()
        prometheus.answers = {UTIL: [held(value, 0, "train-0")]}
        read_at(0)
        assert LiveChange.objects.count() == changes, value


def test_the_course_of_a_workload_has_gaps_where_nothing_was_read(
    read_at: ReadAt, prometheus: Prometheus
) -> None:
    hold("train", 1, [0])
    for seconds, value in ((0, 10), (30, 30), (600, 50)):
        prometheus.answers = {UTIL: [held(value, 0, "train-0")]}
        read_at(seconds)
    times, percents = course.series("ns/train", MIDNIGHT, MIDNIGHT + timedelta(seconds=601))
    assert len(times) == 3
    assert percents == [20, None, 50]
