"""Creation, update and move of a queue get the same findings if the resulting tree is the same, for every resource."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from queues.tree.hierarchy import check, errors
from queues.tree.shape import QueueShape, read_queue

AMOUNTS = st.sampled_from([-1, 0, 1, 4, 10])
RESOURCES = st.fixed_dictionaries(
    {
        resource: st.fixed_dictionaries({"quota": AMOUNTS, "limit": AMOUNTS})
        for resource in ("gpu", "cpu", "memory")
    }
)
NO_QUOTA = {resource: {"quota": 0, "limit": -1} for resource in ("gpu", "cpu", "memory")}


def body(name: str, parent: str, resources: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = {"resources": resources}
    if parent:
        spec["parentQueue"] = parent
    return {"metadata": {"name": name}, "spec": spec}


def tree(*bodies: dict[str, Any]) -> dict[str, QueueShape]:
    return {shape.name: shape for shape, _findings in map(read_queue, bodies)}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(parent=RESOURCES, siblings=st.lists(RESOURCES, max_size=3), own=RESOURCES)
def test_creation_update_and_move_get_the_same_findings_for_the_same_tree(
    parent: dict[str, Any], siblings: list[dict[str, Any]], own: dict[str, Any]
) -> None:
    others = [
        body("parent", "", parent),
        body("elsewhere", "", {resource: {"quota": -1, "limit": -1} for resource in NO_QUOTA}),
        *(body(f"sibling-{number}", "parent", part) for number, part in enumerate(siblings)),
    ]
    new, without_quota, at_another_parent = (
        body("new", "parent", own),
        body("new", "parent", NO_QUOTA),
        body("new", "elsewhere", own),
    )

    created = check(tree(*others), old=None, new=new)
    updated = check(tree(*others, without_quota), old=without_quota, new=new)
    moved = check(tree(*others, at_another_parent), old=at_another_parent, new=new)

    expected = {(finding.pointer, finding.code) for finding in created}
    assert {(finding.pointer, finding.code) for finding in updated} == expected
    assert {(finding.pointer, finding.code) for finding in moved} == expected
    assert errors(created) == ()  # children over their parent are a warning


@settings(max_examples=40, deadline=None, derandomize=True)
@given(parent=RESOURCES, siblings=st.lists(RESOURCES, min_size=1, max_size=3), own=RESOURCES)
def test_children_over_their_parent_are_found_for_exactly_the_resources_that_are_over(
    parent: dict[str, Any], siblings: list[dict[str, Any]], own: dict[str, Any]
) -> None:
    others = [body(f"sibling-{number}", "parent", part) for number, part in enumerate(siblings)]
    pointer_names = {"gpu": "gpu", "cpu": "cpuMilli", "memory": "memoryBytes"}

    findings = check(
        tree(body("parent", "", parent), *others), old=None, new=body("new", "parent", own)
    )

    expected = {
        f"/quota/{name}"
        for resource, name in pointer_names.items()
        if _is_over(
            [part[resource]["quota"] for part in (*siblings, own)], parent[resource]["quota"]
        )
    }
    assert {f.pointer for f in findings if f.code == "children-over-parent"} == expected


def _is_over(children: list[int], quota: int) -> bool:
    if quota == -1:
        return False
    return -1 in children or sum(children) > quota
