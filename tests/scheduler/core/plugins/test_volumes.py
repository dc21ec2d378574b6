"""Volumes: missing claims, volumes tied to nodes, and room on storage that is nearly full."""

from __future__ import annotations

from typing import Any

from scheduler.core.cluster.constraints import Expression, NodeTerm, Operator, TaskConstraints
from scheduler.core.cluster.inputs import StorageCapacity, VolumeClaim, VolumeInputs
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.config import SchedulerConfig
from scheduler.core.decisions import ActionName, Bind, Nominate
from scheduler.core.session.fit import NodeReason, NodeReasonKind
from tests.builders import ClusterBuilder, cluster, placements, request

ALLOCATE = ActionName.ALLOCATE
GIB = 2.0**30
ZONE_B = (NodeTerm(labels=(Expression("zone", Operator.IN, ("b",)),)),)
MOUNTS = TaskConstraints(volume_claims=("data",))


def _nodes(**volumes: Any) -> ClusterBuilder:
    built = cluster().node("a", labels={"zone": "a"}).node("b", labels={"zone": "b"})
    return built.having(volumes=VolumeInputs(**volumes))


def test_a_claim_that_is_missing_or_lost_stops_the_task_at_once() -> None:
    missing = _nodes().pending("p", constraints=MOUNTS).cycle(ALLOCATE)
    [check] = missing.fit.tasks[0].checks
    assert (check.check, check.text) == ("VolumeBinding", 'persistentvolumeclaim "data" not found')
    assert check.is_victim_invariant
    lost = VolumeClaim(name="data", problem="it is lost")
    result = _nodes(claims=(lost,)).pending("p", constraints=MOUNTS).cycle(ALLOCATE)
    assert result.fit.tasks[0].checks[0].text == "it is lost"


def test_a_task_goes_where_its_volume_is() -> None:
    bound = VolumeClaim(name="data", phase="Bound", volume_terms=ZONE_B)
    result = _nodes(claims=(bound,)).pending("p", constraints=MOUNTS).cycle(ALLOCATE)
    assert placements(result) == {"p-0": "b"}


def test_a_task_goes_where_its_volume_can_be_made_and_says_why_not_elsewhere() -> None:
    unbound = VolumeClaim(name="data", waits_for_consumer=True, allowed_terms=ZONE_B)
    built = _nodes(claims=(unbound,)).running("full", ["b"], gpus=8)
    result = built.pending("p", constraints=MOUNTS).cycle(ALLOCATE)
    assert result.fit.tasks[1].reasons() == {
        NodeReason(
            NodeReasonKind.VOLUME, "node(s) didn't find available persistent volumes to bind"
        ): 1,
        NodeReason(NodeReasonKind.INSUFFICIENT, "gpu"): 1,
    }


CSI = SchedulerConfig(schedule_csi_storage=True)


def _storage(*claims: VolumeClaim, capacities: int = 1, size: float = 10) -> ClusterBuilder:
    storage = tuple(
        StorageCapacity(name=f"cap-{n}", storage_class="fast", capacity_bytes=size * GIB)
        for n in range(capacities)
    )
    built = cluster().node("n")
    return built.having(
        volumes=VolumeInputs(claims=claims, capacities=storage, tracked_classes=("fast",))
    )


def _claim(name: str, gib: float, **options: Any) -> VolumeClaim:
    return VolumeClaim(name=name, storage_class="fast", size_bytes=gib * GIB, **options)


def _mounting(name: str) -> TaskConstraints:
    return TaskConstraints(volume_claims=(name,))


def _reasons(built: ClusterBuilder, task: int) -> list[str]:
    result = built.cycle(ALLOCATE, config=CSI)
    return [reason.subject for reason in result.fit.tasks[task].reasons()]


def test_volumes_still_to_be_made_share_the_capacity() -> None:
    built = _storage(_claim("one", 6), _claim("two", 6))
    built.pending("p", constraints=_mounting("one")).pending("q", constraints=_mounting("two"))
    result = built.cycle(ALLOCATE, config=CSI)
    assert placements(result) == {"p-0": "n"}
    assert [reason.subject for reason in result.fit.tasks[1].reasons()] == [
        "node(s) did not have enough free storage for storageclass fast"
    ]


def test_without_the_setting_capacity_is_not_looked_at() -> None:
    built = _storage(_claim("one", 60)).pending("p", constraints=_mounting("one"))
    assert placements(built.cycle(ALLOCATE)) == {"p-0": "n"}


def test_a_bound_volume_needs_no_room_and_two_capacities_of_a_class_are_no_answer() -> None:
    bound = _storage(_claim("one", 60, phase="Bound")).pending("p", constraints=_mounting("one"))
    assert placements(bound.cycle(ALLOCATE, config=CSI)) == {"p-0": "n"}
    unclear = _storage(_claim("one", 1), capacities=2).pending("p", constraints=_mounting("one"))
    assert _reasons(unclear, 0) == ["no allocatable storage from storageclass fast found"]


def test_a_claim_whose_owner_is_gone_cannot_be_used() -> None:
    orphan = _claim("one", 1, owner_uid="gone", is_owner_deleted=True)
    built = _storage(orphan).pending("p", constraints=_mounting("one"))
    assert _reasons(built, 0) == ["task has deleted storage claims: /one"]


def test_room_of_a_leaving_owner_is_waited_for() -> None:
    bound_claim = _claim("old", 8, phase="Bound", owner_uid="old-0")
    built = _storage(bound_claim, _claim("new", 6), size=2)
    built._add(
        "old",
        [(TaskStatus.RELEASING, "n")],
        {"constraints": _mounting("old"), "request": request(1)},
    )
    built.pending("p", constraints=_mounting("new"))
    [decision] = built.cycle(ALLOCATE, config=CSI).decisions
    assert (type(decision), decision.node) == (Nominate, "n")
    roomy = _storage(_claim("new", 6), size=8).pending("p", constraints=_mounting("new"))
    [decision] = roomy.cycle(ALLOCATE, config=CSI).decisions
    assert (type(decision), decision.node) == (Bind, "n")
