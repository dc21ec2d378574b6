"""Why a task was placed on its node: figures that equal the scores it was chosen by, at a bounded cost."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from scheduler.core.config import DEFAULT_PLUGINS, PluginConfig, SchedulerConfig
from scheduler.core.cycle import run_cycle
from scheduler.core.decisions import ActionName
from scheduler.core.placement.candidates import Candidates
from scheduler.core.placement.chosen import MAX_PER_GROUP, PlacementLog, PlacementReason
from scheduler.core.plugins.placement_strategy import NodePlacementArguments
from scheduler.core.session.session import Session
from scheduler.explain.placements import decided_by, placement_item
from scheduler.tools.traces.generated import generate
from scheduler.tools.traces.one_session import strategy_config
from scheduler.tools.traces.trace import snapshot_of
from tests.builders import ClusterBuilder, cluster, request

SPREAD = SchedulerConfig(
    plugins=tuple(
        PluginConfig("nodeplacement", NodePlacementArguments(cpu="spread", gpu="spread"))
        if plugin.name == "nodeplacement"
        else plugin
        for plugin in DEFAULT_PLUGINS
    )
)


class CheckedLog(PlacementLog):
    """Checks every record against the scores that the placement itself works with."""

    checked = 0

    def note(
        self,
        session: Session,
        candidates: Candidates,
        task: int,
        node: int,
        refused: Sequence[int] = (),
    ) -> None:
        super().note(session, candidates, task, node, refused)
        reason, values = self.reasons(session)[task], candidates.scores_now()
        names = session.state.nodes.names
        assert reason.chosen.node == names[node]
        assert reason.chosen.score == pytest.approx(values[candidates.position(node)])
        tried = {names[each] for each in (node, *refused)}
        others = {
            names[each]: float(values[position])
            for position, each in enumerate(candidates.node_set.indices)
            if values[position] != -float("inf") and names[each] not in tried
        }
        best = max(others.values(), default=None)
        assert (reason.runner_up is None) == (best is None)
        if reason.runner_up is not None:
            assert others[reason.runner_up.node] == best
            assert reason.runner_up.score == pytest.approx(best)
            assert reason.chosen.score >= reason.runner_up.score - 1e-9
        refusals = sum(count for _, count in reason.refused)
        assert reason.possible + refusals == reason.considered
        self.checked += 1


def attach(session: Session, log: PlacementLog) -> None:
    session._attachments[PlacementLog] = log


def reasons(
    built: ClusterBuilder, config: SchedulerConfig | None = None, limit: int = 100
) -> dict[str, PlacementReason]:
    session = run_cycle(
        built.build(),
        config or SchedulerConfig(),
        after_open=lambda session: attach(session, PlacementLog(limit)),
    )
    log = session.attached(PlacementLog)
    assert log is not None
    return {
        session.state.tasks.inputs[task].name: why for task, why in log.reasons(session).items()
    }


@pytest.mark.parametrize("strategy", ["binpack", "spread", "fragmentation"])
def test_the_parts_of_a_score_add_up_and_recording_changes_no_decision(strategy: str) -> None:
    trace = generate(nodes=12, seed=3)
    config = strategy_config(strategy)
    log = CheckedLog(10_000)
    recorded = run_cycle(
        snapshot_of(trace), config, after_open=lambda session: attach(session, log)
    )
    assert recorded.decisions == run_cycle(snapshot_of(trace), config).decisions
    assert log.checked >= len(recorded.decisions) > 50


def test_binpack_names_the_fuller_node_and_why_others_refused() -> None:
    built = (
        cluster()
        .node("n0", gpus=8)
        .node("n1", gpus=8)
        .node("n2", gpus=8, unschedulable=True)
        .node("n3", gpus=0)
        .running("old", ["n1"], gpus=2)
        .pending("new", gpus=1)
    )
    why = reasons(built)["new-0"]
    assert placement_item(why) == {
        "strategy": "binpack",
        "decidedBy": "binpack",
        "score": 1009.0,
        "nextNode": "n0",
        "nextScore": 1000.0,
        "terms": [
            {"name": "binpack", "chosen": 9.0, "next": 0.0},
            {"name": "nodeavailability", "chosen": 1000.0, "next": 1000.0},
        ],
        "nodes": 4,
        "considered": 4,
        "possible": 2,
        "refused": [{"reason": "NodeCondition", "nodes": 1}, {"reason": "gpu", "nodes": 1}],
    }


def test_spread_names_the_emptier_node_and_equal_nodes_are_taken_by_name() -> None:
    built = cluster().nodes(2, gpus=4).running("old", ["n0"], gpus=2).pending("new", gpus=1)
    why = reasons(built, SPREAD)["new-0"]
    assert (why.strategy, decided_by(why), why.chosen.node) == ("spread", "spread", "n1")
    equal = reasons(cluster().nodes(2, gpus=4).pending("new", gpus=1), SPREAD)["new-0"]
    assert (decided_by(equal), equal.chosen.node) == ("name", "n0")


def test_a_task_that_only_one_node_can_take_has_no_runner_up() -> None:
    built = cluster().node("big", gpus=8).node("small", gpus=1).pending("new", gpus=4)
    why = reasons(built)["new-0"]
    assert (decided_by(why), why.runner_up, why.refused) == ("only-node", None, (("gpu", 1),))


def test_a_task_that_joins_a_shared_device_is_decided_by_sharing() -> None:
    built = (
        cluster()
        .nodes(2, gpus=2, gpu_memory_mib=40_000)
        .running("old", ["n1"], request=request(0.5), gpu_groups=[("shared",)])
        .pending("new", request=request(0.5))
    )
    why = reasons(built)["new-0"]
    assert (why.chosen.node, decided_by(why)) == ("n1", "gpusharingorder")


def test_a_gang_that_does_not_fit_leaves_no_record_and_gives_its_places_back() -> None:
    built = cluster().nodes(2, gpus=2).pending("gang", 5, gpus=1).pending("later", 2, gpus=1)
    assert sorted(reasons(built, limit=4)) == ["later-0", "later-1"]


def test_a_cycle_records_at_most_its_limit_and_a_few_of_each_pod_group() -> None:
    built = cluster().nodes(4, gpus=8)
    for number in range(10):
        built.pending(f"job{number}", gpus=1)
    assert sorted(reasons(built, limit=3)) == ["job0-0", "job1-0", "job2-0"]
    gang = cluster().nodes(4, gpus=8).pending("gang", 20, gpus=1)
    assert len(reasons(gang)) == MAX_PER_GROUP


def test_trials_of_searches_for_victims_are_not_recorded() -> None:
    built = (
        cluster()
        .queue("a", quota=0)
        .queue("b", quota=4)
        .node("n0", gpus=4)
        .running("old", ["n0"] * 4, gpus=1, queue="a", minimum=1)
        .pending("new", gpus=2, queue="b")
    )
    session = built.cycle(ActionName.RECLAIM)
    assert len(session.decisions) > 1
    assert reasons(built) == {}
