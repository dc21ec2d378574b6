"""Which pods are the minimum of a semi-preemptible pod group."""

from __future__ import annotations

from typing import Any

import pytest

from kube.objects.meta import convert
from kube.objects.pod import Pod
from kube.objects.podgroup import PodGroup
from queues.workloads.minimums import minimum_pods

TREE = [
    {"name": "x", "minMember": 2},
    {"name": "y", "minMember": 2},
    {"name": "z", "minMember": 1},
]


def group(**spec: Any) -> PodGroup:
    return convert({"metadata": {"name": "g", "namespace": "ns"}, "spec": spec}, PodGroup)


def pods(*subgroups: str) -> list[Pod]:
    return [
        convert(
            {
                "metadata": {
                    "name": f"p{number}",
                    "creationTimestamp": f"2026-01-01T00:00:0{number}Z",
                    "labels": {"kai.scheduler/subgroup-name": name} if name else {},
                }
            },
            Pod,
        )
        for number, name in enumerate(subgroups)
    ]


@pytest.mark.parametrize(
    ("spec", "subgroups", "expected"),
    [
        ({"minMember": 2}, ["", "", ""], ["p0", "p1"]),
        ({}, ["", ""], ["p0"]),
        ({"minMember": 0}, ["", ""], []),
        ({"minMember": 3}, ["", ""], ["p0", "p1"]),
        ({"subGroups": TREE}, list("xxxyyz"), ["p3", "p4", "p5", "p0", "p1"]),
        ({"subGroups": TREE, "minSubGroup": 1}, list("xyy"), ["p1", "p2"]),
        ({"subGroups": TREE, "minSubGroup": 1}, list("xxyyz"), ["p0", "p1"]),
        (
            {"subGroups": [{"name": "top"}, {"name": "leaf", "parent": "top", "minMember": 1}]},
            ["leaf", "leaf"],
            ["p0"],
        ),
    ],
)
def test_the_minimum(spec: dict[str, Any], subgroups: list[str], expected: list[str]) -> None:
    minimum = minimum_pods(group(**spec), pods(*subgroups))
    assert [pod.metadata.name for pod in minimum] == expected
