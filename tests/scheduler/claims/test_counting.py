"""How many GPUs claims count for: in queues and on nodes, shared and beside those of a device plugin."""

from __future__ import annotations

from scheduler.core.arrays import GPU_INDEX
from scheduler.core.cluster.axis import GPU_ROW
from scheduler.core.cluster.constraints import ClaimReference, TaskConstraints
from scheduler.core.cluster.device_inputs import (
    AllocatedDevice,
    ClaimAllocation,
    Device,
    DeviceClaim,
    DeviceClass,
    DeviceInputs,
    DeviceRequest,
    DeviceSlice,
)
from scheduler.core.cluster.inputs import TaskRequest
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.decisions import ActionName, EvictReason
from scheduler.core.plugins.device_claims.ledger import ClaimLedger
from scheduler.core.session.session import Session
from scheduler.core.session.statement import Statement
from tests.builders import ClusterBuilder, cluster, placements

ALLOCATE = ActionName.ALLOCATE
GPU = "gpu.test"
QUEUE = {"kai.scheduler/queue": "q"}


def _claim(name: str, gpus: int = 1, device: str = "") -> DeviceClaim:
    allocation = None
    if device:
        device_in_use = AllocatedDevice(driver=GPU, pool="a", device=device, request="r")
        allocation = ClaimAllocation(claim=name, namespace="", devices=(device_in_use,))
    return DeviceClaim(
        name=name,
        labels=QUEUE,
        gpus=float(gpus),
        requests=(DeviceRequest(name="r", device_class=GPU, count=gpus),),
        allocation=allocation,
    )


def _cluster(*claims: DeviceClaim, plugin_gpus: int = 0, devices: int = 2) -> ClusterBuilder:
    published = tuple(Device(name=str(number)) for number in range(devices))
    built = cluster().node("a", plugin_gpus + devices, dra_gpus=devices)
    return built.having(
        devices=DeviceInputs(
            classes=(DeviceClass(name=GPU),),
            slices=(DeviceSlice(driver=GPU, pool="a", node="a", devices=published),),
            claims=claims,
        )
    )


def _using(claim: str, gpus: int = 1) -> dict[str, object]:
    return {
        "request": TaskRequest(cpu_milli=1000, device_classes=((GPU, float(gpus)),)),
        "constraints": TaskConstraints(device_claims=(ClaimReference(claim),)),
    }


def _allocated(session: Session, queue: str = "q") -> float:
    return session.policy.ledger.allocated[session.state.queues.index_of[queue]][GPU_INDEX]


def _requested(session: Session, queue: str = "q") -> float:
    return session.policy.ledger.requests[session.state.queues.index_of[queue]][GPU_INDEX]


def test_pods_that_share_a_claim_count_it_once_in_their_queue() -> None:
    built = _cluster(_claim("c", device="0")).queue("q")
    built.running("r", ["a", "a"], **_using("c")).running("s", ["a"], **_using("c"))
    session = built.session()
    assert round(_allocated(session), 9) == 1.0
    assert round(_requested(session), 9) == 1.0
    assert session.state.nodes.idle[GPU_ROW].tolist() == [1.0]


def test_pending_pods_that_share_a_claim_request_it_once() -> None:
    pending = _cluster(_claim("c")).queue("q").pending("p", 3, **_using("c"))
    assert _requested(pending.session()) == 1.0
    joining = _cluster(_claim("c", device="0")).queue("q").running("r", ["a"], **_using("c"))
    assert round(_requested(joining.pending("p", 3, **_using("c")).session()), 9) == 1.0


def test_a_gang_that_shares_one_device_starts_within_a_limit_of_one() -> None:
    built = _cluster(_claim("c"), devices=1)
    built.queue("q", limit=1.0)
    result = built.pending("p", 3, **_using("c")).cycle(ALLOCATE)
    assert placements(result) == {"p-0": "a", "p-1": "a", "p-2": "a"}
    assert result.state.nodes.idle[GPU_ROW].tolist() == [0.0]
    assert _allocated(result) == 1.0


def test_another_claim_still_meets_the_limit() -> None:
    built = _cluster(_claim("c"), _claim("d"))
    built.queue("q", limit=1.0)
    built.pending("p", 2, **_using("c")).pending("o", **_using("d"))
    assert set(placements(built.cycle(ALLOCATE))) == {"p-0", "p-1"}


def test_evicting_all_holders_frees_what_they_share() -> None:
    built = _cluster(_claim("c", device="0")).queue("q")
    session = built.running("r", ["a", "a"], **_using("c")).session()
    statement = Statement(session, ActionName.RECLAIM)
    statement.evict(0, EvictReason(ActionName.RECLAIM))
    assert session.state.nodes.releasing[GPU_ROW].tolist() == [0.0]
    statement.evict(1, EvictReason(ActionName.RECLAIM))
    assert session.state.nodes.releasing[GPU_ROW].tolist() == [1.0]
    assert round(_allocated(session), 9) == 0.0


def test_a_pod_whose_eviction_is_taken_back_holds_its_own_device_again() -> None:
    built = _cluster(_claim("c", device="1")).queue("q")
    session = built.running("r", ["a"], **_using("c")).session()
    ledger = session.attached(ClaimLedger)
    assert ledger is not None
    ledger.assume_reserved(("", "c"), session.state.tasks.inputs[0].uid)
    statement = Statement(session, ActionName.CONSOLIDATION)
    statement.evict(0, EvictReason(ActionName.RECLAIM))
    assert ledger.taken == {}
    statement.unevict(0)
    assert list(ledger.taken) == [(GPU, "a", "1")]
    assert session.state.tasks.status[0] == TaskStatus.RUNNING


def test_whole_gpus_of_a_node_with_both_kinds_are_those_of_the_plugin() -> None:
    built = _cluster(_claim("c"), plugin_gpus=2, devices=2).queue("q")
    assert placements(built.pending("p", gpus=3).cycle(ALLOCATE)) == {}
    built = _cluster(_claim("c"), plugin_gpus=2, devices=2).queue("q")
    built.pending("p", gpus=2).pending("late", gpus=1).pending("claims", **_using("c"))
    result = built.cycle(ALLOCATE)
    assert placements(result) == {"p-0": "a", "claims-0": "a"}
    assert result.state.nodes.idle[GPU_ROW].tolist() == [1.0]


def test_claims_take_no_gpus_of_the_plugin() -> None:
    claims = [_claim("c", 2), _claim("d")]
    built = _cluster(*claims, plugin_gpus=2, devices=2).queue("q")
    built.pending("x", **_using("c", 2)).pending("y", **_using("d")).pending("p", gpus=2)
    assert placements(built.cycle(ALLOCATE)) == {"x-0": "a", "p-0": "a"}
