"""The judge finds each kind of broken promise and nothing in a sound cluster."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import CommandError, call_command

from kube.errors import ServerError
from kube.objects.bindrequest import BindRequest
from kube.objects.devices import ResourceClaim
from kube.objects.meta import convert
from kube.objects.node import Node
from kube.objects.pod import Pod
from kube.objects.podgroup import PodGroup
from scheduler.tools.check import ClusterPicture, violations
from tests.scheduler.load.objects import bind_request, group, node, pod

GPU = {"nvidia.com/gpu": "1"}


def seated(name: str, node_name: str = "n0", **extra: Any) -> dict[str, Any]:
    return pod(name, node=node_name, phase="Running", **extra)


def half(
    name: str, gpu_group: str = "g", node_name: str = "n0", size: str = "0.5"
) -> dict[str, Any]:
    return seated(
        name,
        node_name,
        annotations={"gpu-fraction": size},
        labels={"runai-gpu-group": gpu_group},
    )


def holder(name: str, gpu_group: str = "g", device: str = "GPU-1") -> dict[str, Any]:
    return seated(
        name,
        requests=GPU,
        labels={"runai-gpu-group": gpu_group, "app": "kai-resource-reservation"},
        annotations={"run.ai/reserve_for_gpu_index": device},
    )


def judge(
    *,
    pods: list[Any] = (),  # type: ignore[assignment]
    groups: list[Any] = (),  # type: ignore[assignment]
    requests: list[Any] = (),  # type: ignore[assignment]
    gpus: int = 2,
    is_settled: bool = False,
) -> list[tuple[str, tuple[str, ...]]]:
    picture = ClusterPicture(
        pods=[convert(item, Pod) for item in pods],
        nodes=[convert(node(name, gpus=gpus), Node) for name in ("n0", "n1")],
        groups=[convert(item, PodGroup) for item in groups],
        requests=[convert(item, BindRequest) for item in requests],
    )
    return [(item.rule, item.objects) for item in violations(picture, is_settled=is_settled)]


def test_sound_cluster() -> None:
    assert (
        judge(
            pods=[
                seated("a", requests=GPU),
                half("b"),
                half("c"),
                holder("r"),
                seated("gang-0", "n1", group="gang"),
                seated("gang-1", "n1", group="gang"),
                pod("waiting", group="idle"),
            ],
            groups=[group("gang", minMember=2), group("idle", minMember=2)],
            requests=[bind_request("a", "n0", status={"phase": "Succeeded"})],
        )
        == []
    )


def test_gpu_given_twice() -> None:
    breaches = judge(pods=[seated(name, requests=GPU) for name in "abc"])
    assert breaches == [("gpu-given-twice", ("n0", "ns/a", "ns/b", "ns/c"))]


def test_finished_pods_hold_nothing() -> None:
    succeeded = pod("c", node="n0", phase="Succeeded", requests=GPU)
    assert judge(pods=[seated("a", requests=GPU), seated("b", requests=GPU), succeeded]) == []


def test_node_above_capacity() -> None:
    breaches = judge(
        pods=[seated("a", requests={"cpu": "20"}), seated("b", requests={"cpu": "12001m"})]
    )
    assert breaches == [("node-above-capacity", ("n0",))]


@pytest.mark.parametrize(
    ("pods", "rule"),
    [
        ([half("a", size="0.6"), half("b", size="0.6"), holder("r")], "gpu-given-twice"),
        ([half("a"), half("b", node_name="n1"), holder("r")], "gpu-group-on-two-nodes"),
        ([half("a")], "gpu-not-reserved"),
        (
            [half("a"), holder("r", device="GPU-1"), holder("s", device="GPU-2")],
            "gpu-reserved-twice",
        ),
        ([holder("r", "g1"), holder("s", "g2")], "gpu-given-twice"),
    ],
)
def test_shared_devices(pods: list[dict[str, Any]], rule: str) -> None:
    assert [breaches[0] for breaches in judge(pods=pods)] == [rule]


def test_torn_gang_and_one_still_being_bound() -> None:
    gang = [seated("gang-0", group="gang"), pod("gang-1", group="gang")]
    groups = [group("gang", minMember=2)]
    assert judge(pods=gang, groups=groups) == [("gang-torn", ("ns/gang", "ns/gang-0"))]
    assert judge(pods=gang, groups=groups, requests=[bind_request("gang-1", "n1")]) == []
    leaving = seated("gang-2", group="gang", deleted="2026-01-01T00:00:00Z")
    assert judge(pods=[*gang, leaving], groups=groups) == []


def test_gang_of_subgroups_needs_only_as_many_as_it_says() -> None:
    label = "kai.scheduler/subgroup-name"
    subgroups = [{"name": "a", "minMember": 1}, {"name": "b", "minMember": 1}]
    pods = [seated("p", group="gang", labels={label: "a"})]
    assert judge(pods=pods, groups=[group("gang", subGroups=subgroups, minSubGroup=1)]) == []
    assert len(judge(pods=pods, groups=[group("gang", subGroups=subgroups)])) == 1


def test_bind_requests_match_the_decisions() -> None:
    succeeded = {"phase": "Succeeded"}
    assert judge(pods=[pod("p")], requests=[bind_request("p", "n0", status=succeeded)]) == [
        ("bind-request-lies", ("ns/p",))
    ]
    assert judge(
        pods=[seated("p", "n1")], requests=[bind_request("p", "n0", status=succeeded)]
    ) == [("pod-bound-twice", ("ns/p", "ns/p"))]
    old = bind_request("p", "n0", status=succeeded, owner_uid="earlier")
    assert judge(pods=[pod("p")], requests=[old]) == []


def test_settled_cluster_has_a_reason_for_every_pending_pod() -> None:
    labelled = pod("told")
    labelled["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "False", "message": "no room"}
    ]
    breaches = judge(
        pods=[labelled, pod("untold"), pod("foreign", schedulerName="other")],
        requests=[bind_request("told", "n0")],
        is_settled=True,
    )
    assert breaches == [
        ("bind-request-unfinished", ("ns/told",)),
        ("pending-without-reason", ("ns/untold",)),
    ]


def claim(name: str, *devices: str, **extra: Any) -> ResourceClaim:
    results = [{"driver": "d", "pool": "n0", "device": device, **extra} for device in devices]
    body = {
        "metadata": {"name": name, "namespace": "ns"},
        "status": {"allocation": {"devices": {"results": results}}},
    }
    return convert(body, ResourceClaim)


def test_device_of_two_claims_is_given_twice() -> None:
    sound = [
        claim("a", "d0"),
        claim("b", "d1"),
        claim("c"),
        claim("watcher", "d0", adminAccess=True),
    ]
    assert violations(ClusterPicture(claims=sound)) == []
    (breaches,) = violations(ClusterPicture(claims=[*sound, claim("z", "d0")]))
    assert (breaches.rule, breaches.objects) == ("device-given-twice", ("ns/a", "ns/z"))
    assert breaches.text == "device d0 of pool n0, driver d, is given to ns/a, ns/z"


def test_gpus_that_a_claim_serves_are_not_the_nodes_own() -> None:
    body = seated("a", requests={"nvidia.com/gpu": "2"})
    assert judge(pods=[body], gpus=0) == [("gpu-given-twice", ("n0", "ns/a"))]
    mapping = {"containerName": "main", "resourceName": "nvidia.com/gpu", "requestName": "r"}
    body["status"]["extendedResourceClaimStatus"] = {
        "resourceClaimName": "a-extended-resources-x",
        "requestMappings": [mapping],
    }
    assert judge(pods=[body], gpus=0) == []


def test_a_cluster_that_cannot_be_read_ends_the_command_with_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> None:
        raise ServerError("no usable cluster configuration")

    monkeypatch.setattr("scheduler.management.commands.check_cluster.gateway", refuse)
    with pytest.raises(CommandError, match="could not be read: no usable cluster") as caught:
        call_command("check_cluster")
    assert caught.value.returncode == 2
