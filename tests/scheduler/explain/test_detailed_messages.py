"""The long form of fit errors: each node with its figures, hidden from gangs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kube.resources import NODES, PODGROUPS, PODS
from tests.scheduler.explain.waiting_pod import (
    NO_NODES,
    args,
    message_of_group,
    queues,
    sits,
    wants,
)
from tests.scheduler.load.objects import group, node, pod
from tests.scheduler.loop.harness import Harness
from tests.scheduler.loop.harness import harness as open_harness

ONE_GPU = {"nvidia.com/gpu": "1"}
NIC, MIG = "example.com/nic", "nvidia.com/mig-1g.5gb"


@pytest.fixture
def harness() -> Iterator[Harness]:
    with open_harness() as opened:
        yield opened


@pytest.mark.parametrize(
    ("busy", "limits", "more", "detail"),
    [
        (
            {"nvidia.com/gpu": "3"},
            {"nvidia.com/gpu": "2"},
            {},
            "Node didn't have enough resources: GPUs, requested: 2, used: 3, capacity: 4",
        ),
        (
            {"nvidia.com/gpu": "4"},
            {},
            {"annotations": {"gpu-fraction": "0.5"}},
            "Node didn't have enough resources: GPUs, requested: 0.5, used: 4, capacity: 4",
        ),
        (
            {"nvidia.com/gpu": "3"},
            {},
            {"annotations": {"gpu-fraction": "0.25", "gpu-fraction-num-devices": "2"}},
            "Node didn't have enough resources: GPUs, requested: 2 X 0.25, used: 3, capacity: 4",
        ),
        (
            {"nvidia.com/gpu": "4"},
            {},
            {"annotations": {"gpu-memory": "4000"}},
            "Node didn't have enough resources: GPUs, requested: 0.25, used: 4, capacity: 4",
        ),
        (
            {},
            {},
            {"annotations": {"gpu-memory": "20000"}},
            "Node didn't have enough resources: Each gpu on the node has a gpu memory capacity of "
            "16000 Mib. 20000 Mib of gpu memory has been requested.",
        ),
        (
            {"cpu": "31500m"},
            {"cpu": "1"},
            {},
            "Node didn't have enough resources: CPU cores, requested: 1, used: 31.5, capacity: 32",
        ),
        (
            {"memory": "99.5G"},
            {"memory": "1G"},
            {},
            "Node didn't have enough resources: memory, requested: 1, used: 99.5, capacity: 100",
        ),
        (
            {NIC: "3"},
            {NIC: "2"},
            {},
            f"Node didn't have enough resource: {NIC}, requested: 2, used: 3, capacity: 4",
        ),
        (
            {"cpu": "31500m"},
            {"cpu": "500m"},
            {"overhead": {"cpu": "100m", "memory": "1Gi"}},
            "Node didn't have enough resources: CPU cores, requested: 0.6, used: 31.5, capacity: 32. "
            "Not enough resources due to pod overhead resources. The overhead resources are  cpu: "
            "100m memory: 1Gi",
        ),
    ],
)  # fmt: skip
def test_figures_of_a_node(
    harness: Harness,
    busy: dict[str, str],
    limits: dict[str, str],
    more: dict[str, Any],
    detail: str,
) -> None:
    has = {"cpu": "32", "memory": "100G", "pods": "110", "nvidia.com/gpu": "4", NIC: "4"}
    labels = {"nvidia.com/gpu.memory": "16000"}
    args(queues(harness), detailed_fit_errors="true")
    harness.seed(NODES, node("n0", allocatable=has, labels=labels)).seed(PODS, sits("busy", busy))
    text = f"\n<n0>: {detail}.\n{NO_NODES}."
    assert message_of_group(wants(harness, limits, **more)) == (
        "\nPodSchedulingErrors.\nResources were not found for pod ns/p due to: " + f"{text}."
    )
    assert harness.condition("p")["message"] == text


def test_figures_of_a_mig_profile(harness: Harness) -> None:
    has = {"cpu": "32", "memory": "100G", "pods": "110", MIG: "2"}
    args(queues(harness), detailed_fit_errors="true")
    harness.seed(NODES, node("n0", allocatable=has)).seed(PODS, sits("busy", {MIG: "2"}))
    wants(harness, {MIG: "1"}).cycle()
    assert harness.condition("p")["message"] == (
        f"\n<n0>: Node didn't have enough resource: {MIG}, requested: 1, used: 2, capacity: 2."
        f"\n{NO_NODES}."
    )


@pytest.mark.parametrize(
    ("busy", "limits", "more", "word"),
    [
        ({"nvidia.com/gpu": "3"}, {"nvidia.com/gpu": "2"}, {}, "GPUs"),
        ({"cpu": "31"}, {"cpu": "2"}, {}, "CPU cores"),
        ({"memory": "99G"}, {"memory": "2G"}, {}, "memory"),
        ({NIC: "3"}, {NIC: "2"}, {}, NIC),
        ({}, {}, {"annotations": {"gpu-memory": "20000"}}, "GPU memory"),
    ],
)
def test_figures_are_hidden_from_gangs(
    harness: Harness, busy: dict[str, str], limits: dict[str, str], more: dict[str, Any], word: str
) -> None:
    has = {"cpu": "32", "memory": "100G", "pods": "110", "nvidia.com/gpu": "4", NIC: "4"}
    labels = {"nvidia.com/gpu.memory": "16000"}
    args(queues(harness), detailed_fit_errors="true")
    harness.seed(NODES, node("n0", allocatable=has, labels=labels)).seed(PODS, sits("busy", busy))
    harness.seed(PODGROUPS, group("pg", minMember=2))
    harness.seed(
        PODS, *(pod(f"p{n}", group="pg", requests=limits, **more) for n in range(2))
    ).cycle()
    assert harness.condition("p0")["message"] == (
        f"\n<n0>: Node didn't have enough resources: {word}, taking all considerations into account."
        f"\n{NO_NODES}."
    )
