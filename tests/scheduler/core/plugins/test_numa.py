"""NUMA: pure alignment under each policy, and the ledger that follows placements."""

from __future__ import annotations

import pytest

from scheduler.core.cluster.constraints import ContainerRequest, TaskConstraints
from scheduler.core.cluster.inputs import NumaShare, NumaTopology, NumaZone
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.config import PluginConfig, SchedulerConfig
from scheduler.core.decisions import ActionName, Bind
from scheduler.core.plugins.numa.align import choose_zones, take_from_zones
from scheduler.core.plugins.numa.plugin import NumaArguments
from scheduler.core.session.fit import NodeReason, NodeReasonKind
from tests.builders import cluster, placements, request, status_of

ALLOCATE = ActionName.ALLOCATE
FOUR = {"gpu": 4.0, "cpu": 16_000.0}


@pytest.mark.parametrize(
    ("policy", "request_", "zones"),
    [
        ("single-numa-node", {"gpu": 4.0}, (0,)),
        ("single-numa-node", {"gpu": 5.0}, None),
        ("restricted", {"gpu": 6.0, "cpu": 10_000.0}, None),
        ("restricted", {"gpu": 6.0, "cpu": 24_000.0}, (0, 1)),
        ("restricted", {"gpu": 9.0}, None),
        ("restricted", {}, ()),
        ("best-effort", {"gpu": 6.0}, (0, 1)),
        ("best-effort", {"gpu": 99.0}, (0, 1)),
    ],
)
def test_zones_under_each_policy(
    policy: str, request_: dict[str, float], zones: tuple[int, ...] | None
) -> None:
    both = [dict(FOUR), dict(FOUR)]
    assert choose_zones(policy, both, both, request_) == zones


def test_a_taken_zone_is_passed_over_and_drawing_never_takes_more_than_is_there() -> None:
    free = [{"gpu": 1.0}, {"gpu": 4.0}]
    whole = [{"gpu": 4.0}, {"gpu": 4.0}]
    assert choose_zones("single-numa-node", whole, free, {"gpu": 2.0}) == (1,)
    assert take_from_zones(free, (0, 1), {"gpu": 3.0}) == {0: {"gpu": 1.0}, 1: {"gpu": 2.0}}


def _node(policy: str = "single-numa-node", scope: str = "pod") -> NumaTopology:
    zones = tuple(
        NumaZone(zone=f"node-{n}", allocatable=dict(FOUR), available=dict(FOUR)) for n in (0, 1)
    )
    return NumaTopology(policy=policy, scope=scope, zones=zones)


def _config(**arguments: object) -> SchedulerConfig:
    plugins = (*SchedulerConfig().plugins, PluginConfig("numa", NumaArguments(**arguments)))
    return SchedulerConfig(plugins=plugins)


GUARANTEED = TaskConstraints(qos_class="Guaranteed")


def test_each_task_is_given_a_zone_of_its_own_until_none_is_left() -> None:
    built = cluster().node("n", 8, cpu=32, numa=_node())
    for name in ("a", "b", "c"):
        built.pending(name, gpus=3, constraints=GUARANTEED)
    result = built.cycle(ALLOCATE, config=_config())
    zones = {d.task.name: d.numa[0].zone for d in result.decisions if isinstance(d, Bind)}
    assert zones == {"a-0": "node-0", "b-0": "node-1"}
    assert status_of(result, "c-0") is TaskStatus.PENDING
    counts = result.fit.tasks[2].reasons()
    assert counts[NodeReason(NodeReasonKind.INSUFFICIENT, "gpu")] == 1


def test_a_node_that_cannot_align_is_refused_with_its_reason() -> None:
    built = cluster().node("n", 8, cpu=32, numa=_node()).pending("p", gpus=5)
    result = built.cycle(ALLOCATE, config=_config())
    assert placements(result) == {}
    assert result.fit.tasks[0].reasons() == {NodeReason(NodeReasonKind.NUMA): 1}


