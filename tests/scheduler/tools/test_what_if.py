"""What-if: the preview of an edit is what then happens, and the cluster is not written."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from kube.keys import HOLD
from kube.resources import NODES, PODGROUPS, PODS, QUEUES
from queues.editing import edits
from scheduler.load.build import SnapshotBuilder
from scheduler.loop.kept_cluster import different_parts
from scheduler.tools.simulate.what_if.answer import answer_of
from scheduler.tools.simulate.what_if.edited import apply_edits, settings_of_picture
from scheduler.tools.simulate.what_if.picture import PictureStore, take_picture
from scheduler.tools.simulate.what_if.question import QuestionError, read_question
from scheduler.tools.simulate.what_if.run import Outcome, _inputs, simulate
from tests.scheduler.load.objects import group, node, pod, queue
from tests.scheduler.loop.harness import FREE, START, Harness, harness

#: `make preview-equals-cluster` runs 200.
EDITS = int(os.environ.get("KAIWEB_WHAT_IF_EDITS", "30"))
LEAVES = ("a", "b", "c")


def ask(shard: Harness, **question: Any) -> Outcome:
    picture = take_picture(shard.gateway, "default", shard.now.timestamp())
    return simulate(picture, read_question(question))


def amounts(quota: float, limit: float = -1) -> dict[str, Any]:
    gpu = {"quota": quota, "limit": limit, "overQuotaWeight": 1}
    return {"cpu": FREE, "memory": FREE, "gpu": gpu}


def seed(shard: Harness, random_: random.Random) -> None:
    """Fill two nodes of 8 GPUs with running work of three queues, and let more wait."""
    shard.seed(NODES, node("n0"), node("n1"))
    shard.seed(QUEUES, queue("top", resources=amounts(-1)))
    for name in LEAVES:
        shard.seed(
            QUEUES, queue(name, parentQueue="top", resources=amounts(random_.choice([0, 2, 4, 6])))
        )
    room = {"n0": 8, "n1": 8}
    for number in range(8):
        name, gpus = f"run-{number}", random_.choice([1, 2, 4])
        place = max(room, key=lambda item: room[item])
        if room[place] < gpus:
            continue
        room[place] -= gpus
        _workload(shard, name, random_.choice(LEAVES), gpus, place)
    for number in range(5):
        _workload(shard, f"wait-{number}", random_.choice(LEAVES), random_.choice([1, 2, 4, 8]))


def _workload(shard: Harness, name: str, queue_name: str, gpus: int, place: str = "") -> None:
    shard.seed(PODGROUPS, group(name, queue=queue_name, minMember=1))
    requests = {"nvidia.com/gpu": str(gpus)}
    phase = "Running" if place else "Pending"
    shard.seed(PODS, pod(f"{name}-0", group=name, node=place, phase=phase, requests=requests))


def random_edit(random_: random.Random) -> tuple[str, dict[str, Any]]:
    gpus = random_.choice([0, 1, 3, 5, 8, 16])
    edit = random_.choice(
        [
            {"quota": {"gpu": gpus}},
            {"limit": {"gpu": gpus}},
            {"weight": {"gpu": random_.choice([0, 1, 3])}},
            {"priority": random_.choice([50, 100, 200])},
        ]
    )
    return random_.choice(LEAVES), edit


@pytest.mark.parametrize("number", range(EDITS))
def test_the_preview_of_an_edit_is_what_then_happens(number: int) -> None:
    random_ = random.Random(number)
    with harness() as shard:
        seed(shard, random_)
        name, edit = random_edit(random_)
        outcome = ask(shard, queues=[{"name": name, "edit": edit}])
        assert outcome.edited is not None
        body = shard.gateway.raw(QUEUES, name)
        after, faults = edits.apply(body, edit)
        assert not faults
        shard.gateway.patch(QUEUES, name, {"spec": after["spec"]})
        summary = shard.cycle()
        assert {move.pod for move in outcome.edited.starts} == {
            f"{ref.namespace}/{ref.name}" for ref in summary.commit.bound
        }
        assert {move.pod for move in outcome.edited.evictions} == {
            f"{ref.namespace}/{ref.name}" for ref in summary.commit.evicted
        }


@pytest.fixture
def contest() -> Any:
    """Queue `a` borrows all 8 GPUs of one node, while workload `late` of queue `b` waits."""
    with harness() as shard:
        shard.seed(NODES, node("n0"))
        shard.seed(QUEUES, queue("top", resources=amounts(-1)))
        shard.seed(QUEUES, queue("a", parentQueue="top", resources=amounts(8)))
        shard.seed(QUEUES, queue("b", parentQueue="top", resources=amounts(0)))
        _workload(shard, "early", "a", 8, "n0")
        _workload(shard, "late", "b", 8)
        yield shard


def moved_quota() -> list[dict[str, Any]]:
    return [
        {"name": "a", "edit": {"quota": {"gpu": 0}, "weight": {"gpu": 0}}},
        {"name": "b", "edit": {"quota": {"gpu": 8}}},
    ]


def test_a_quota_that_moves_evicts_and_then_starts(contest: Harness) -> None:
    answer = answer_of(ask(contest, queues=moved_quota(), cycles=2))
    assert answer["verdict"] == "evicts"
    (eviction,) = answer["evictions"]
    assert (eviction["workload"], eviction["queue"], eviction["evictor"]) == (
        "ns/early",
        "a",
        "ns/late",
    )
    assert (eviction["action"], eviction["gpu"], eviction["withoutEdits"]) == ("reclaim", 8, False)
    assert "preempted by workload ns/late" in eviction["rule"]
    assert [(row["workload"], row["cycle"]) for row in answer["starts"]] == [("ns/late", 2)]
    shares = {row["queue"]: row for row in answer["shares"]}
    assert shares["b"]["before"]["share"]["gpu"] == 0
    assert shares["b"]["after"]["share"]["gpu"] == 8
    assert (answer["totals"]["evictedGpu"], answer["totals"]["startedGpu"]) == (8, 8)


def test_without_edits_nothing_changes(contest: Harness) -> None:
    answer = answer_of(ask(contest))
    assert answer["verdict"] == "no-effect"
    assert (answer["evictions"], answer["starts"]) == ([], [])
    (blocked,) = answer["blocked"]
    assert (blocked["workload"], blocked["before"]) == ("ns/late", blocked["after"])


def test_a_further_node_lets_the_waiting_workload_start(contest: Harness) -> None:
    answer = answer_of(ask(contest, nodes={"add": [{"like": "n0"}]}))
    assert answer["verdict"] == "safe"
    assert [(row["workload"], row["node"]) for row in answer["starts"]] == [
        ("ns/late", "simulated-0")
    ]


def test_a_removed_node_leaves_its_workload_waiting(contest: Harness) -> None:
    answer = answer_of(ask(contest, nodes={"remove": ["n0"]}))
    assert {row["workload"]: row["before"] for row in answer["blocked"]}.keys() == {
        "ns/early",
        "ns/late",
    }


def test_a_removed_workload_makes_room(contest: Harness) -> None:
    answer = answer_of(ask(contest, workloads={"remove": ["ns/early"]}))
    assert [row["workload"] for row in answer["starts"]] == ["ns/late"]


def test_a_requeued_workload_that_is_held_makes_room(contest: Harness) -> None:
    edits = {"requeue": ["ns/early"], "hold": ["ns/early"]}
    answer = answer_of(ask(contest, workloads=edits))
    assert [row["workload"] for row in answer["starts"]] == ["ns/late"]
    assert "ns/early" in {row["workload"] for row in answer["blocked"]}


def test_a_requeued_workload_waits_like_any_other(contest: Harness) -> None:
    answer = answer_of(ask(contest, workloads={"requeue": ["ns/early"]}))
    assert [row["workload"] for row in answer["starts"]] == ["ns/early"]


def test_a_hold_keeps_room_free_and_a_release_ends_it(contest: Harness) -> None:
    held = answer_of(ask(contest, workloads={"remove": ["ns/early"], "hold": ["ns/late"]}))
    assert held["starts"] == []
    hold = {"metadata": {"annotations": {HOLD: "budget"}}}
    contest.gateway.patch(PODGROUPS, "late", hold, namespace="ns")
    still_held = answer_of(ask(contest, workloads={"remove": ["ns/early"]}))
    assert still_held["starts"] == []
    edits = {"remove": ["ns/early"], "release": ["ns/late"]}
    released = answer_of(ask(contest, workloads=edits))
    assert [row["workload"] for row in released["starts"]] == ["ns/late"]


def test_added_workloads_are_tried_like_real_ones(contest: Harness) -> None:
    added = {"name": "huge", "queue": "b", "gpu": 16}
    answer = answer_of(ask(contest, workloads={"add": [added]}))
    row = next(row for row in answer["blocked"] if row["workload"] == "default/huge")
    assert (row["before"], row["after"]) == (None, "NeverFits")


def test_a_manifest_becomes_pods_of_a_gang(contest: Harness) -> None:
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "team", "labels": {"kai.scheduler/queue": "b"}},
        "spec": {
            "parallelism": 2,
            "template": {
                "spec": {
                    "schedulerName": "kai-scheduler",
                    "containers": [
                        {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "4"}}}
                    ],
                }
            },
        },
    }
    answer = answer_of(
        ask(contest, workloads={"manifests": [manifest], "remove": ["ns/early", "ns/late"]})
    )
    assert [(row["queue"], row["gpu"]) for row in answer["starts"]] == [("b", 4), ("b", 4)]


def test_an_edit_that_breaks_the_tree_is_invalid_and_not_run(contest: Harness) -> None:
    answer = answer_of(ask(contest, queues=[{"name": "a", "edit": {"parent": "a"}}]))
    assert (answer["verdict"], answer["cyclesRun"]) == ("invalid", 0)
    assert answer["errors"][0]["pointer"].startswith("/queues/0/edit")


def test_settings_of_the_shard_can_be_tried(contest: Harness) -> None:
    settings = {"actions": {"reclaim": {"enabled": False}}}
    answer = answer_of(ask(contest, queues=moved_quota(), settings=settings))
    assert answer["evictions"] == []
    assert (
        answer_of(ask(contest, settings={"placementStrategy": {"gpu": "?"}}))["verdict"]
        == "invalid"
    )


def test_in_quota_reclaim_can_be_tried_before_it_is_switched_on() -> None:
    """Both queues have a quota of 8 on a node of 8 GPUs; the higher one waits without the option."""
    with harness() as shard:
        shard.seed(NODES, node("n0"))
        shard.seed(QUEUES, queue("top", resources=amounts(-1)))
        shard.seed(QUEUES, queue("low", parentQueue="top", resources=amounts(8)))
        shard.seed(QUEUES, queue("high", parentQueue="top", priority=200, resources=amounts(8)))
        for number in range(2):
            _workload(shard, f"low-{number}", "low", 4, "n0")
        _workload(shard, "urgent", "high", 4)
        settings = {"args": {"reclaim-in-quota-by-priority": "true"}}
        answer = answer_of(ask(shard, settings=settings, cycles=3))
        assert answer["verdict"] == "evicts"
        (eviction,) = answer["evictions"]
        assert (eviction["queue"], eviction["evictor"]) == ("low", "ns/urgent")
        assert "low is within its quota, but high has a higher queue priority" in eviction["rule"]
        assert [row["workload"] for row in answer["starts"]] == ["ns/urgent"]
        assert answer_of(ask(shard, cycles=3))["verdict"] == "no-effect"


def test_a_simulation_writes_nothing(contest: Harness) -> None:
    before = {key: dict(body) for key, body in contest.gateway.objects.items()}
    ask(contest, queues=moved_quota(), cycles=3)
    assert contest.gateway.objects == before


def test_a_simulation_ends_after_the_cycle_in_which_its_time_is_over(contest: Harness) -> None:
    times = iter(range(1_000))
    picture = take_picture(contest.gateway, "default", START.timestamp())
    outcome = simulate(
        picture, read_question({"cycles": 50}), clock=lambda: float(next(times)), time_limit_s=5
    )
    assert outcome.edited is not None
    assert outcome.edited.cycles < 50
    assert [finding.code for finding in outcome.warnings] == ["time-limit"]


@pytest.mark.parametrize(
    ("question", "pointer"),
    [
        ({"cycles": 51}, "/cycles"),
        ({"colour": 1}, ""),
        ({"queues": [{"name": "A!"}]}, "/queues/0/name"),
        ({"workloads": {"add": [{"name": "w", "queue": "q", "gpu": -1}]}}, "/workloads/add/0/gpu"),
        ({"workloads": {"add": [{"name": "w", "queue": "q", "pods": 4000}] * 2}}, "/workloads/add"),
        ([], ""),
    ],
)
def test_a_question_that_cannot_be_read_names_the_field(question: Any, pointer: str) -> None:
    with pytest.raises(QuestionError) as caught:
        read_question(question)
    assert caught.value.findings[0].pointer.startswith(pointer)


@pytest.mark.parametrize(
    "question",
    [
        {"nodes": {"remove": ["missing"]}},
        {"nodes": {"add": [{"like": "missing"}]}},
        {"workloads": {"remove": ["ns/missing"]}},
        {"workloads": {"hold": ["ns/missing"]}},
        {"workloads": {"release": ["ns/missing"]}},
        {"workloads": {"requeue": ["ns/missing"]}},
        {"workloads": {"manifests": [{"kind": "Job"}]}},
    ],
)
def test_objects_that_do_not_exist_are_refused(contest: Harness, question: Any) -> None:
    with pytest.raises(QuestionError):
        ask(contest, **question)


@pytest.mark.parametrize(
    "question",
    [
        {"queues": [{"name": "a", "edit": {"quota": {"gpu": 6}}}]},
        {"workloads": {"remove": ["ns/run-0"], "add": [{"name": "new", "queue": "b", "gpu": 2}]}},
        {"nodes": {"remove": ["n0"], "add": [{"name": "more", "like": "n1", "count": 2}]}},
        {"settings": {"args": {"defaultSchedulerName": "other"}}},
    ],
)
def test_the_inputs_before_and_after_edits_are_those_of_separate_snapshots(
    question: dict[str, Any],
) -> None:
    with harness() as shard:
        seed(shard, random.Random(5))
        picture = take_picture(shard.gateway, "default", shard.now.timestamp())
    after = apply_edits(picture, read_question(question), {})
    assert after.errors == ()
    settings = settings_of_picture(picture, "default")
    before_edits, after_edits = _inputs(picture, settings, after)
    for inputs, shown, used in (
        (before_edits, picture, settings),
        (after_edits, after.picture, after.settings),
    ):
        builder = SnapshotBuilder(used.params, origin=shown.taken_at)
        separate = builder.build(PictureStore().view(shown), shown.taken_at).cluster
        assert different_parts(inputs, separate) == []
