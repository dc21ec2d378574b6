"""Predicates: which nodes and tasks are turned away, and the reason that is given."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.core.cluster.constraints import (
    Expression,
    HostPort,
    NodeTerm,
    Operator,
    Taint,
    TaskConstraints,
    Toleration,
)
from scheduler.core.cluster.inputs import TaskRequest
from scheduler.core.config import SchedulerConfig
from scheduler.core.decisions import ActionName, EvictReason
from scheduler.core.session.fit import NodeReason
from scheduler.core.session.fit import NodeReasonKind as Kind
from scheduler.core.session.session import Session
from scheduler.core.session.statement import Statement
from tests.builders import cluster, placements, request

ALLOCATE = ActionName.ALLOCATE
MIG = "nvidia.com/mig-1g.5gb"


def reasons(session: Session, task: str = "p-0") -> dict[NodeReason, int]:
    index = next(i for i, t in enumerate(session.state.tasks.inputs) if t.name == task)
    return dict(session.fit.tasks[index].reasons())


def check_texts(session: Session, task: int = 0) -> list[tuple[str, str]]:
    return [(check.check, check.text) for check in session.fit.tasks[task].checks]


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        ({"unschedulable": True}, NodeReason(Kind.UNSCHEDULABLE)),
        ({"ready": False}, NodeReason(Kind.NOT_READY)),
        (
            {"pressures": ("DiskPressure", "PIDPressure")},
            NodeReason(Kind.CONDITION, "DiskPressure"),
        ),
        ({"taints": (Taint("k", "v"),)}, NodeReason(Kind.TAINT)),
        ({"dra_gpus": 8}, NodeReason(Kind.FRACTION_ON_DRA_NODE)),
        (
            {"mig_enabled": True, "mig_strategy": "single"},
            NodeReason(Kind.NOT_WHOLE_ON_SINGLE),
        ),
        ({"mig_enabled": True, "mig_strategy": "mixed"}, NodeReason(Kind.NOT_MIG_ON_MIXED)),
    ],
)
def test_a_node_turns_a_fraction_away(node: dict[str, Any], reason: NodeReason) -> None:
    result = cluster().node("bad", **node).pending("p", gpus=0.5).cycle(ALLOCATE)
    assert result.decisions == []
    assert reasons(result) == {reason: 1}


def test_whole_devices_go_to_single_mig_nodes_only() -> None:
    built = cluster().node("a", mig_enabled=True, mig_strategy="mixed")
    built.node("b", mig_enabled=True, mig_strategy="single")
    assert placements(built.pending("p", gpus=1).cycle(ALLOCATE)) == {"p-0": "b"}


def test_mig_instances_need_a_mig_node_and_count_as_devices_in_quota() -> None:
    mig_request = TaskRequest(cpu_milli=1.0, mig=((MIG, 2.0),))
    built = cluster().node("plain", resources={MIG: 4.0})
    built.node("mig", gpus=0, mig_enabled=True, mig_strategy="mixed", resources={MIG: 4.0})
    result = built.pending("p", request=mig_request).cycle(ALLOCATE)
    assert placements(result) == {"p-0": "mig"}
    assert result.policy.ledger.allocated[0][2] == 2.0
    assert result.policy.ledger.totals[2] == 16.0


def test_mig_stays_away_from_legacy_mig() -> None:
    built = cluster().node(
        "n", gpus=0, mig_enabled=True, mig_strategy="mixed", resources={MIG: 4.0}
    )
    built.running("old", ["n"], request=TaskRequest(cpu_milli=1.0, legacy_mig=True))
    result = built.pending("p", request=TaskRequest(mig=((MIG, 1.0),))).cycle(ALLOCATE)
    assert reasons(result) == {NodeReason(Kind.MIG_BESIDE_LEGACY_MIG, "/old-0"): 1}


def test_legacy_mig_fits_nowhere() -> None:
    result = cluster().node("n").pending("p", request=TaskRequest(legacy_mig=True)).cycle(ALLOCATE)
    assert reasons(result) == {NodeReason(Kind.LEGACY_MIG, node="n"): 1}


def test_gpu_memory_needs_a_node_that_says_how_much_it_has() -> None:
    built = cluster().node("n", gpu_memory_known=False)
    result = built.pending("p", request=request(0, gpu_memory_mib=50)).cycle(ALLOCATE)
    assert reasons(result) == {NodeReason(Kind.GPU_MEMORY_UNKNOWN, node="n"): 1}


def test_a_tolerated_taint_is_no_obstacle() -> None:
    tolerant = TaskConstraints(tolerations=(Toleration(key="k", value="v"),))
    built = cluster().node("n", taints=(Taint("k", "v"),)).pending("p", constraints=tolerant)
    assert placements(built.cycle(ALLOCATE)) == {"p-0": "n"}


def test_node_affinity_chooses_among_nodes_with_room() -> None:
    wants = TaskConstraints(
        node_affinity=(NodeTerm(labels=(Expression("zone", Operator.IN, ("z",)),)),)
    )
    built = cluster().node("a").node("b", labels={"zone": "z"}, gpus=1)
    result = built.pending("p", constraints=wants).pending("q", constraints=wants).cycle(ALLOCATE)
    assert placements(result) == {"p-0": "b"}
    assert reasons(result, "q-0") == {
        NodeReason(Kind.NODE_AFFINITY): 1,
        NodeReason(Kind.INSUFFICIENT, "gpu"): 1,
    }


def test_one_host_port_is_open_once_on_a_node() -> None:
    web = TaskConstraints(host_ports=(HostPort(80),))
    built = cluster().nodes(2).pending("p", 3, minimum=2, constraints=web)
    result = built.cycle(ALLOCATE)
    assert placements(result) == {"p-0": "n0", "p-1": "n1"}
    assert reasons(result, "p-2") == {NodeReason(Kind.PORTS): 2}


def test_the_port_of_a_task_evicted_now_is_free_for_nomination() -> None:
    web = TaskConstraints(host_ports=(HostPort(80),))
    session = cluster().node("n").running("r", ["n"], constraints=web).session()
    from scheduler.core.plugins.predicates.node_filters import HostPorts

    ports = HostPorts(session.state)
    task_class = session.state.tasks.task_class[0]
    assert not ports.passes(99, task_class, 0)
    statement = Statement(session, ActionName.RECLAIM)
    statement.evict(0, EvictReason(ActionName.RECLAIM))
    assert ports.mask(99, task_class).tolist() == [True]
    statement.discard()


def test_restricted_nodes_keep_kinds_of_tasks_apart() -> None:
    config = SchedulerConfig(actions=(ALLOCATE,), restrict_node_scheduling=True)
    built = cluster().node("a", is_gpu_worker=True).node("b", gpus=8, is_cpu_worker=True)
    built.pending("g", gpus=1).pending("c", request=request(0)).pending("x", gpus=8)
    result = built.cycle(config=config)
    assert placements(result) == {"g-0": "a", "c-0": "b"}
    assert reasons(result, "x-0") == {
        NodeReason(Kind.INSUFFICIENT, "gpu"): 1,
        NodeReason(Kind.NOT_GPU_WORKER, node="b"): 1,
    }
    assert result.policy.ledger.totals[2] == 8.0
    only = cluster().node("a", is_gpu_worker=True).pending("c", request=request(0))
    assert reasons(only.cycle(config=config), "c-0") == {
        NodeReason(Kind.NOT_CPU_WORKER, node="a"): 1
    }


def test_missing_config_maps_turn_a_task_away_before_any_node() -> None:
    needs = TaskConstraints(config_maps=("there", "gone", "lost"))
    built = cluster().node("n").having(config_maps=frozenset([("", "there")]))
    result = built.pending("p", constraints=needs).cycle(ALLOCATE)
    assert check_texts(result) == [("ConfigMap", "Missing required configmaps: [gone lost]")]
    assert result.fit.tasks[0].counts == []


def test_unknown_config_maps_refuse_nobody() -> None:
    needs = TaskConstraints(config_maps=("gone",))
    built = cluster().node("n").pending("p", constraints=needs)
    assert len(built.cycle(ALLOCATE).decisions) == 1


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (
            request(9),
            "The pod /p-0 requires GPU: 9, CPU: 1 (cores), memory: 1 (GB), pods: 1. Max GPU resources "
            "available in a single node in the default node-pool is topped at 8",
        ),
        (
            request(0, cpu=2.5, memory=0.25),
            "The pod /p-0 requires GPU: 0, CPU: 2.5 (cores), memory: 0.25 (GB), pods: 1. Max CPU resources "
            "available in a single node in the default node-pool is topped at 2 cores",
        ),
        (
            request(0, memory=3000),
            "The pod /p-0 requires GPU: 0, CPU: 1 (cores), memory: 3000 (GB), pods: 1. Max memory resources "
            "available in a single node in the default node-pool is topped at 1000 GB",
        ),
        (
            request(0, other=(("example.com/nic", 3000.0),)),
            "The pod /p-0 requires GPU: 0, CPU: 1 (cores), memory: 1 (GB), pods: 1, example.com/nic: 3. "
            "No node in the default node-pool has example.com/nic resources",
        ),
        (
            TaskRequest(mig=((MIG, 1.0),)),
            f"The pod /p-0 requires GPU: 1, CPU: 0 (cores), memory: 0 (GB), pods: 1, mig {MIG}: 1. "
            f"No node in the default node-pool has {MIG} resources",
        ),
    ],
)
def test_a_request_larger_than_any_node_is_refused_with_the_largest(
    wanted: TaskRequest, text: str
) -> None:
    result = cluster().node("n", cpu=2).pending("p", request=wanted).cycle(ALLOCATE)
    assert check_texts(result) == [("MaxNodePoolResources", text)]
    assert result.fit.tasks[0].checks[0].is_victim_invariant


def test_the_largest_amount_of_an_extended_resource_is_told() -> None:
    """KAI always says that no node has any (defect K)."""
    built = cluster().node("n", resources={"example.com/nic": 2000.0})
    requests = request(0, other=(("example.com/nic", 3000.0),))
    result = built.pending("p", request=requests).cycle(ALLOCATE)
    [(_, text)] = check_texts(result)
    assert text.endswith(
        "Max example.com/nic resources available in a single node in the default "
        "node-pool is topped at 2"
    )


def test_room_for_pods_is_a_resource_like_others() -> None:
    built = cluster().node("n", pods=1).running("r", ["n"], gpus=1).pending("p")
    result = built.cycle(ALLOCATE)
    assert reasons(result) == {NodeReason(Kind.INSUFFICIENT, "pods"): 1}


def test_an_over_committed_node_rejects_even_an_empty_request() -> None:
    built = cluster().node("n", memory=1).running("r", ["n"], request=request(0, memory=2))
    result = built.pending("p", request=request(0, cpu=0, memory=0)).cycle(ALLOCATE)
    assert reasons(result) == {NodeReason(Kind.INSUFFICIENT, "memory"): 1}


def test_the_gate_of_a_shared_task_is_asked_with_the_devices_of_the_node() -> None:
    built = cluster().node("n", gpu_memory_mib=1000).queue("q", 0, limit=0.33)
    result = built.pending("p", gpus=0.33).pending("r", gpus=0.333).cycle(ALLOCATE)
    assert placements(result) == {"p-0": "n"}
    small = cluster().node("n", gpu_memory_mib=300).queue("q", 0, limit=0.5)
    requests = request(0, gpu_memory_mib=200)
    session = small.node("m", gpu_memory_mib=900).pending("p", request=requests).cycle(ALLOCATE)
    assert placements(session) == {"p-0": "m"}


def test_a_shared_task_that_passes_no_gate_has_a_reason_per_node() -> None:
    built = cluster().node("n", gpu_memory_mib=400).node("big", gpu_memory_mib=2000)
    built.queue("q", 8, limit=0.3).running("r", ["big"] * 8, minimum=0, gpus=1, queue="other")
    built.queue("other", 8)
    requests = request(0, gpu_memory_mib=300)
    result = built.pending("p", request=requests, queue="q").cycle(ALLOCATE)
    reasons_of_nodes = reasons(result)
    assert {(reason.kind, reason.subject) for reason in reasons_of_nodes} == {
        (Kind.OVER_CAPACITY, "OverLimit"),
        (Kind.INSUFFICIENT, "gpu"),
    }