def test_recorded_placements_of_running_tasks_are_taken_from_their_zone() -> None:
    shares = (NumaShare(zone="node-0", amounts=(("gpu", 3.0),)),)
    built = cluster().node("n", 8, cpu=32, numa=_node())
    built.running("r", ["n"], gpus=3, task={"numa": shares}).pending("p", gpus=2)
    result = built.cycle(ALLOCATE, config=_config())
    [bind] = result.decisions
    assert isinstance(bind, Bind)
    assert bind.numa == (NumaShare(zone="node-1", amounts=(("gpu", 2.0),)),)


def test_an_unknown_zone_voids_the_whole_record() -> None:
    shares = (NumaShare(zone="gone", amounts=(("gpu", 3.0),)),)
    built = cluster().node("n", 8, cpu=32, numa=_node())
    built.running("r", ["n"], gpus=3, task={"numa": shares}).pending("p", gpus=2)
    [bind] = built.cycle(ALLOCATE, config=_config()).decisions
    assert isinstance(bind, Bind)
    assert bind.numa[0].zone == "node-0"


def test_containers_are_aligned_one_after_the_other() -> None:
    half = ContainerRequest(name="c", requests=(("gpu", 3.0),))
    constraints = TaskConstraints(containers=(half, half))
    built = cluster().node("n", 8, cpu=32, numa=_node(scope="container"))
    built.pending("p", request=request(6), constraints=constraints)
    [bind] = built.cycle(ALLOCATE, config=_config()).decisions
    assert isinstance(bind, Bind)
    assert [share.zone for share in bind.numa] == ["node-0", "node-1"]


def test_init_containers_see_untouched_zones() -> None:
    init = ContainerRequest(name="i", kind="init", requests=(("gpu", 5.0),))
    app = ContainerRequest(name="a", requests=(("gpu", 1.0),))
    built = cluster().node("n", 8, cpu=32, numa=_node(scope="container"))
    built.pending("p", request=request(5), constraints=TaskConstraints(containers=(init, app)))
    assert placements(built.cycle(ALLOCATE, config=_config())) == {}


def test_cpu_counts_only_where_it_is_pinned() -> None:
    shared_cpu = TaskConstraints(qos_class="Burstable")
    built = cluster().node("n", 0, cpu=32, numa=_node())
    built.pending("burst", request=request(0, cpu=20), constraints=shared_cpu)
    assert placements(built.cycle(ALLOCATE, config=_config())) == {"burst-0": "n"}
    pinned = cluster().node("n", 0, cpu=32, numa=_node())
    pinned.pending("pin", request=request(0, cpu=20), constraints=GUARANTEED)
    assert placements(pinned.cycle(ALLOCATE, config=_config())) == {}
    fractional = cluster().node("n", 0, cpu=32, numa=_node())
    fractional.pending("odd", request=request(0, cpu=20.5), constraints=GUARANTEED)
    assert placements(fractional.cycle(ALLOCATE, config=_config())) == {"odd-0": "n"}


def test_ignored_resources_are_not_aligned() -> None:
    built = cluster().node("n", 8, cpu=32, numa=_node()).pending("p", gpus=5)
    assert placements(built.cycle(ALLOCATE, config=_config(ignore=("gpu",)))) == {"p-0": "n"}


def test_fewer_zones_score_higher() -> None:
    wide = NumaTopology(
        policy="best-effort",
        scope="pod",
        zones=tuple(
            NumaZone(zone=f"node-{n}", allocatable={"gpu": 2.0}, available={"gpu": 2.0})
            for n in range(4)
        ),
    )
    built = cluster().node("a", 8, cpu=32, numa=wide).node("b", 8, cpu=32, numa=_node())
    built.pending("p", gpus=4)
    assert placements(built.cycle(ALLOCATE, config=_config())) == {"p-0": "b"}
