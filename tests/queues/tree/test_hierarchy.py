"""The rules of the queue tree: each rule by example, and for random trees that nothing bad gets through."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queues.tree import hierarchy
from queues.tree.amounts import Usage
from queues.tree.hierarchy import ADMISSION, STRICT, Rules, check, errors, warnings
from queues.tree.shape import QueueShape, Severity, read_queue
from scheduler.core.cluster.inputs import QueueInput
from scheduler.core.cluster.queues import Queues


def body(name: Any, parent: Any = None, **resources: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"resources": {"gpu": {"quota": 0, "limit": -1}, **resources}}
    for resource in ("cpu", "memory"):
        spec["resources"].setdefault(resource, {"quota": 0, "limit": -1})
    if parent is not None:
        spec["parentQueue"] = parent
    return {"metadata": {"name": name}, "spec": spec}


def gpu(**amounts: Any) -> dict[str, Any]:
    return {"gpu": {"limit": -1, **amounts}}


def tree(*bodies: dict[str, Any]) -> dict[str, QueueShape]:
    return {shape.name: shape for shape, _findings in map(read_queue, bodies)}


FAMILY = tree(body("top", **gpu(quota=10)), body("mid", "top", **gpu(quota=6)), body("low", "mid"))


def codes(findings: Any) -> list[str]:
    return [finding.code for finding in findings]


def test_a_valid_creation_has_no_findings() -> None:
    assert check(FAMILY, old=None, new=body("new", "top")) == ()


@pytest.mark.parametrize("parent", ["low", "mid", "top"])
def test_a_queue_cannot_move_below_itself(parent: str) -> None:
    problems = check(
        FAMILY, old=body("top", **gpu(quota=10)), new=body("top", parent, **gpu(quota=10))
    )
    assert codes(errors(problems)) == ["cycle"]
    assert problems[0].pointer == "/parent"


def test_a_missing_parent_is_an_error_in_rest_and_a_warning_for_kubectl() -> None:
    problems = check(FAMILY, old=None, new=body("new", "ghost"))
    assert [(problem.code, problem.message) for problem in errors(problems)] == [
        ("missing-parent", "parent queue 'ghost' does not exist")
    ]
    lenient = check(FAMILY, old=None, new=body("new", "ghost"), rules=ADMISSION)
    assert (errors(lenient), codes(warnings(lenient))) == ((), ["missing-parent"])


def test_a_parent_that_is_an_orphan_itself_is_no_place_either() -> None:
    orphaned = tree(body("lost", "ghost"))
    problems = check(orphaned, old=None, new=body("new", "lost"))
    assert (
        errors(problems)[0].message == "parent queue 'ghost' of its ancestor 'lost' does not exist"
    )


def test_an_orphan_can_still_be_edited_and_brought_home() -> None:
    orphaned = tree(body("lost", "ghost"), body("top"))
    findings_of_edit = check(
        orphaned, old=body("lost", "ghost"), new=body("lost", "ghost", **gpu(quota=1))
    )
    assert errors(findings_of_edit) == ()
    assert errors(check(orphaned, old=body("lost", "ghost"), new=body("lost", "top"))) == ()


def test_depth_counts_what_is_below_the_moved_queue() -> None:
    rules = Rules(max_depth=3)
    other = {**FAMILY, **tree(body("side"), body("child", "side"))}
    problems = check(other, old=body("mid", "top"), new=body("mid", "child"), rules=rules)
    assert (codes(errors(problems)), errors(problems)[0].allowed) == (["depth"], 3)
    assert errors(check(other, old=body("mid", "top"), new=body("mid", "side"), rules=rules)) == ()


def test_a_queue_with_children_cannot_be_deleted() -> None:
    problems = check(FAMILY, old=body("top"), new=None)
    assert [problem.message for problem in errors(problems)] == [
        "cannot delete queue top: it has child queues [mid]"
    ]
    assert check(FAMILY, old=body("low", "mid"), new=None) == ()


def test_deleting_a_queue_with_workloads_is_warned_about() -> None:
    problems = check(FAMILY, old=body("low"), new=None, usage={"low": Usage(workloads=3)})
    assert [(problem.code, problem.severity, problem.given) for problem in problems] == [
        ("has-workloads", Severity.WARNING, 3)
    ]


def test_a_queue_without_resources_is_refused_in_kais_words() -> None:
    problems = check({}, old=None, new={"metadata": {"name": "q"}, "spec": {}})
    assert [problem.message for problem in errors(problems)] == ["resources must be specified"]


def test_the_name_is_unique_and_immutable() -> None:
    assert codes(check(FAMILY, old=None, new=body("top"))) == ["exists"]
    assert codes(check(FAMILY, old=body("top"), new=body("tip"))) == ["immutable"]


@pytest.mark.parametrize(
    "name", ["", "A", "a_b", "-a", "a-", "a..b", "x" * 254, None, 7, ["a"], "a\n"]
)
def test_a_bad_name_is_refused(name: Any) -> None:
    assert {problem.pointer for problem in errors(check({}, old=None, new=body(name)))} == {"/name"}


@pytest.mark.parametrize(
    ("amount", "code"),
    [(-2, "negative"), (-0.5, "negative"), ("4", "number"), (True, "number"), ([], "number"),
     (float("nan"), "number"), (float("inf"), "number"), (10**400, "number"), (0.1234, "places")],
)  # fmt: skip
@pytest.mark.parametrize("field", ["quota", "limit"])
def test_a_bad_amount_is_refused_and_named(amount: Any, code: str, field: str) -> None:
    problems = errors(check({}, old=None, new=body("q", **gpu(**{field: amount}))))
    assert [(problem.pointer, problem.code) for problem in problems] == [(f"/{field}/gpu", code)]
    assert problems[0].message


@pytest.mark.parametrize(
    ("resource", "amount", "name"),
    [("cpu", 0.5, "cpuMilli"), ("memory", 1e-7, "memoryBytes"), ("memory", 8e6 + 1e-7, "memoryBytes")],
)  # fmt: skip
def test_a_part_of_a_millicore_or_a_byte_is_refused(
    resource: str, amount: float, name: str
) -> None:
    problems = errors(check({}, old=None, new=body("q", **{resource: {"quota": amount}})))
    assert [(problem.pointer, problem.code) for problem in problems] == [
        (f"/quota/{name}", "places")
    ]


@pytest.mark.parametrize("amount", [-1, 0, 1e-6, 0.123457, 274_877.906944, 1e12 + 0.000001])
def test_whole_bytes_are_accepted_however_they_are_stored(amount: float) -> None:
    assert not errors(check({}, old=None, new=body("q", memory={"quota": amount, "limit": amount})))


def test_a_weight_cannot_be_unlimited() -> None:
    problems = errors(check({}, old=None, new=body("q", **gpu(overQuotaWeight=-1))))
    assert [(problem.pointer, problem.code) for problem in problems] == [
        ("/weight/gpu", "negative")
    ]


def test_unset_unlimited_and_zero_are_kept_apart() -> None:
    shape, _ = read_queue(body("q", gpu={"quota": 0}, cpu={"limit": -1}, memory={}))
    assert (shape.quota["gpu"], shape.limit["gpu"]) == (0, None)
    assert (shape.quota["cpu"], shape.limit["cpu"]) == (None, -1)
    problems = warnings(check({}, old=None, new=body("q", gpu={"quota": 0}, memory={"limit": 0})))
    assert [(problem.pointer, problem.code) for problem in problems] == [
        ("/limit/gpu", "limit-unset")
    ]


@pytest.mark.parametrize(
    ("resource", "unit"), [("gpu", "gpu"), ("cpu", "cpuMilli"), ("memory", "memoryBytes")]
)
def test_children_together_over_their_parent_are_warned_about_for_every_resource(
    resource: str, unit: str
) -> None:
    amounts = {resource: {"quota": 6, "limit": -1}}
    family = tree(body("p", **{resource: {"quota": 10, "limit": -1}}), body("a", "p", **amounts))
    problems = check(family, old=None, new=body("b", "p", **amounts))
    assert [
        (problem.pointer, problem.code, problem.given, problem.allowed) for problem in problems
    ] == [(f"/quota/{unit}", "children-over-parent", 12, 10)]
    assert "total children" in problems[0].message


def test_unlimited_parents_have_room_and_unlimited_children_do_not_fit() -> None:
    roomy = tree(body("p", **gpu(quota=-1)))
    assert check(roomy, old=None, new=body("b", "p", **gpu(quota=500))) == ()
    tight = tree(body("p", **gpu(quota=5)))
    problems = check(tight, old=None, new=body("b", "p", **gpu(quota=-1)))
    assert [(problem.code, problem.given) for problem in problems] == [
        ("children-over-parent", "unlimited")
    ]


def test_lowering_a_parent_below_its_children_is_warned_about() -> None:
    problems = check(FAMILY, old=body("top", **gpu(quota=10)), new=body("top", **gpu(quota=5)))
    assert codes(problems) == ["children-over-parent"]


def test_limits_are_compared_with_quota_parent_and_use() -> None:
    family = tree(body("p", gpu={"quota": 50, "limit": 8}))
    problems = check(
        family,
        old=None,
        new=body("q", "p", gpu={"quota": 9, "limit": -1}),
    )
    assert codes(problems) == ["limit-over-parent"]
    alone = check({}, old=None, new=body("q", gpu={"quota": 9, "limit": 4}))
    assert codes(alone) == ["quota-over-limit"]
    used = check(
        tree(body("q")),
        old=body("q"),
        new=body("q", gpu={"quota": 1, "limit": 4}),
        usage={"q": Usage(allocated={"gpu": 6}, non_preemptible={"gpu": 3})},
    )
    assert [(problem.code, problem.given, problem.allowed) for problem in used] == [
        ("limit-below-allocated", 4, 6), ("quota-below-non-preemptible", 1, 3),
    ]  # fmt: skip


def test_a_parent_with_workloads_of_its_own_is_warned_about() -> None:
    problems = check(FAMILY, old=None, new=body("new", "low"), usage={"low": Usage(workloads=2)})
    assert codes(problems) == ["parent-has-workloads"]


def test_weight_zero_among_weighted_siblings_and_an_odd_priority_are_warned_about() -> None:
    family = tree(body("a", **gpu(overQuotaWeight=2)))
    new = body("b", **gpu(overQuotaWeight=0))
    new["spec"]["priority"] = 7
    assert codes(check(family, old=None, new=new)) == ["weight-zero", "priority-differs"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5m", []),
        ("24h", []),
        ("24h1s", ["long-runtime"]),
        ("-1s", ["duration"]),
        ("1 day", ["duration"]),
    ],
)
def test_minimum_run_times(text: str, expected: list[str]) -> None:
    new = body("q")
    new["spec"]["reclaimMinRuntime"] = text
    assert codes(check({}, old=None, new=new)) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
NAMES = st.sampled_from(["a", "b", "c", ""]) | JSON
WEIRD = st.fixed_dictionaries(
    {},
    optional={
        "metadata": JSON | st.fixed_dictionaries({"name": NAMES}),
        "spec": JSON
        | st.fixed_dictionaries(
            {},
            optional={
                "parentQueue": NAMES,
                "priority": JSON,
                "displayName": JSON,
                "preemptMinRuntime": JSON,
                "reclaimMinRuntime": JSON,
                "resources": JSON
                | st.dictionaries(
                    st.sampled_from(["gpu", "cpu", "memory", "odd"]),
                    JSON
                    | st.dictionaries(st.sampled_from(["quota", "limit", "overQuotaWeight"]), JSON),
                ),
            },
        ),
    },
)


@settings(max_examples=2000, deadline=None)
@given(old=st.none() | WEIRD | JSON, new=st.none() | WEIRD | JSON)
def test_no_input_whatsoever_makes_it_raise(old: Any, new: Any) -> None:
    for finding in check(FAMILY, old=old, new=new):
        assert finding.message != ""
        assert finding.as_dict()["code"] != ""


def accepted_by_scheduler(queues: dict[str, QueueShape]) -> bool:
    """The scheduler's own judgement: it drops every queue that does not reach a root."""
    findings_of_edit = Queues(
        [QueueInput(name=queue.name, parent=queue.parent) for queue in queues.values()]
    )
    return set(findings_of_edit.names) == set(queues)


@settings(max_examples=2000, deadline=None)
@given(st.integers(0, 2**48))
def test_what_is_let_through_keeps_every_queue_in_the_tree(seed: int) -> None:
    """Random trees, then random creations, moves, edits and deletions; only accepted ones are made."""
    chance = random.Random(seed)
    bodies: dict[str, dict[str, Any]] = {}
    queues = tree()
    names = [f"q{n}" for n in range(8)]
    for _step in range(12):
        name = chance.choice(names)
        known = bodies.get(name)
        parent = chance.choice([None, *names, "ghost"])
        new = (
            None
            if chance.random() < 0.2
            else body(name, parent, **gpu(quota=chance.choice([0, 3, -1, -4])))
        )
        if known is None and new is None:
            continue
        if errors(check(queues, old=known, new=new, rules=STRICT)):
            continue
        if new is None:
            del bodies[name]
        else:
            bodies[name] = new
        queues = tree(*bodies.values())
        assert accepted_by_scheduler(queues)
        assert {hierarchy.problem_of(queues, queue) for queue in queues} <= {""}
        assert all(queue.quota["gpu"] in (0, 3, -1) for queue in queues.values())
