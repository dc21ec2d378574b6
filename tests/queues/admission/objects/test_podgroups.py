"""The pod group webhook: every rule and its text, and which of them only warn."""

from __future__ import annotations

from typing import Any

import pytest

from queues.admission.routes import VALIDATE_POD_GROUP
from tests.queues.admission.reviews import Answer, accepted, ask


def judged(spec: dict[str, Any], *, is_update: bool = False) -> Answer:
    body = {"metadata": {"name": "g"}, "spec": spec}
    return ask(VALIDATE_POD_GROUP, body, old=body if is_update else None)


def sub(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, **fields}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"minMember": 24, "minSubGroup": 1},
            "minMember and minSubGroup are mutually exclusive: set minMember (24) to schedule a fixed number "
            "of pods, or set minSubGroup to require a minimum number of child SubGroups, but not both",
        ),
        (
            {"subGroups": [sub("a", minMember=1), sub("a", minMember=1)]},
            "duplicate subgroup name a",
        ),
        ({"subGroups": [sub("a", parent="p", minMember=1)]}, "parent p of a was not found"),
        (
            {"subGroups": [sub("a", parent="b"), sub("b", parent="a")]},
            "cycle detected in subgroups",
        ),
        ({"subGroups": [sub("a", parent="a")]}, "cycle detected in subgroups"),
        (
            {
                "subGroups": [
                    sub("parent", minMember=1, minSubGroup=1),
                    sub("a", parent="parent", minMember=1),
                ]
            },
            'subgroup "parent": minMember and minSubGroup are mutually exclusive',
        ),
        (
            {"subGroups": [sub("A", minSubGroup=0)]},
            'subgroup "A": minSubGroup cannot be set on a leaf SubGroup (no child SubGroups)\n'
            "subgroup A: minMember is required",
        ),
        ({"subGroups": [sub("A")]}, "subgroup A: minMember is required"),
        (
            {"subGroups": [sub("b"), sub("a")]},
            "subgroup a: minMember is required\nsubgroup b: minMember is required",
        ),
    ],
)
def test_refused_always(spec: dict[str, Any], message: str) -> None:
    for is_update in (False, True):
        answer = judged(spec, is_update=is_update)
        assert (answer.allowed, answer.message) == (False, message)


def test_a_minimum_of_pods_on_a_parent_is_refused_at_first_and_a_warning_later() -> None:
    spec = {"subGroups": [sub("parent", minMember=2), sub("a", parent="parent", minMember=1)]}
    text = (
        'subgroup "parent": minMember cannot be set on a mid-level SubGroup (has child SubGroups); '
        "use minSubGroup instead"
    )
    assert judged(spec).message == text
    update = judged(spec, is_update=True)
    assert (update.allowed, update.warnings) == (True, [text])


def test_more_subgroups_wanted_than_there_are_only_warns() -> None:
    children = [sub("a", parent="parent", minMember=1), sub("b", parent="parent", minMember=1)]
    spec = {"minSubGroup": 5, "subGroups": [sub("parent", minSubGroup=3), *children]}
    for is_update in (False, True):
        answer = judged(spec, is_update=is_update)
        assert answer.allowed
        assert answer.warnings == [
            'subgroup "parent": minSubGroup (3) exceeds the number of direct child SubGroups (2)',
            "minSubGroup (5) exceeds the number of direct child SubGroups (1)",
        ]


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"minMember": 0},
        {"minSubGroup": 1, "subGroups": [sub("a", minMember=0)]},
        {"minMember": 3, "subGroups": [sub("a", minMember=1)]},
        {
            "subGroups": [
                sub("top"),
                sub("mid", parent="top"),
                sub("leaf", parent="mid", minMember=2),
            ]
        },
    ],
)
def test_sound_groups_pass(spec: dict[str, Any]) -> None:
    answer = judged(spec)
    assert (answer.allowed, answer.warnings) == (True, [])


def test_deletions_pass() -> None:
    old = {"spec": {"subGroups": [sub("a")]}}
    assert ask(VALIDATE_POD_GROUP, None, old=old) == accepted(None)


def test_malformed_specs_raise_no_exception() -> None:
    for spec in (
        {"subGroups": "x"},
        {"subGroups": [1, {"name": 3}, {"parent": []}]},
        {"minSubGroup": "y"},
    ):
        judged(spec)
