"""Passes of the operator on a fake cluster: the wanted file, the conditions, and what is not touched."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from django.db import OperationalError

from kaiweb.operator.operator import FOLLOWED, PROMETHEUS_CRD, Operator
from kaiweb.operator.probe import ProcessProbe
from kaiweb.supervisor.desired import DESIRED_FILE, DesiredProcesses, read_desired, write_desired
from kaiweb.supervisor.watchdog import children_file
from kube.errors import ServerError
from kube.resources import CONFIGS, CRDS, SHARDS, Resource
from kube.watch import Reflector
from tests.fakes.gateway import FakeGateway

EVERYTHING = ("web", "controllers", "binding", "beat", "scheduling-default", "scheduling-amber")
Json = dict[str, Any]


class Scene:
    """A cluster, a folder as the supervisor keeps it, and an operator between them."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.gateway = FakeGateway()
        self.now = 100.0
        self.remaining: list[set[str]] = []
        self.is_database_away = False
        self.operator = Operator(
            self.gateway,
            home,
            ProcessProbe(home, 1, is_alive=lambda _: True, accepts=lambda _: True),
            {},
            self.forget,
            clock=lambda: self.now,
            wall=lambda: datetime(2026, 1, 1, tzinfo=UTC),
        )
        self._reflectors: list[Reflector[Any]] = [
            Reflector(self.gateway, resource, as_type, self.operator.store)
            for resource, as_type in FOLLOWED
        ]
        self.supervise(*EVERYTHING)

    def forget(self, remaining: Collection[str]) -> None:
        if self.is_database_away:
            raise OperationalError("no connection")
        self.remaining.append(set(remaining))

    def supervise(self, *names: str) -> None:
        """Play the supervisor: these processes run, and it has read what is wanted."""
        file = self.home / "processes.json"
        file.write_text(json.dumps(dict.fromkeys(names, 7)))
        os.utime(file, ns=(2**62, 2**62))

    def put(self, resource: Resource, name: str, generation: int = 1, **spec: Any) -> None:
        meta = {"name": name, "generation": generation}
        self.gateway.seed(resource, {"metadata": meta, "spec": spec})

    def passes(self, count: int = 1) -> None:
        for _ in range(count):
            for reflector in self._reflectors:
                reflector.pass_once(Event())
            self.operator.pass_once()
            self.now += 10.0

    def conditions_of(self, resource: Resource, name: str) -> Mapping[str, tuple[str, str]]:
        status = self.gateway.raw(resource, name).get("status") or {}
        return {
            item["type"]: (item["status"], item["message"]) for item in status.get("conditions", ())
        }


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_config_and_shard_become_ready_and_are_then_left_alone(scene: Scene) -> None:
    scene.put(CONFIGS, "kai-config")
    scene.put(SHARDS, "default")
    before = scene.gateway.raw(CONFIGS, "kai-config")["spec"]
    scene.passes(2)
    for resource, name in ((CONFIGS, "kai-config"), (SHARDS, "default")):
        assert scene.conditions_of(resource, name) == {
            "Reconciling": ("False", "Reconciliation completed successfully"),
            "Deployed": ("True", "Resources deployed"),
            "Available": ("True", "System available"),
            "DependenciesFulfilled": ("True", "Dependencies are fulfilled"),
            "Ready": ("True", "System is ready"),
        }
    writes = len(scene.gateway.calls)
    scene.passes(3)
    assert len(scene.gateway.calls) == writes
    assert scene.gateway.raw(CONFIGS, "kai-config")["spec"] == before


