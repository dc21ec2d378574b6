"""Sums up the tree, child queues, conditions, metrics, and the check that finds what strayed."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from threading import Event
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from kube.errors import ServerError
from kube.objects.meta import convert
from kube.objects.podgroup import PodGroup
from kube.objects.queue import Queue
from kube.resources import PODGROUPS, PODS, QUEUES
from kube.watch import Reflector
from queues.controllers import drift
from queues.controllers.metrics import QueueMetrics, parse_pairs, queue_values
from queues.controllers.podgroup_status import PodGroupController
from queues.controllers.queue_status import QueueController
from queues.controllers.sums import GroupSums
from tests.queues.controllers.fake_cluster import Cluster, group, pod, queue

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2026, 1, 2, tzinfo=UTC)


class World(Cluster):
    def __init__(self) -> None:
        super().__init__()
        self.groups = PodGroupController(self.gateway, self.store)
        self.controller = QueueController(self.gateway, self.store)
        self.controller.follow()

    def settle(self, now: datetime = NOW) -> int:
        self.sync()
        return self.controller.pass_once(now)

    def queue_status(self, name: str) -> dict[str, Any]:
        status = self.status(QUEUES, name)
        return {key: value for key, value in status.items() if key != "conditions" and value}

    def conditions(self, name: str) -> dict[str, tuple[str, str]]:
        return {
            c["type"]: (c["status"], c["message"]) for c in self.status(QUEUES, name)["conditions"]
        }


def stated(name: str, in_queue: str, gpus: str) -> dict[str, Any]:
    body = group(name, in_queue)
    lists = {"requested": {"nvidia.com/gpu": gpus}, "allocated": {"nvidia.com/gpu": gpus}}
    body["status"] = {"resourcesStatus": lists}
    return body


def test_one_pass_carries_a_change_from_the_leaf_to_the_root() -> None:
    world = World()
    world.gateway.seed(
        QUEUES, queue("root"), queue("team", "root"), queue("leaf", "team"), queue("leaf2", "team")
    )
    world.gateway.seed(
        PODGROUPS,
        stated("a", "leaf", "420"),
        stated("b", "leaf2", "500m"),
        stated("own", "team", "2"),
    )
    assert world.settle() == 4
    both = {"nvidia.com/gpu": "422500m"}
    assert world.queue_status("root") == {
        "allocated": both,
        "requested": both,
        "childQueues": ["team"],
    }
    assert world.queue_status("team")["childQueues"] == ["leaf", "leaf2"]
    assert world.queue_status("leaf")["allocated"] == {"nvidia.com/gpu": "420"}
    assert world.settle() == 0
    world.gateway.delete(PODGROUPS, "a", namespace="lab")
    assert world.settle() == 3
    assert world.queue_status("root")["allocated"] == {"nvidia.com/gpu": "2500m"}
    assert world.queue_status("leaf") == {}


def test_a_group_that_moves_leaves_the_old_queue() -> None:
    world = World()
    world.gateway.seed(QUEUES, queue("a"), queue("b"))
    world.gateway.seed(PODGROUPS, stated("g", "a", "1"))
    world.settle()
    world.gateway.patch(PODGROUPS, "g", {"spec": {"queue": "b"}}, namespace="lab")
    world.settle()
    assert world.queue_status("a") == {}
    assert world.queue_status("b")["allocated"] == {"nvidia.com/gpu": "1"}


def test_a_queue_that_moves_takes_its_sums_along() -> None:
    world = World()
    world.gateway.seed(QUEUES, queue("x"), queue("y"), queue("q", "x"))
    world.gateway.seed(PODGROUPS, stated("g", "q", "3"))
    world.settle()
    world.gateway.patch(QUEUES, "q", {"spec": {"parentQueue": "y"}})
    world.settle()
    assert world.queue_status("x") == {}
    assert world.queue_status("y") == {
        "allocated": {"nvidia.com/gpu": "3"},
        "requested": {"nvidia.com/gpu": "3"},
        "childQueues": ["q"],
    }


def test_queues_below_a_missing_parent_get_the_condition_orphan_and_recover() -> None:
    world = World()
    world.gateway.seed(QUEUES, queue("child", "gone"), queue("grandchild", "child"))
    world.settle()
    assert world.conditions("child")["Orphan"] == ("True", "parent queue 'gone' does not exist")
    assert world.conditions("grandchild")["Orphan"] == (
        "True",
        "parent queue 'gone' of its ancestor 'child' does not exist",
    )
    world.gateway.seed(QUEUES, queue("gone"))
    world.settle(LATER)
    assert world.conditions("grandchild")["Orphan"] == ("False", "")
    (condition,) = [c for c in world.status(QUEUES, "child")["conditions"] if c["type"] == "Orphan"]
    assert condition["lastTransitionTime"] == "2026-01-02T00:00:00Z"


def test_a_circle_ends_the_walk_and_is_named() -> None:
    world = World()
    world.gateway.seed(QUEUES, queue("a", "b"), queue("b", "a"))
    world.gateway.seed(PODGROUPS, stated("g", "a", "1"))
    world.settle()
    assert world.conditions("a")["Orphan"][0] == "True"
    assert "among its own ancestors" in world.conditions("a")["Orphan"][1]


def test_over_quota_is_stated_with_amounts() -> None:
    world = World()
    world.gateway.seed(QUEUES, queue("q", gpu=2, cpu=1000, memory=100))
    body = stated("g", "q", "3")
    body["status"]["resourcesStatus"]["allocated"] |= {"cpu": "1500m", "memory": "100M"}
    world.gateway.seed(PODGROUPS, body)
    world.settle()
    assert world.conditions("q")["OverQuota"] == (
        "True",
        "gpu: 3 GPUs allocated, quota is 2; cpu: 1500 millicores allocated, quota is 1000",
    )
    world.gateway.patch(
        QUEUES, "q", {"spec": {"resources": {"gpu": {"quota": 3}, "cpu": {"quota": -1}}}}
    )
    world.settle()
    assert world.conditions("q")["OverQuota"] == ("False", "")


def test_an_unchanged_condition_keeps_its_time() -> None:
    world = World()
    world.gateway.seed(QUEUES, queue("q", gpu=1))
    world.settle()
    world.gateway.seed(PODGROUPS, stated("g", "q", "5"))
    world.settle(LATER)
    times = {c["type"]: c["lastTransitionTime"] for c in world.status(QUEUES, "q")["conditions"]}
    assert times == {"Orphan": "2026-01-01T00:00:00Z", "OverQuota": "2026-01-02T00:00:00Z"}


def test_a_failed_write_is_part_of_the_next_pass() -> None:
    world = World()
    world.gateway.seed(QUEUES, queue("q"))
    world.gateway.seed(PODGROUPS, stated("g", "q", "1"))
    world.gateway.fail_next("patch", "queues", ServerError("down"))
    assert world.settle() == 0
    assert world.settle() == 1


def test_drift_is_found_in_groups_and_queues_and_corrected() -> None:
    world = World()
    world.gateway.seed(QUEUES, queue("root"), queue("q", "root"))
    world.gateway.seed(PODGROUPS, group("g", "q"))
    world.gateway.seed(PODS, pod("p", "g", "Running", requests={"nvidia.com/gpu": "2"}))
    world.sync()
    drifted = drift.find_drift(world.store, world.groups)
    assert [(item.kind, item.key) for item in drifted] == [
        ("PodGroup", "lab/g"),
        ("Queue", "q"),
        ("Queue", "root"),
    ]
    assert drifted[1].message == "status.requested, status.allocated differ"
    drift.correct(drifted, world.groups, world.controller)
    key = world.groups.queue.get(timeout_s=0)
    assert key == "lab/g"
    world.groups.work(key)
    world.settle()
    world.sync()
    assert drift.find_drift(world.store, world.groups) == []
    assert world.queue_status("root")["allocated"] == {"nvidia.com/gpu": "2"}


def test_metrics_have_kais_names_labels_and_units() -> None:
    world = World()
    body = queue("physics", gpu=12, cpu=96000, memory=400000)
    body["spec"]["displayName"] = "Physics team"
    body["metadata"]["labels"] = {"site": "north"}
    body["status"] = {
        "allocated": {
            "nvidia.com/gpu": "1500m",
            "cpu": "2500m",
            "memory": "1Gi",
            "nvidia.com/mig-1g.5gb": "3",
        }
    }
    world.gateway.seed(QUEUES, body, queue("free"))
    world.sync()
    registry = CollectorRegistry()
    registry.register(
        QueueMetrics(world.store, "kai", {"site": "location", "tier": "class"}, {"tier": "none"})
    )

    def value(name: str, queue_name: str, display: str = "", location: str = "") -> float | None:
        labels = {
            "queue_name": queue_name,
            "queue_metadata_name": queue_name,
            "queue_display_name": display,
            "location": location,
            "class": "none",
        }
        return registry.get_sample_value(name, labels)

    shown = ("physics", "Physics team", "north")
    assert value("kai_queue_info", *shown) == 1
    assert value("kai_queue_deserved_gpus", *shown) == 12
    assert value("kai_queue_quota_cpu_cores", *shown) == 96
    assert value("kai_queue_quota_memory_bytes", *shown) == 4e11
    assert value("kai_queue_allocated_gpus", *shown) == 1.5
    assert value("kai_queue_allocated_cpu_cores", *shown) == 2.5
    assert value("kai_queue_allocated_memory_bytes", *shown) == 1073741824
    assert value("kai_queue_quota_cpu_cores", "free") == -1
    assert value("kai_queue_quota_memory_bytes", "free") == -1
    assert value("kai_queue_allocated_gpus", "free") == 0
    world.gateway.delete(QUEUES, "free")
    world.sync()
    assert value("kai_queue_info", "free") is None


def test_metrics_of_a_queue_that_states_nothing() -> None:
    world = World()
    body = {"metadata": {"name": "bare"}, "spec": {}}
    body["status"] = {"allocated": {"example.com/gpu": "1", "nvidia.com/gpu": "0.33333"}}
    world.gateway.seed(QUEUES, body)
    world.sync()
    registry = CollectorRegistry()
    registry.register(QueueMetrics(world.store, "mine", {"site": "location"}))
    labels = {"queue_name": "bare", "queue_metadata_name": "bare", "queue_display_name": ""}
    samples = {
        sample.name: sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.labels == {**labels, "location": ""}
    }
    assert samples == {
        "mine_queue_info": 1,
        "mine_queue_deserved_gpus": 0,
        "mine_queue_quota_cpu_cores": 0,
        "mine_queue_quota_memory_bytes": 0,
        "mine_queue_allocated_gpus": 1,
        "mine_queue_allocated_cpu_cores": 0,
        "mine_queue_allocated_memory_bytes": 0,
    }
    assert {family.type for family in registry.collect()} == {"gauge"}


def test_allocated_amounts_are_rounded_to_four_decimals() -> None:
    world = World()
    body = queue("q")
    body["status"] = {"allocated": {"nvidia.com/gpu": "0.333333", "cpu": "100n"}}
    world.gateway.seed(QUEUES, body)
    world.sync()
    values = queue_values(world.store.get(QUEUES, "q"))
    assert values["queue_allocated_gpus"] == 0.3333
    assert values["queue_allocated_cpu_cores"] == 0
    assert values["queue_deserved_gpus"] == -1


def test_children_are_listed_by_name_and_go_with_the_last() -> None:
    world = World()
    world.gateway.seed(QUEUES, queue("p"), queue("b", "p"), queue("a", "p"))
    world.settle()
    assert world.status(QUEUES, "p")["childQueues"] == ["a", "b"]
    for name in ("a", "b"):
        world.gateway.delete(QUEUES, name)
    world.settle()
    assert "childQueues" not in world.status(QUEUES, "p")


def test_label_maps_of_the_command_line() -> None:
    assert parse_pairs("a=b,c=d,a=e", "flag") == {"a": "e", "c": "d"}
    assert parse_pairs("", "flag") == {}
    with pytest.raises(ValueError, match="--flag: expected key=value, got 'x'"):
        parse_pairs("a=b,x", "flag")


def test_an_older_version_of_a_group_changes_no_sum() -> None:
    sums = GroupSums()
    old, new = stated("g", "a", "1"), stated("g", "b", "4")
    old["metadata"]["resourceVersion"], new["metadata"]["resourceVersion"] = "5", "6"
    assert sums.put(convert(new, PodGroup)) == {"b"}
    assert sums.put(convert(old, PodGroup)) == set()
    assert sums.put(convert(new, PodGroup)) == set()
    assert dict(sums.of("b").allocated) == {"nvidia.com/gpu": 4}
    assert sums.drop("lab/g") == {"b"}
    assert sums.drop("lab/g") == set()
    assert dict(sums.of("b").allocated) == {}


def test_parts_that_fill_a_quota_exactly_are_not_over_it() -> None:
    world = World()
    world.gateway.seed(QUEUES, queue("q", gpu=0.3))
    for number, gpus in enumerate(("100m", "200m")):
        world.gateway.seed(PODGROUPS, stated(f"g{number}", "q", gpus))
    world.settle()
    assert world.conditions("q")["OverQuota"] == ("False", "")


class WatchedWorld(World):
    """A world whose queues come from a watch, so that a pass knows which of them changed."""

    def __init__(self) -> None:
        super().__init__()
        self.reflector = Reflector(self.gateway, QUEUES, Queue, self.store)
        self.settle()

    def settle(self, now: datetime = NOW) -> int:
        self.reflector.pass_once(Event())
        return self.controller.pass_once(now)


def test_a_pass_looks_only_at_a_new_queue_its_ancestors_and_what_is_below_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = WatchedWorld()
    world.gateway.create(QUEUES, queue("root"))
    for name in ("a", "b", "c"):
        world.gateway.create(QUEUES, queue(name, "root"))
    world.gateway.create(QUEUES, queue("lost", "new"))
    world.settle()
    seen: list[str] = []
    update = QueueController._update

    def noted(controller: QueueController, checked: Queue, *rest: Any) -> int:
        seen.append(checked.metadata.name)
        return update(controller, checked, *rest)

    monkeypatch.setattr(QueueController, "_update", noted)
    world.gateway.create(QUEUES, queue("new", "a"))
    assert world.settle() == 3
    assert seen == ["lost", "new", "a", "root"]
    assert world.conditions("lost")["Orphan"] == ("False", "")


def test_any_order_of_creations_moves_and_deletions_leaves_nothing_for_a_full_pass() -> None:
    chance = random.Random(7)
    names = [f"q{number}" for number in range(7)]
    world = WatchedWorld()
    for step in range(150):
        name, parent = chance.choice(names), chance.choice(["", *names])
        if world.store.get(QUEUES, name) is None:
            world.gateway.create(QUEUES, queue(name, parent))
        elif chance.random() < 0.4:
            world.gateway.delete(QUEUES, name)
        else:
            world.gateway.patch(QUEUES, name, {"spec": {"parentQueue": parent}})
        world.settle()
        world.settle()  # the events of the statuses just written
        world.controller.recheck()
        assert world.controller.pass_once(NOW) == 0, f"step {step}"
