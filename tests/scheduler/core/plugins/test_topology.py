"""Topology: which domains are tried, in which order, and the reason when none has room."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.core.cluster.inputs import (
    NodeInput,
    PodGroupInput,
    PodSetInput,
    SubGroupInput,
    TaskInput,
    TopologyConstraint,
    TopologyInput,
)
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.decisions import ActionName
from scheduler.core.plugins.topology.plugin import TopologyPlugin
from scheduler.core.plugins.topology.tree import ROOT, Domain, DomainTree, searched_levels
from scheduler.core.session.fit import GroupReason, TopologyRefusal
from tests.builders import ClusterBuilder, cluster, placements, request, status_of

ALLOCATE = ActionName.ALLOCATE
MAP = TopologyInput(name="map", levels=("zone", "rack"))


def _labels(zone: str, rack: str) -> dict[str, str]:
    return {"zone": zone, "rack": rack}


def _gang(
    tasks: int, *, required: str = "", preferred: str = "", topology: str = "map"
) -> SubGroupInput:
    constraint = TopologyConstraint(
        topology=topology, required_level=required, preferred_level=preferred
    )
    return SubGroupInput(topology=constraint, pod_sets=(PodSetInput(min_available=tasks),))


def _two_zones() -> ClusterBuilder:
    """Zone a: racks with 2, 1, 1, 1 GPUs; zone b: racks with 2, 2, 2."""
    built = cluster().having(topologies=(MAP,))
    for number, gpus in enumerate((2, 1, 1, 1), start=1):
        built.node(f"a{number}", gpus, labels=_labels("a", f"a{number}"))
    for number in (1, 2, 3):
        built.node(f"b{number}", 2, labels=_labels("b", f"b{number}"))
    return built


def test_a_required_zone_takes_the_tightest_one_and_inside_it_the_freest_racks() -> None:
    built = _two_zones().pending("gang", 3, root=_gang(3, required="zone", preferred="rack"))
    placed = placements(built.cycle(ALLOCATE))
    assert sorted(placed.values()) == ["a1", "a1", "a4"]


def test_nodes_without_a_level_label_take_no_part() -> None:
    built = cluster().having(topologies=(MAP,))
    built.node("bare", 8).node("a1", 2, labels=_labels("a", "a1"))
    result = built.pending("gang", 2, root=_gang(2, preferred="rack")).cycle(ALLOCATE)
    assert set(placements(result).values()) == {"a1"}


def test_growth_stays_in_the_required_domain_where_the_gang_runs() -> None:
    built = cluster().having(topologies=(MAP,))
    built.node("a1", 2, labels=_labels("a", "a1")).node("b1", 8, labels=_labels("b", "b1"))
    root = _gang(1, required="zone")
    running = built.running("gang", ["a1"], root=root)._groups[0]
    grown = tuple(
        running.tasks[0].__class__(name=f"more-{n}", uid=f"more-{n}", request=request())
        for n in range(2)
    )
    built._groups[0] = type(running)(
        **{
            field: getattr(running, field)
            for field in running.__dataclass_fields__
            if field != "tasks"
        },
        tasks=(*running.tasks, *grown),
    )
    placed = placements(built.cycle(ALLOCATE))
    assert placed == {"gang-0": "a1", "more-0": "a1"}


def test_a_gang_that_fits_no_single_rack_says_how_many_each_could_take() -> None:
    built = cluster().having(topologies=(MAP,))
    for rack in ("r1", "r2"):
        built.node(f"{rack}-n", 3, labels=_labels("a", rack))
    result = built.pending("gang", 4, root=_gang(4, required="rack")).cycle(ALLOCATE)
    assert status_of(result, "gang-0") is TaskStatus.PENDING
    fits = result.fit.pod_groups[0]
    texts = [(fit.reason, *fit.evidence.texts, fit.evidence.domain) for fit in fits]
    assert texts == [
        (
            GroupReason.NOT_ENOUGH_RESOURCES,
            "node-group a.r1 can allocate only 3 of 4 required pods",
            "a.r1",
        ),
        (
            GroupReason.NOT_ENOUGH_RESOURCES,
            "node-group a.r2 can allocate only 3 of 4 required pods",
            "a.r2",
        ),
        (
            GroupReason.POD_SCHEDULING_ERRORS,
            "topology map, requirement rack couldn't be satisfied for job </gang>",
            "",
        ),
    ]


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        ({"topology": "nowhere", "required": "rack"}, "Requested topology nowhere does not exist"),
        (
            {"required": "floor"},
            "topology map, requirement floor couldn't be satisfied for job </gang>: "
            "level floor is not one of the levels zone, rack",
        ),
    ],
)
def test_an_invalid_topology_constraint_is_reported_and_nothing_is_placed(
    constraint: dict[str, str], text: str
) -> None:
    built = _two_zones().pending("gang", 2, root=_gang(2, **constraint))
    result = built.cycle(ALLOCATE)
    assert placements(result) == {}
    assert result.fit.pod_groups[0][0].evidence == TopologyRefusal(texts=(text,))


def test_a_topology_without_a_level_asks_for_nothing() -> None:
    result = _two_zones().pending("gang", 11, root=_gang(11)).cycle(ALLOCATE)
    assert len(placements(result)) == 11


def test_mixed_tasks_are_summed_and_the_lacking_resource_is_named() -> None:
    built = cluster().having(topologies=(MAP,)).node("n", 1, labels=_labels("a", "a1"), cpu=10)
    built.node("m", 1, labels=_labels("b", "b1"), cpu=10)
    gpu, cpu_only = request(1, cpu=8), request(0, cpu=8)
    built.pending("gang", 2, root=_gang(2, required="zone"))
    pod_group = built._groups[0]
    tasks = (
        type(pod_group.tasks[0])(name="g", uid="g", request=gpu),
        type(pod_group.tasks[0])(name="c", uid="c", request=cpu_only),
    )
    built._groups[0] = type(pod_group)(
        name="gang", uid="gang", queue=pod_group.queue, root=pod_group.root, tasks=tasks
    )
    result = built.cycle(ALLOCATE)
    refusals = {fit.evidence.domain: fit.evidence for fit in result.fit.pod_groups[0]}
    assert refusals["a"] == TopologyRefusal(
        texts=("node-group(s) didn't have enough resources: CPU cores",),
        details=("a didn't have enough resources: CPU cores, requested: 16, available: 10",),
        domain="a",
    )


@pytest.mark.parametrize(
    ("required", "preferred", "levels"),
    [
        ("zone", "rack", [1, 0]),
        ("rack", "rack", [1]),
        ("", "rack", [1, 0, ROOT]),
        ("zone", "", [0]),
    ],
)
def test_levels_are_searched_from_the_preferred_up_to_the_required(
    required: str, preferred: str, levels: list[int]
) -> None:
    assert searched_levels(MAP.levels, required, preferred) == (levels, "")


def test_a_preferred_level_above_the_required_one_is_a_mistake() -> None:
    levels, problem = searched_levels(MAP.levels, "rack", "zone")
    assert levels == []
    assert problem == "the preferred level zone is above the required level rack"


def test_the_tree_sums_and_finds_common_domains_like_a_plain_loop() -> None:
    generator = np.random.default_rng(7)
    nodes = [
        NodeInput(name=f"n{i}", labels=_labels(f"z{i % 3}", f"r{i % 5}")) for i in range(30)
    ] + [NodeInput(name="bare", labels={"zone": "z0"})]
    tree = DomainTree(MAP, nodes)
    values = generator.random(len(nodes))
    by_rack: dict[str, float] = {}
    for node, value in zip(nodes, values.tolist(), strict=True):
        if "rack" in node.labels:
            key = f"{node.labels['zone']}.{node.labels['rack']}"
            by_rack[key] = by_rack.get(key, 0.0) + value
    sums = dict(zip(tree.ids[1], tree.sums(values, 1).tolist(), strict=True))
    assert sums == pytest.approx(by_rack)
    same_zone = np.array([i for i in range(30) if i % 3 == 1])
    common = tree.common_domain(same_zone, deepest=1)
    assert tree.id_of(common) == "z1"
    assert tree.common_domain(np.arange(30), deepest=1) == Domain(ROOT, 0)
    assert tree.inside(common, 1).sum() == 5
    assert not tree.members(Domain(ROOT, 0))[30]


def test_scores_are_dropped_for_nodes_outside_the_scored_domains() -> None:
    session = _two_zones().pending("gang", 3, root=_gang(3, preferred="rack")).session()
    plugin = next(
        splitter for splitter in session.hooks.splitters if isinstance(splitter, TopologyPlugin)
    )
    view = session.view(0)
    [first, *_] = plugin.split(view, view.root, [0, 1, 2], session.all_nodes, record=False)
    assert first.extra_scores is not None
    assert np.nanmax(first.extra_scores) == 1_000_000.0


@pytest.mark.parametrize("level", ["zone", "rack"])
def test_one_zone_with_one_rack_serves_a_gang_that_requires_either(level: str) -> None:
    built = cluster().having(topologies=(MAP,))
    for number in range(2):
        built.node(f"n{number}", 2, labels=_labels("a", "a1"))
    result = built.pending("gang", 3, root=_gang(3, required=level)).cycle(ALLOCATE)
    assert placements(result) == {"gang-0": "n0", "gang-1": "n0", "gang-2": "n1"}


def test_an_optional_subgroup_grows_in_the_zone_where_the_gang_runs_only() -> None:
    built = cluster().having(topologies=(MAP,))
    built.node("a1", 1, labels=_labels("a", "a1")).node("b1", 8, labels=_labels("b", "b1"))
    core = TaskInput(
        name="core",
        uid="core",
        status=TaskStatus.RUNNING,
        node="a1",
        request=request(1),
        subgroup="core",
    )
    more = TaskInput(name="more", uid="more", request=request(1), subgroup="more")
    root = SubGroupInput(
        topology=TopologyConstraint(topology="map", required_level="zone"),
        pod_sets=(
            PodSetInput(name="core", min_available=1),
            PodSetInput(name="more", min_available=0),
        ),
    )
    built.group(PodGroupInput(name="g", uid="g", queue="default", root=root, tasks=(core, more)))
    assert placements(built.cycle(ALLOCATE)) == {"core": "a1"}
