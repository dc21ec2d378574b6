"""Device claims: what is checked before nodes are asked, who gets which device, and what sharing costs."""

from __future__ import annotations

from scheduler.core.cluster.axis import GPU_ROW
from scheduler.core.cluster.constraints import ClaimReference, ContainerRequest, TaskConstraints
from scheduler.core.cluster.device_inputs import (
    EXTENDED_CLAIM,
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
from scheduler.core.cluster.journal import Journal
from scheduler.core.config import SchedulerConfig
from scheduler.core.decisions import ActionName, Bind
from scheduler.core.plugins.device_claims.allocator.allocator import Allocator, Refusal
from scheduler.core.plugins.device_claims.extended import ExtendedResources
from scheduler.core.plugins.device_claims.ledger import ClaimLedger
from scheduler.core.session.fit import NodeReasonKind
from tests.builders import ClusterBuilder, cluster, placements, request

ALLOCATE = ActionName.ALLOCATE
GPU_CLASS = DeviceClass(name="gpu.example.com")
QUEUE = {"kai.scheduler/queue": "default"}


def _slice(node: str, count: int) -> DeviceSlice:
    devices = tuple(Device(name=str(n)) for n in range(count))
    return DeviceSlice(driver="gpu.example.com", pool=node, node=node, devices=devices)


def _claim(name: str, count: float = 1, **options: object) -> DeviceClaim:
    device_request = DeviceRequest(name="gpus", device_class=GPU_CLASS.name, count=count)
    return DeviceClaim(name=name, **({"labels": QUEUE, "requests": (device_request,)} | options))


def _wanting(*claims: str, template: bool = False) -> TaskConstraints:
    references = tuple(ClaimReference(claim, from_template=template) for claim in claims)
    return TaskConstraints(device_claims=references)


def _asking(count: float = 1) -> TaskRequest:
    return TaskRequest(cpu_milli=1000, device_classes=((GPU_CLASS.name, count),))


def _cluster(*claims: DeviceClaim, available: bool = True, gpus: int = 2) -> ClusterBuilder:
    built = cluster().node("a", gpus, dra_gpus=gpus).node("b", gpus, dra_gpus=gpus)
    return built.having(
        devices=DeviceInputs(
            available=available,
            classes=(GPU_CLASS,),
            slices=(_slice("a", gpus), _slice("b", gpus)),
            claims=claims,
        )
    )


def _texts(built: ClusterBuilder) -> list[str]:
    result = built.cycle(ALLOCATE)
    assert result.decisions == []
    return [check.text for check in result.fit.tasks[0].checks]


def test_a_request_for_whole_gpus_needs_a_device_plugin_or_a_class_that_provides_them() -> None:
    built = _cluster().pending("p", gpus=1)
    result = built.cycle(ALLOCATE)
    assert result.decisions == []
    [reason] = result.fit.tasks[0].reasons()
    assert reason.kind is NodeReasonKind.WHOLE_ON_DRA_NODE
    # Devices of a claim and whole GPUs of a plugin on one node: the plugin's are enough.
    beside = built.node("c", 3, dra_gpus=2)
    assert placements(beside.cycle(ALLOCATE))["p-0"] == "c"
    providing = DeviceClass(name=GPU_CLASS.name, extended_resource="nvidia.com/gpu")
    served = cluster().node("a", 2, dra_gpus=2).pending("p", gpus=1)
    served.having(devices=DeviceInputs(classes=(providing,), slices=(_slice("a", 2),)))
    assert placements(served.cycle(ALLOCATE))["p-0"] == "a"


def test_a_claim_and_whole_gpus_of_one_task_do_not_share_the_answer_of_a_claim_alone() -> None:
    built = _cluster(_claim("c"), _claim("d"))
    built.pending("claims", request=_asking(1), constraints=_wanting("c"))
    both = TaskRequest(cpu_milli=1000, gpus=1, device_classes=((GPU_CLASS.name, 1),))
    built.pending("both", request=both, constraints=_wanting("d"))
    assert set(placements(built.cycle(ALLOCATE))) == {"claims-0"}


def test_a_claim_gets_devices_of_the_chosen_node() -> None:
    built = _cluster(_claim("c", 2)).pending("p", request=_asking(2), constraints=_wanting("c"))
    [bind] = built.cycle(ALLOCATE).decisions
    assert isinstance(bind, Bind)
    [allocation] = bind.claim_allocations
    assert allocation.claim == "c"
    assert [(device.id, device.request) for device in allocation.devices] == [
        (("gpu.example.com", "a", "0"), "gpus"),
        (("gpu.example.com", "a", "1"), "gpus"),
    ]
    assert allocation.node_terms is not None


def test_two_claims_never_share_a_device() -> None:
    built = _cluster(_claim("c1"), _claim("c2"), _claim("c3"), gpus=1)
    for name in ("c1", "c2", "c3"):
        built.pending(f"p-{name}", request=_asking(), constraints=_wanting(name))
    result = built.cycle(ALLOCATE)
    devices = [d.claim_allocations[0].devices[0].id for d in result.decisions]
    assert sorted(devices) == [("gpu.example.com", "a", "0"), ("gpu.example.com", "b", "0")]


def test_failed_checks_are_reported_before_any_node_is_tried() -> None:
    def wants(*claims: DeviceClaim, name: str = "c", **options: bool) -> ClusterBuilder:
        return _cluster(*claims, **options).pending(
            "p", request=_asking(), constraints=_wanting(name)
        )

    assert _texts(wants(_claim("c"), available=False)) == [
        "pod /p-0 cannot be scheduled, it references resource claims c while dynamic resource "
        "allocation is not available in the cluster"
    ]
    assert _texts(wants(name="gone")) == ["resource claim /gone does not exist"]
    assert _texts(wants(_claim("c", labels={}))) == [
        "pod /p-0 cannot be scheduled: DRA claim c is a shared GPU claim but does not have a queue "
        "label (kai.scheduler/queue)"
    ]
    assert _texts(wants(_claim("c", labels={"kai.scheduler/queue": "other"}))) == [
        "pod /p-0 cannot be scheduled: DRA claim c is a shared GPU claim with wrong queue label "
        "(expected queue: default, claim queue label: other)"
    ]
    crowd = tuple(f"u{n}" for n in range(256))
    assert _texts(wants(_claim("c", reserved_for=crowd))) == [
        "resource claim /c has reached its maximum number of consumers (256)"
    ]
    unknown = DeviceRequest(name="gpus", device_class="gpu-of-nobody")
    assert _texts(wants(_claim("c", requests=(unknown,)))) == [
        "device class gpu-of-nobody does not exist for claim /c request gpus"
    ]


def test_a_claim_from_a_template_needs_no_queue_label() -> None:
    built = _cluster(_claim("c", labels={}))
    built.pending("p", request=_asking(), constraints=_wanting("c", template=True))
    assert placements(built.cycle(ALLOCATE)) == {"p-0": "a"}


def _held(node: str) -> ClaimAllocation:
    session = _cluster(_claim("c")).session()
    allocator = Allocator(session.state.cluster_input.devices, session.state.nodes.inputs)
    ledger = ClaimLedger((), Journal())
    chosen = allocator.allocate([_claim("c")], session.state.nodes.index_of[node], ledger)
    assert not isinstance(chosen, Refusal)
    return chosen[0]


def test_a_shared_device_is_charged_once_and_holds_its_pods_together() -> None:
    claim = _claim("c", allocation=_held("a"), reserved_for=("r-0", "s-0"))
    built = _cluster(claim, gpus=1)
    for name in ("r", "s"):
        built.running(name, ["a"], request=_asking(), constraints=_wanting("c"))
    built.pending("p", request=_asking(), constraints=_wanting("c"))
    result = built.cycle(ALLOCATE)
    assert placements(result)["p-0"] == "a"
    assert result.state.nodes.idle[GPU_ROW].tolist() == [0.0, 1.0]


def test_a_claim_bound_elsewhere_names_itself_as_the_reason() -> None:
    claim = _claim("c", allocation=_held("a"))
    built = (
        _cluster(claim)
        .running("full", ["a", "a"])
        .pending("p", request=_asking(), constraints=_wanting("c"))
    )
    result = built.cycle(ALLOCATE)
    reasons = result.fit.tasks[2].reasons()
    assert any(
        reason.kind is NodeReasonKind.CLAIM_ELSEWHERE
        and (reason.subject, reason.node) == ("/c", "b")
        for reason in reasons
    )


def test_what_a_bind_request_promised_is_not_given_away() -> None:
    promised = _held("a")
    built = _cluster(_claim("c"), _claim("d"), gpus=1)
    built.running(
        "r",
        ["a"],
        request=_asking(),
        constraints=_wanting("c"),
        task={"claim_allocations": (promised,)},
    )
    built.pending("p", request=_asking(), constraints=_wanting("d"))
    assert placements(built.cycle(ALLOCATE))["p-0"] == "b"


def test_the_last_consumer_frees_the_devices_and_undo_brings_them_back() -> None:
    journal = Journal()
    ledger = ClaimLedger([_claim("c", allocation=_held("a"), reserved_for=("x", "y"))], journal)
    key = ("", "c")
    before = ledger.current()
    ledger.unreserve(key, "x")
    assert ledger.allocation(key) is not None
    ledger.unreserve(key, "y")
    assert ledger.allocation(key) is None
    assert ledger.taken == {}
    journal.rewind(0)
    assert ledger.current()[0].allocation == before[0].allocation
    assert set(ledger.current()[0].reserved_for) == {"x", "y"}
    assert list(ledger.taken) == [("gpu.example.com", "a", "0")]


EXTENDED = DeviceClass(name="nic.example.com", extended_resource="example.com/nic")
CONFIG = SchedulerConfig()


def test_a_resource_backed_by_a_class_is_served_by_a_claim_of_our_own() -> None:
    requests = (("cpu", 1000.0), ("example.com/nic", 2000.0))
    container = ContainerRequest(name="c", requests=requests)
    built = cluster().node("a", 1)
    built.having(
        devices=DeviceInputs(
            classes=(EXTENDED,),
            slices=(
                DeviceSlice(
                    driver="nic",
                    pool="a",
                    node="a",
                    devices=(Device(name="0"), Device(name="1"), Device(name="2")),
                ),
            ),
        )
    )
    for name in ("p", "q"):
        built.pending(
            name,
            request=request(0, other=(("example.com/nic", 2000.0),)),
            constraints=TaskConstraints(containers=(container,)),
        )
    result = built.cycle(ALLOCATE, config=CONFIG)
    [bind] = result.decisions
    assert isinstance(bind, Bind)
    [allocation] = bind.claim_allocations
    assert allocation.claim == EXTENDED_CLAIM
    assert [(device.device, device.request) for device in allocation.devices] == [
        ("0", "container-0-request-1"),
        ("1", "container-0-request-1"),
    ]


def test_what_init_containers_need_beyond_the_running_ones_is_asked_once() -> None:
    session = (
        cluster()
        .node("a")
        .having(devices=DeviceInputs(classes=(EXTENDED,)))
        .pending(
            "p",
            request=request(0, other=(("example.com/nic", 3000.0),)),
            constraints=TaskConstraints(
                containers=(
                    ContainerRequest(kind="init", requests=(("example.com/nic", 3000.0),)),
                    ContainerRequest(kind="init", requests=(("example.com/nic", 2000.0),)),
                    ContainerRequest(requests=(("example.com/nic", 1000.0),)),
                )
            ),
        )
        .session()
    )
    extended = ExtendedResources(session.state.cluster_input.devices)
    task_class = session.state.tasks.task_class[0]
    missing_devices = extended.missing_on(task_class, session.state.nodes.inputs[0])
    claim = extended.claim(task_class, missing_devices)
    assert [(device_request.name, device_request.count) for device_request in claim.requests] == [
        ("container-2-request-0", 1.0),
        ("container-0-request-0", 2.0),
    ]


def _nic_cluster(*claims: DeviceClaim, nics: int = 2) -> ClusterBuilder:
    devices = tuple(Device(name=str(number)) for number in range(nics))
    return (
        cluster()
        .node("a", 1)
        .having(
            devices=DeviceInputs(
                classes=(EXTENDED,),
                slices=(DeviceSlice(driver="nic", pool="a", node="a", devices=devices),),
                claims=claims,
            )
        )
    )


def _nic_pod(built: ClusterBuilder, name: str, nics: float = 1) -> ClusterBuilder:
    extended = (("example.com/nic", nics * 1000.0),)
    return built.pending(
        name,
        request=request(0, other=extended),
        constraints=TaskConstraints(containers=(ContainerRequest(requests=extended),)),
    )


def _made_claim(
    owner: str, device: str, request_name: str = "container-0-request-0"
) -> DeviceClaim:
    device_request = DeviceRequest(name=request_name, device_class=EXTENDED.name)
    allocation = ClaimAllocation(
        claim=EXTENDED_CLAIM,
        namespace="",
        devices=(AllocatedDevice(driver="nic", pool="a", device=device, request=request_name),),
        requests=(device_request,),
    )
    return DeviceClaim(
        name=f"{owner}-extended-resources-x",
        requests=(device_request,),
        allocation=allocation,
        owner_uid=owner,
        is_extended_resource=True,
    )


def _devices_by_pod(built: ClusterBuilder) -> dict[str, list[str]]:
    binds = [
        decision
        for decision in built.cycle(ALLOCATE, config=CONFIG).decisions
        if isinstance(decision, Bind)
    ]
    return {
        bind.task.name: [
            device.device for allocation in bind.claim_allocations for device in allocation.devices
        ]
        for bind in binds
    }


def test_a_bind_carries_the_request_its_claim_will_have() -> None:
    [bind] = _nic_pod(_nic_cluster(), "p", 2).cycle(ALLOCATE, config=CONFIG).decisions
    assert isinstance(bind, Bind)
    assert bind.claim_allocations[0].requests == (
        DeviceRequest(name="container-0-request-0", device_class=EXTENDED.name, count=2),
    )


def test_a_device_of_a_claim_made_for_another_pod_is_not_given_again() -> None:
    built = _nic_cluster(_made_claim("somebody", "0"))
    assert _devices_by_pod(_nic_pod(_nic_pod(built, "p"), "q")) == {"p-0": ["1"]}


def test_a_pod_is_given_what_a_claim_left_by_its_failed_bind_holds() -> None:
    uid = _nic_pod(_nic_cluster(), "p").session().state.tasks.inputs[0].uid
    built = _nic_cluster(_made_claim(uid, "1"))
    assert _devices_by_pod(_nic_pod(built, "p")) == {"p-0": ["1"]}
    # Where the claim asks for something else it is of no use, but its device is.
    other = _nic_cluster(_made_claim(uid, "0", "container-0-request-7"), nics=1)
    assert _devices_by_pod(_nic_pod(other, "p")) == {"p-0": ["0"]}


def test_an_evicted_pod_gives_its_devices_back_by_whatever_they_are_known() -> None:
    promised = _made_claim("r-0", "0").allocation
    assert promised is not None
    built = _nic_cluster(_made_claim("r-0", "0"))
    extended = (("example.com/nic", 1000.0),)
    built.running(
        "r",
        ["a"],
        request=request(0, other=extended),
        constraints=TaskConstraints(containers=(ContainerRequest(requests=extended),)),
        task={"claim_allocations": (promised,)},
    )
    session = built.session(config=CONFIG)
    ledger = session.attached(ClaimLedger)
    assert ledger is not None
    assert list(ledger.taken) == [("nic", "a", "0")]
    session.hooks.listeners[-1].left(0, 0)
    assert ledger.taken == {}


def test_a_sidecar_keeps_its_devices_from_the_init_containers_after_it() -> None:
    nic = "example.com/nic"
    containers = (
        ContainerRequest(kind="init", requests=((nic, 2000.0),)),
        ContainerRequest(kind="sidecar", requests=((nic, 1000.0),)),
        ContainerRequest(kind="init", requests=((nic, 2000.0),)),
        ContainerRequest(requests=((nic, 1000.0),)),
    )
    session = (
        _nic_cluster()
        .pending(
            "p",
            request=request(0, other=((nic, 3000.0),)),
            constraints=TaskConstraints(containers=containers),
        )
        .session()
    )
    extended = ExtendedResources(session.state.cluster_input.devices)
    claim = extended.claim(session.state.tasks.task_class[0], frozenset({nic}))
    assert [(device_request.name, device_request.count) for device_request in claim.requests] == [
        ("container-1-request-0", 1.0),
        ("container-3-request-0", 1.0),
        ("container-2-request-0", 1.0),
    ]
