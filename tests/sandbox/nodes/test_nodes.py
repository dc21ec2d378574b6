"""Nodes, devices, hints and status bodies."""

from __future__ import annotations

import pytest

from kube.resources import NODES
from sandbox.nodes import podhints, podstatus
from sandbox.nodes.devices import DeviceBook, DevicesUnavailableError, device_id
from sandbox.nodes.profiles import demo, ensure_nodes, profile, uniform
from sandbox.nodes.simpod import GPU
from tests.fakes.gateway import FakeGateway
from tests.sandbox.pods import NOW, running, sim_pod


def test_demo_cluster_has_sixteen_machines_and_the_lab_worker() -> None:
    machines = {machine.name: machine for machine in demo()}
    assert len(machines) == 16
    assert machines["gpu-lab-worker"].gpus == 8
    assert sum(machine.gpus for machine in machines.values()) == 92
    assert len({machine.rack for machine in machines.values()}) == 5
    assert [name for name, item in machines.items() if not item.gpus] == [
        "cpu-worker-1",
        "cpu-worker-2",
    ]


def test_profiles() -> None:
    assert [machine.gpus for machine in profile("3x4")] == [4, 4, 4]
    assert profile("none") == []
    with pytest.raises(ValueError, match="node profile 'lots'"):
        profile("lots")


def test_a_profile_with_more_than_999_gpus_per_node_is_refused() -> None:
    assert profile("1x999")[0].gpus == 999
    with pytest.raises(ValueError, match="'1x100000': expected at most 999 GPUs per node, got 1"):
        profile("1x100000")


def test_nodes_get_labels_status_and_lose_the_not_ready_taint() -> None:
    gateway = FakeGateway()
    assert ensure_nodes(gateway, demo(), NOW) == 16
    node = gateway.raw(NODES, "gpu-lab-worker")
    assert node["metadata"]["labels"]["nvidia.com/gpu.product"] == "NVIDIA-A100-SXM4-80GB"
    assert node["metadata"]["labels"]["nvidia.com/gpu.memory"] == "81920"
    assert node["status"]["allocatable"][GPU] == "8"
    assert GPU not in gateway.raw(NODES, "cpu-worker-1")["status"]["allocatable"]


def test_only_the_not_ready_taint_is_lifted_also_from_existing_nodes() -> None:
    gateway = FakeGateway()
    machines = uniform(1)
    ensure_nodes(gateway, machines, NOW)
    mine = {"key": "mine", "effect": "NoSchedule"}
    not_ready = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    gateway.patch(NODES, "node-0000", {"spec": {"taints": [mine, not_ready]}})
    ensure_nodes(gateway, machines, NOW)
    assert gateway.raw(NODES, "node-0000")["spec"]["taints"] == [mine]


def test_existing_nodes_keep_what_people_changed() -> None:
    gateway = FakeGateway()
    machines = uniform(1)
    ensure_nodes(gateway, machines, NOW)
    gateway.patch(NODES, "node-0000", {"spec": {"unschedulable": True}})
    assert ensure_nodes(gateway, machines, NOW) == 0
    assert gateway.raw(NODES, "node-0000")["spec"]["unschedulable"] is True


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90.0), ("1h30m", 5400.0), ("250ms", 0.25), ("2.5m", 150.0)]
)
def test_durations(text: str, seconds: float) -> None:
    assert podhints.parse_duration(text) == seconds
    assert podhints.parse_duration(podhints.format_duration(seconds)) == seconds


@pytest.mark.parametrize("text", ["", "ten", "10", "5 s"])
def test_bad_durations_are_named(text: str) -> None:
    with pytest.raises(ValueError):
        podhints.parse_duration(text)


def test_misspelt_hint_counts_as_unset() -> None:
    assert sim_pod("a", annotations={podhints.START_DELAY: "soon"}).start_delay_s() == 0.0


def test_devices_are_taken_all_or_none() -> None:
    book = DeviceBook()
    book.set_capacity("n1", {GPU: 2, "nvidia.com/mig-1g.10gb": 1})
    with pytest.raises(DevicesUnavailableError, match=r"mig-1g.10gb. Requested: 2, Available: 1"):
        book.take("a", "n1", {GPU: 1, "nvidia.com/mig-1g.10gb": 2})
    assert book.take("b", "n1", {GPU: 2}) == [device_id("n1", GPU, 0), device_id("n1", GPU, 1)]
    book.give_back("b")
    assert book.take("c", "n1", {GPU: 1}) == [device_id("n1", GPU, 0)]


def test_capacity_seen_again_leaves_held_devices_held() -> None:
    book = DeviceBook()
    book.set_capacity("n1", {GPU: 2})
    book.take("a", "n1", {GPU: 1})
    book.set_capacity("n1", {GPU: 2})
    with pytest.raises(DevicesUnavailableError):
        book.take("b", "n1", {GPU: 2})


def test_device_ids_are_stable_and_differ() -> None:
    ids = {device_id(node, GPU, index) for node in ("n1", "n2") for index in range(8)}
    assert len(ids) == 16
    assert device_id("n1", GPU, 0) == "GPU-" + device_id("n1", GPU, 0)[4:]


def test_finished_status_tells_success_from_failure() -> None:
    good = podstatus.finished(running("a"), NOW)
    bad = podstatus.finished(running("a", annotations={podhints.EXIT_CODE: "3"}), NOW)
    assert (good["phase"], bad["phase"]) == ("Succeeded", "Failed")
    state = bad["containerStatuses"][0]["state"]
    assert state["running"] is None
    assert (state["terminated"]["exitCode"], state["terminated"]["reason"]) == (3, "Error")
    ready = {item["type"]: item for item in good["conditions"]}["Ready"]
    assert (ready["status"], ready["reason"]) == ("False", "PodCompleted")


def test_a_pod_asks_device_plugins_for_nothing_that_a_claim_serves() -> None:
    mapping = {"containerName": "main", "resourceName": GPU, "requestName": "container-0-request-0"}
    status = {"resourceClaimName": "p-extended-resources-x", "requestMappings": [mapping]}
    assert sim_pod("p", gpus=2).device_requests() == {GPU: 2}
    served = sim_pod("p", gpus=2, status={"extendedResourceClaimStatus": status})
    assert served.device_requests() == {}
