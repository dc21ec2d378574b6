"""The queue and topology webhooks."""

from __future__ import annotations

from typing import Any

import pytest

from queues.admission.routes import VALIDATE_QUEUE, VALIDATE_TOPOLOGY
from queues.tree.shape import shapes_of
from tests.queues.admission.reviews import Answer, accepted, ask


def queue(
    name: str, parent: str = "", *, resources: bool = True, **quotas: float
) -> dict[str, Any]:
    spec: dict[str, Any] = {"parentQueue": parent} if parent else {}
    if resources:
        spec["resources"] = {
            kind: {"quota": quotas.get(kind, -1), "limit": -1, "overQuotaWeight": 1}
            for kind in ("gpu", "cpu", "memory")
        }
    return {"metadata": {"name": name}, "spec": spec}


def judged(body: dict[str, Any] | None, *others: dict[str, Any], **options: Any) -> Answer:
    return ask(VALIDATE_QUEUE, body, tree=shapes_of(list(others)), **options)


def test_a_queue_needs_resources() -> None:
    answer = judged(queue("a", resources=False))
    assert not answer.allowed
    assert answer.message == "resources must be specified"
    assert answer.warnings == ["resources must be specified"]


def test_a_parent_with_children_may_be_deleted_as_clients_delete_by_name() -> None:
    root = queue("root")
    assert judged(None, root, queue("b", "root"), queue("a", "root"), old=root) == accepted(None)


def test_a_name_that_no_label_can_hold_is_a_warning() -> None:
    name = "a" * 64
    body = queue(name)
    warning = f"queue '{name}': expected a name of at most 63 characters, got 64; no label of a workload can hold it"
    assert judged(body) == accepted(body, warnings=[warning])


def test_a_circle_of_parents_is_refused() -> None:
    old = queue("root")
    answer = judged(queue("root", "child"), old, queue("child", "root"), old=old)
    assert not answer.allowed
    assert (
        answer.message
        == "queue 'root' cannot be below 'child': 'root' would be among its own ancestors"
    )


def test_negative_quotas_are_refused() -> None:
    answer = judged(queue("a", gpu=-7))
    assert not answer.allowed
    assert answer.message == "quota of gpu: expected a number >= 0, or unlimited (-1), got -7"


def test_a_missing_parent_is_only_a_warning_as_kubectl_may_bring_it_next() -> None:
    body = queue("a", "later")
    warning = "parent queue 'later' does not exist"
    assert judged(body) == accepted(body, warnings=[warning])


def test_a_queue_that_the_mirror_knows_already_can_still_be_created() -> None:
    assert judged(queue("a"), queue("a")) == accepted(queue("a"))


CPU, GPU, MEMORY = 1000, 2, 5


@pytest.mark.parametrize(
    ("quotas", "expected"),
    [
        (
            {"cpu": 1200, "gpu": 2.5, "memory": 6},
            [
                "child queue CPU quota (1200) exceeds parent queue root CPU quota (1000)",
                "total children CPU quota (1200) exceeds parent queue root CPU quota (1000)",
                "child queue GPU quota (2.50) exceeds parent queue root GPU quota (2.00)",
                "total children GPU quota (2.50) exceeds parent queue root GPU quota (2.00)",
                "child queue Memory quota (6) exceeds parent queue root Memory quota (5)",
                "total children Memory quota (6) exceeds parent queue root Memory quota (5)",
            ],
        ),
        ({"cpu": 1000, "gpu": 2, "memory": 5}, []),
    ],
)
def test_quota_comparison_with_the_parent(quotas: dict[str, float], expected: list[str]) -> None:
    root = queue("root", cpu=CPU, gpu=GPU, memory=MEMORY)
    answer = judged(queue("a", "root", **quotas), root, compares_quotas=True)
    assert answer.allowed
    assert [
        text for text in answer.warnings if "queue root" in text and "not scaled" not in text
    ] == expected


def test_quota_comparison_with_the_children_of_an_updated_parent() -> None:
    old = queue("root", cpu=CPU, gpu=GPU, memory=MEMORY)
    new = queue("root", cpu=500, gpu=1, memory=2)
    children = [
        queue("a", "root", cpu=600, gpu=1.5, memory=3),
        queue("b", "root", cpu=100, gpu=0, memory=0),
    ]
    answer = judged(new, old, *children, old=old, compares_quotas=True)
    parent_warnings = [
        text
        for text in answer.warnings
        if "parent CPU" in text or "parent GPU" in text or "parent Memory" in text
    ]
    assert parent_warnings == [
        "child queue a CPU quota (600) exceeds parent CPU quota (500)",
        "total children CPU quota (700) exceeds parent CPU quota (500)",
        "child queue a GPU quota (1.50) exceeds parent GPU quota (1.00)",
        "total children GPU quota (1.50) exceeds parent GPU quota (1.00)",
        "child queue a Memory quota (3) exceeds parent Memory quota (2)",
        "total children Memory quota (3) exceeds parent Memory quota (2)",
    ]


def test_quota_comparison_denies_without_a_parent_to_compare_with() -> None:
    problem = judged(queue("a", "gone"), compares_quotas=True)
    assert problem.message == (
        'failed to get parent queue gone: queues.scheduling.run.ai "gone" not found'
    )
    bare = judged(queue("a", "root"), queue("root", resources=False), compares_quotas=True)
    assert bare.message == "parent queue root has no resources defined"


def topology(*levels: tuple[str, str]) -> dict[str, Any]:
    return {"spec": {"levels": [{"nodeLabel": label, "alias": alias} for label, alias in levels]}}


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        (
            [("block", "rack"), ("row", "rack"), ("zone", "x"), ("host", "zone")],
            "invalid topology aliases: aliases must be unique within the topology; duplicated: [rack]; "
            "an alias must not equal a nodeLabel; conflicting: [zone]",
        ),
        (
            [("a", "y"), ("b", "x"), ("c", "x"), ("d", "y")],
            "invalid topology aliases: aliases must be unique within the topology; duplicated: [x y]",
        ),
        (
            [("a", "a")],
            "invalid topology aliases: an alias must not equal a nodeLabel; conflicting: [a]",
        ),
    ],
)
def test_confusing_aliases_are_refused(levels: list[tuple[str, str]], message: str) -> None:
    assert ask(VALIDATE_TOPOLOGY, topology(*levels)).message == message


def test_plain_topologies_pass() -> None:
    for body in (topology(("a", "x"), ("b", ""), ("c", "")), {"spec": {}}):
        assert ask(VALIDATE_TOPOLOGY, body) == accepted(body)
    assert ask(VALIDATE_TOPOLOGY, None, old={"spec": {}}) == accepted(None)
