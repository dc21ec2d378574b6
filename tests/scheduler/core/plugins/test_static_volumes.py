"""Static volumes: each serves one claim of one cycle, within the reach of the chosen node."""

from __future__ import annotations

import pytest

from scheduler.core.cluster.constraints import Expression, NodeTerm, Operator, TaskConstraints
from scheduler.core.cluster.inputs import StaticVolume, VolumeClaim, VolumeInputs
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.decisions import ActionName, EvictReason
from scheduler.core.plugins.predicates.static_volumes import StaticVolumes, matching
from scheduler.core.plugins.predicates.volumes import NOT_AVAILABLE, VolumeClaims
from scheduler.core.session.fit import NodeReason, NodeReasonKind
from scheduler.core.session.statement import Statement
from tests.builders import ClusterBuilder, cluster, placements

ALLOCATE = ActionName.ALLOCATE


def on(name: str, node: str) -> StaticVolume:
    term = NodeTerm(labels=(Expression("host", Operator.IN, (node,)),))
    return StaticVolume(name=name, node_terms=(term,))


def claim(name: str, *volumes: str) -> VolumeClaim:
    return VolumeClaim(name=name, waits_for_consumer=True, static_volumes=volumes)


def mounting(*names: str) -> TaskConstraints:
    return TaskConstraints(volume_claims=names)


def two_nodes(volumes: tuple[StaticVolume, ...], *claims: VolumeClaim) -> ClusterBuilder:
    built = cluster().node("a", labels={"host": "a"}).node("b", labels={"host": "b"})
    return built.having(volumes=VolumeInputs(claims=claims, static_volumes=volumes))


def test_two_pods_do_not_count_on_the_same_volume() -> None:
    claims = (claim("x", "va", "vb"), claim("y", "va", "vb"), claim("z", "va", "vb"))
    built = two_nodes((on("va", "a"), on("vb", "b")), *claims)
    for name in ("x", "y", "z"):
        built.pending(name, constraints=mounting(name))
    result = built.cycle(ALLOCATE)
    assert placements(result) == {"x-0": "a", "y-0": "b"}
    task = next(i for i, pod in enumerate(result.state.tasks.inputs) if pod.name == "z-0")
    assert result.fit.tasks[task].reasons() == {NodeReason(NodeReasonKind.VOLUME, NOT_AVAILABLE): 2}


def test_a_pod_with_two_claims_needs_two_volumes_on_its_node() -> None:
    claims = (claim("x", "va", "vb1", "vb2"), claim("y", "va", "vb1", "vb2"))
    built = two_nodes((on("va", "a"), on("vb1", "b"), on("vb2", "b")), *claims)
    result = built.pending("p", constraints=mounting("x", "y")).cycle(ALLOCATE)
    assert placements(result) == {"p-0": "b"}


def test_pods_that_share_a_claim_share_its_volume() -> None:
    built = two_nodes((on("va", "a"), on("vb", "b")), claim("x", "va", "vb"))
    result = built.pending("p", 2, gpus=4, constraints=mounting("x")).cycle(ALLOCATE)
    assert placements(result) == {"p-0": "a", "p-1": "a"}


def test_a_pod_that_is_being_bound_keeps_its_volume() -> None:
    built = two_nodes((on("va", "a"),), claim("x", "va"), claim("y", "va"))
    built.running("first", ["a"], constraints=mounting("x"))
    result = built.pending("second", constraints=mounting("y")).cycle(ALLOCATE)
    assert placements(result) == {"first-0": "a"}


def test_undo_and_eviction_give_a_volume_back() -> None:
    built = two_nodes((on("va", "a"),), claim("x", "va"), claim("y", "va"))
    built.pending("first", constraints=mounting("x")).pending("second", constraints=mounting("y"))
    session = built.session()
    [ledger] = [each for each in session.hooks.listeners if isinstance(each, StaticVolumes)]
    second = session.state.tasks.task_class[1]
    statement = Statement(session, ALLOCATE)
    start = statement.checkpoint()
    statement.allocate(0, 0)
    assert not ledger.passes(1, second, 0)
    statement.rollback(start)
    assert ledger.passes(1, second, 0)
    statement.nominate(0, 0)
    statement.evict(0, EvictReason(action=ActionName.PREEMPT))
    assert ledger.passes(1, second, 0)
    statement.discard()
    assert session.state.tasks.status[0] == TaskStatus.PENDING


def test_only_claims_that_need_a_static_volume_are_followed() -> None:
    built = two_nodes((on("va", "a"),), VolumeClaim(name="x", waits_for_consumer=True))
    session = built.pending("p", constraints=mounting("x")).session()
    ledger = StaticVolumes(session.state, VolumeClaims(session.state))
    assert not ledger.concerns(session.state.tasks.task_class[0])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], []),
        ([[1, 2], [3]], [1, 3]),
        ([[1, 2], [1]], [2, 1]),
        ([[1, 2], [1, 3], [1]], [2, 3, 1]),
        ([[1], [1]], None),
        ([[]], None),
    ],
)
def test_a_matching_moves_earlier_rows_where_a_later_one_needs_it(
    options: list[list[int]], expected: list[int] | None
) -> None:
    assert matching(options) == expected