def test_a_new_generation_is_reported_as_reconciling_before_it_is_applied(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.put(SHARDS, "default", generation=4)
    conditions: list[list[Json]] = []
    patch = FakeGateway.patch

    def spy(gateway: FakeGateway, *arguments: Any, **options: Any) -> Json:
        conditions.append(arguments[2]["status"]["conditions"])
        assert options == {"sub": "status"}
        return patch(gateway, *arguments, **options)

    monkeypatch.setattr(FakeGateway, "patch", spy)
    scene.passes(1)
    assert [(item["type"], item["status"]) for item in conditions[0]] == [("Reconciling", "True")]
    assert [item["observedGeneration"] for item in conditions[1]] == [4] * 5
    assert len(conditions) == 2


def test_a_config_of_another_name_has_no_effect_and_no_status(scene: Scene) -> None:
    scene.put(CONFIGS, "other", podGrouper={"maxConcurrentReconciles": 9})
    scene.passes(2)
    assert scene.conditions_of(CONFIGS, "other") == {}
    assert read_desired(scene.home) == DesiredProcesses()


def test_a_shard_that_comes_and_goes_changes_what_is_wanted(scene: Scene) -> None:
    scene.put(SHARDS, "default")
    scene.put(SHARDS, "amber", partitionLabelValue="amber")
    scene.passes()
    assert read_desired(scene.home).shards == ("amber", "default")
    scene.gateway.delete(SHARDS, "amber")
    scene.passes()
    assert read_desired(scene.home).shards == ("default",)


def test_the_file_is_written_only_when_what_is_wanted_changes(scene: Scene) -> None:
    scene.passes()
    os.utime(scene.home / DESIRED_FILE, ns=(5, 5))
    scene.passes(3)
    assert (scene.home / DESIRED_FILE).stat().st_mtime_ns == 5


def test_a_shard_that_became_invalid_keeps_its_settings_after_an_operator_restart(
    scene: Scene,
) -> None:
    write_desired(scene.home, DesiredProcesses(shards=("amber", "default")))
    scene.put(SHARDS, "amber", placementStrategy={"cpu": "pile"})
    scene.passes(2)
    assert read_desired(scene.home).shards == ("amber", "default")
    text = "placementStrategy.cpu: expected one of binpack, spread, fragmentation, got 'pile'"
    assert scene.conditions_of(SHARDS, "amber")["Deployed"] == ("False", text)
    assert scene.conditions_of(SHARDS, "amber")["Available"] == ("True", "System available")


def test_processes_that_are_not_up_are_named_on_whom_they_serve(scene: Scene) -> None:
    scene.put(CONFIGS, "kai-config")
    scene.put(SHARDS, "default")
    scene.put(SHARDS, "amber")
    scene.supervise("web", "binding", "beat", "scheduling-amber")
    scene.passes(2)
    assert scene.conditions_of(CONFIGS, "kai-config")["Available"] == (
        "False",
        "PodGrouper: not available\nQueueController: not available\n"
        "PodGroupController: not available",
    )
    assert scene.conditions_of(SHARDS, "default")["Available"] == (
        "False",
        "Scheduler: not available",
    )
    assert scene.conditions_of(SHARDS, "amber")["Ready"] == ("True", "System is ready")
    scene.supervise(*EVERYTHING)
    scene.passes(2)
    assert scene.conditions_of(SHARDS, "default")["Ready"] == ("True", "System is ready")


def test_a_component_that_is_switched_off_is_not_reported_as_missing(scene: Scene) -> None:
    off = {"service": {"enabled": False}}
    scene.put(CONFIGS, "kai-config", binder=off, podGrouper=off, scheduler=off)
    scene.put(SHARDS, "default")
    scene.supervise("web", "controllers")
    scene.passes(2)
    assert scene.conditions_of(CONFIGS, "kai-config")["Available"] == ("True", "System available")
    assert scene.conditions_of(SHARDS, "default")["Available"] == ("True", "System available")
    assert read_desired(scene.home).off == ("binding", "scheduling-default")


def test_a_prometheus_of_the_cluster_needs_its_operator(scene: Scene) -> None:
    scene.put(CONFIGS, "kai-config", prometheus={"enabled": True})
    scene.passes()
    assert scene.conditions_of(CONFIGS, "kai-config")["DependenciesFulfilled"] == (
        "False",
        "\nKAI-prometheus is missing prometheus operator",
    )
    scene.gateway.seed(CRDS, {"metadata": {"name": PROMETHEUS_CRD}})
    scene.passes(5)
    assert scene.conditions_of(CONFIGS, "kai-config")["DependenciesFulfilled"][0] == "True"


def test_a_status_that_could_not_be_written_is_written_in_the_next_pass(scene: Scene) -> None:
    scene.put(SHARDS, "default")
    scene.gateway.fail_next("patch", "schedulingshards", ServerError("connection refused"))
    scene.passes()
    assert scene.conditions_of(SHARDS, "default") == {}
    scene.passes(2)
    assert scene.conditions_of(SHARDS, "default")["Ready"] == ("True", "System is ready")


def test_a_cluster_that_stops_answering_ends_no_process(scene: Scene) -> None:
    scene.put(SHARDS, "amber")
    scene.passes()
    for kind in ("configs", "schedulingshards"):
        for verb in ("list", "watch"):
            scene.gateway.fail_next(verb, kind, ServerError("connection refused"))
    scene.passes(1)
    assert read_desired(scene.home).shards == ("amber", "default")


def test_results_of_a_scheduler_are_deleted_when_it_has_ended_and_not_before(scene: Scene) -> None:
    scene.put(SHARDS, "amber")
    scene.passes(2)
    assert scene.remaining == [{"amber", "default"}]
    scene.gateway.delete(SHARDS, "amber")
    scene.passes(2)
    assert scene.remaining == [{"amber", "default"}]
    scene.supervise("web", "scheduling-default")
    scene.is_database_away = True
    scene.passes()
    scene.is_database_away = False
    scene.passes(2)
    assert scene.remaining == [{"amber", "default"}, {"default"}]


def test_a_scheduler_that_makes_no_progress_is_reported_on_its_shard(scene: Scene) -> None:
    scene.put(SHARDS, "default")
    scene.passes(2)
    state = {"pid": 7, "is_steady": True, "restarts": 0, "hangs": 1, "fault": "no progress"}
    children_file(scene.home).parent.mkdir()
    children_file(scene.home).write_text(json.dumps({"scheduling-default": state}))
    scene.passes(1)
    conditions_by_type = scene.conditions_of(SHARDS, "default")
    assert conditions_by_type["Available"] == (
        "False", "Scheduler: not available: scheduling-default: no progress",
    )  # fmt: skip
    assert conditions_by_type["Ready"] == ("False", "System not ready")


def test_a_scheduler_without_cycles_is_reported_on_its_shard(scene: Scene) -> None:
    scene.put(SHARDS, "default")
    scene.operator.cycle_fault = lambda shard: f"shard {shard} has no cycles"
    scene.passes(2)
    conditions_by_type = scene.conditions_of(SHARDS, "default")
    assert conditions_by_type["Available"] == (
        "False", "Scheduler: not available: shard default has no cycles",
    )  # fmt: skip
    scene.operator.cycle_fault = lambda _shard: ""
    scene.passes(1)
    assert scene.conditions_of(SHARDS, "default")["Ready"] == ("True", "System is ready")
