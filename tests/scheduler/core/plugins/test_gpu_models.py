"""Bounds per GPU model: limits, quotas of non-preemptible work, and protection from reclaim."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queues.workloads.reasons import GPU_MODEL
from scheduler.core.cluster.constraints import TaskConstraints
from scheduler.core.cluster.inputs import GpuModelBounds
from scheduler.core.config import SchedulerConfig
from scheduler.core.decisions import ActionName, Bind, Evict
from scheduler.core.plugins.gpu_models import PRODUCT_LABEL, model_of
from scheduler.core.session.session import Session
from scheduler.explain.standings import standings
from scheduler.explain.verdicts import verdicts
from tests.builders import ClusterBuilder, cluster, placements

ALLOCATE, RECLAIM, CONSOLIDATION = ActionName.ALLOCATE, ActionName.RECLAIM, ActionName.CONSOLIDATION


def bounds(model: str, **amounts: float) -> dict[str, Any]:
    return {"gpu_models": (GpuModelBounds(model=model, **amounts),)}


def two_models(a100: float = 8, h100: float = 8) -> ClusterBuilder:
    built = cluster().node("a", a100, labels={PRODUCT_LABEL: "A100"})
    return built.node("h", h100, labels={PRODUCT_LABEL: "H100"})


def on(model: str) -> dict[str, Any]:
    return {"constraints": TaskConstraints(node_selector=((PRODUCT_LABEL, model),))}


def bound_to(session: Session) -> list[str]:
    return sorted(d.node for d in session.decisions if isinstance(d, Bind))


def test_a_limit_of_a_model_sends_the_rest_to_other_models() -> None:
    built = two_models().queue("q", **bounds("A100", limit=3))
    for number in range(8):
        built.pending(f"p{number}")
    assert bound_to(built.cycle()) == ["a"] * 3 + ["h"] * 5


def test_what_runs_counts_and_a_gang_stays_within_the_limit() -> None:
    built = two_models(8, 1).queue("q", **bounds("A100", limit=4))
    built.running("old", ["a", "a"]).pending("gang", 3).pending("pair", 2)
    session = built.cycle()
    assert {d.pod_group for d in session.decisions if isinstance(d, Bind)} == {"gang"}
    assert bound_to(session) == ["a", "a", "h"]


def test_a_limit_of_an_ancestor_counts_what_all_its_queues_hold() -> None:
    built = two_models(8, 0).queue("top", **bounds("A100", limit=3))
    built.queue("x", parent="top").queue("y", parent="top").queue("free")
    built.running("old", ["a", "a"], queue="x")
    for queue in ("x", "y", "free"):
        built.pending(f"p-{queue}", queue=queue)
    assert len(bound_to(built.cycle())) == 2
    assert placements(built.cycle()).keys() >= {"p-free-0"}


def test_fractions_count_as_parts() -> None:
    built = two_models(8, 0).queue("q", **bounds("A100", limit=1))
    for number in range(5):
        built.pending(f"p{number}", gpus=0.4)
    assert len(bound_to(built.cycle())) == 2


def test_work_without_gpus_is_not_bound() -> None:
    built = two_models().queue("q", **bounds("A100", limit=0)).queue("r")
    built.pending("cpu", gpus=0, queue="q", **on("A100"))
    assert bound_to(built.cycle()) == ["a"]


@pytest.mark.parametrize(("priority", "count"), [(50, 4), (100, 2)])
def test_non_preemptible_work_stays_within_the_quota_of_the_model(priority, count) -> None:
    built = two_models(8, 0).queue("q", **bounds("A100", quota=2))
    for number in range(4):
        built.pending(f"p{number}", priority=priority)
    assert len(bound_to(built.cycle())) == count


def test_the_minimum_of_semi_preemptible_work_counts_against_the_quota_of_the_model() -> None:
    built = two_models(8, 0).queue("q", **bounds("A100", quota=2))
    for number in range(2):
        built.pending(f"p{number}", 4, minimum=2, protects_minimum=True)
    session = built.cycle()
    # The first has its minimum within the quota and its surplus beyond; the second finds no quota left.
    assert [d.pod_group for d in session.decisions if isinstance(d, Bind)] == ["p0"] * 4


def test_a_model_without_bounds_and_a_bound_without_nodes_change_nothing() -> None:
    built = two_models(2, 2).queue("q", **bounds("B200", limit=0))
    for number in range(4):
        built.pending(f"p{number}")
    assert len(bound_to(built.cycle())) == 4


def test_the_reason_names_queue_model_and_figures() -> None:
    built = two_models(8, 0).queue("q", **bounds("A100", limit=1))
    built.pending("first").pending("second")
    session = built.cycle()
    standing = standings(session, verdicts(session, 0.0))["/second"]
    assert standing.code == GPU_MODEL
    message = verdicts(session, 0.0)[1].message
    assert "a GPU model of which queue 'q' holds 1 of its limit of 1 A100" in message


def test_reclaim_leaves_a_queue_its_quota_of_a_model() -> None:
    built = two_models(4, 4).queue("rich", 0, **bounds("A100", quota=3)).queue("poor", 4)
    built.running("a100", ["a"], queue="rich")
    for number in range(3):
        built.running(f"a{number}", ["a"], queue="rich")
    for number in range(4):
        built.running(f"h{number}", ["h"], queue="rich")
    for number in range(3):
        built.pending(f"want{number}", queue="poor", **on("A100"))
    session = built.cycle(ALLOCATE, RECLAIM)
    evicted = [d for d in session.decisions if isinstance(d, Evict)]
    assert [d.node for d in evicted] == ["a"]


def test_a_quota_of_the_parent_does_not_hinder_its_own_queues() -> None:
    built = two_models(4, 0).queue("top", 4, **bounds("A100", quota=4))
    built.queue("x", 0, parent="top").queue("y", 2, parent="top")
    for number in range(4):
        built.running(f"x{number}", ["a"], queue="x")
    built.pending("want", queue="y")
    session = built.cycle(ALLOCATE, RECLAIM)
    assert sum(isinstance(d, Evict) for d in session.decisions) == 1


def test_a_search_of_a_bound_queue_does_not_end_those_of_others() -> None:
    built = cluster().node("a", 4, labels={PRODUCT_LABEL: "A100"})
    built.node("b", 4, labels={PRODUCT_LABEL: "A100"})
    built.queue("bound", **bounds("A100", limit=0)).queue("free")
    built.running("m0", ["a", "a"], queue="free").running("m1", ["b", "b"], queue="free")
    built.pending("no", gpus=4, queue="bound").pending("yes", gpus=4, queue="free")
    session = built.cycle(ALLOCATE, CONSOLIDATION)
    assert "yes-0" in placements(session)
    assert "no-0" not in placements(session)


def test_nodes_without_a_product_label_are_one_model() -> None:
    built = cluster().node("n", 2).node("cpu", 0).queue("q", **bounds("nvidia.com/gpu", limit=1))
    assert [model_of(node) for node in built.build().nodes] == ["nvidia.com/gpu", ""]
    built.pending("p0").pending("p1")
    assert bound_to(built.cycle()) == ["n"]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    jobs=st.lists(
        st.tuples(
            st.sampled_from("xy"), st.sampled_from([0.5, 1, 2]), st.integers(1, 3), st.booleans(),
            st.sampled_from([50, 100]),
        ),
        min_size=1,
        max_size=14,
    ),
    limits=st.tuples(st.integers(0, 5), st.integers(0, 7)),
)  # fmt: skip
def test_no_cycle_ends_above_a_limit(jobs, limits) -> None:
    built = two_models(6, 3).queue("top", **bounds("A100", limit=limits[1], quota=3))
    built.queue("x", 3, parent="top", **bounds("A100", limit=limits[0])).queue("y", 3, parent="top")
    room = {"a": 6.0, "h": 3.0}
    gpus_by_queue = {"x": 0.0, "top": 0.0}
    for number, (queue, gpus, tasks, runs, priority) in enumerate(jobs):
        node = "ah"[number % 2]
        whole = max(gpus, 1)
        is_over = node == "a" and (
            gpus_by_queue["top"] + whole * tasks > limits[1]
            or (queue == "x" and gpus_by_queue["x"] + whole * tasks > limits[0])
        )
        if runs and room[node] >= whole * tasks and not is_over:
            room[node] -= whole * tasks
            if node == "a":
                gpus_by_queue["top"] += whole * tasks
                gpus_by_queue["x"] += whole * tasks if queue == "x" else 0
            built.running(f"r{number}", [node] * tasks, queue=queue, gpus=whole, priority=50)
        else:
            built.pending(f"p{number}", tasks, queue=queue, gpus=gpus, priority=priority)
    session = built.cycle(config=SchedulerConfig())
    state = session.state
    total = dict.fromkeys(("x", "y"), 0.0)
    for task, node in enumerate(state.tasks.node):
        group = state.tasks.pod_group[task]
        status = state.tasks.status[task]
        if node >= 0 and state.nodes.names[node] == "a" and status in (3, 4, 6):
            total[state.pod_groups.inputs[group].queue] += state.tasks.accepted[task][2]
    assert total["x"] <= limits[0] + 1e-9
    assert total["x"] + total["y"] <= limits[1] + 1e-9
