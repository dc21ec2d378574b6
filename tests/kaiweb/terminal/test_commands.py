"""What the commands print and send."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.kaiweb.terminal.answers import FakeRest, queue, run, simulation, workload

TREE = [queue("root"), queue("vision", "root"), queue("audio", "root", orphan=True, problems=["p"])]


def lines_of(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_queues_prints_children_below_their_parent():
    result = run(FakeRest({"queues": TREE}), "queues")

    rows = lines_of(result.output)
    assert [row[0] for row in rows] == ["queue", "root", "audio", "vision"]
    assert rows[3][1:] == ["4", "unlimited", "1", "6", "6", "8", "2", "1"]
    assert rows[2][-1] == "p"


@pytest.mark.parametrize(("resource", "allocated"), [("cpu", "1.5"), ("memory", "1.5")])
def test_queues_prints_cores_and_gibibytes(resource: str, allocated: str):
    result = run(FakeRest({"queues": TREE}), "queues", "--resource", resource)

    assert lines_of(result.output)[1] == ["root", "-", "-", "-", "0", allocated, "0", "2", "1"]


def test_queues_in_a_circle_are_printed_once_each():
    rows = [queue("a", "b"), queue("b", "a"), queue("c")]

    result = run(FakeRest({"queues": rows}), "queues")

    assert [row[0] for row in lines_of(result.output)] == ["queue", "c", "a", "b"]


def test_an_unknown_root_is_an_error_with_advice():
    result = run(FakeRest({"queues": []}), "queues", "--root", "nope")

    assert result.exit_code == 1
    assert "queue 'nope' does not exist\n  `kaiweb queues` lists all" in result.output


@pytest.mark.parametrize(("name", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_programs_get_the_rows_of_the_api(name: str, read):
    result = run(FakeRest({"queues": TREE}), "queues", "--output", name)

    assert read(result.output) == TREE


def test_why_prints_the_reason_the_evidence_and_who_is_ahead():
    rest = FakeRest({"workloads/team/pg-b": workload("pg-b", "train-2")})

    output = run(rest, "why", "team/pg-b").output

    assert "It waits: DeviceShortage" in output
    assert ["GPUs", "for", "one", "pod", "8", "2", "at", "most", "n1"] in lines_of(output)
    assert "Position 3 of 7" in output
    assert ["team/train-1", "vision", "2", "2"] in lines_of(output)
    assert "✓ queue  ✗ nodes" in output


def test_why_prints_why_a_placed_pod_is_on_its_node():
    placement = {
        "pod": "train-2-0", "node": "n1", "decidedBy": "binpack", "nextNode": "n0",
        "terms": [{"name": "binpack", "chosen": 9, "next": 4.5}],
        "possible": 2, "considered": 5, "refused": [{"reason": "gpu", "nodes": 3}],
    }  # fmt: skip
    rest = FakeRest(
        {
            "workloads/team/pg-b": workload("pg-b", "train-2", podList=[{"node": "n1"}]),
            "workloads/team/pg-b/explain": {"placements": [placement]},
        }
    )

    output = run(rest, "why", "team/pg-b").output

    expected = "train-2-0 n1 binpack n0 binpack 9/4.5 2 of 5 possible, 3 gpu"
    assert expected.split() in lines_of(output)


@pytest.mark.parametrize("name", ["train-2", "train-2-x7k2p"])
def test_why_takes_the_name_of_the_owner_or_of_a_pod(name: str):
    rows = [workload("pg-a", "train"), workload("pg-b", "train-2")]
    rest = FakeRest({"workloads": rows, "workloads/team/pg-b": rows[1]})

    result = run(rest, "why", f"team/{name}", "-o", "json")

    assert json.loads(result.output)["name"] == "pg-b"


def test_why_prefers_the_workload_that_has_not_ended():
    rows = [workload("pg-a", "train", state="finished"), workload("pg-b", "train")]
    rest = FakeRest({"workloads": rows, "workloads/team/pg-b": rows[1]})

    assert json.loads(run(rest, "why", "team/train", "-o", "json").output)["name"] == "pg-b"


def test_why_names_the_workloads_to_choose_from():
    rest = FakeRest({"workloads": [workload("pg-a", "train"), workload("pg-b", "train")]})

    result = run(rest, "why", "team/train")

    assert result.exit_code == 1
    assert "'train' has 2 workloads\n  choose one of team/pg-a, team/pg-b" in result.output


def test_why_of_an_unknown_name_says_how_to_list():
    result = run(FakeRest({"workloads": []}), "why", "team/none")

    assert result.exit_code == 1
    assert "`kubectl get podgroups -n team` lists the workloads" in result.output


def test_why_without_a_namespace_is_a_usage_error():
    assert run(FakeRest(), "why", "train").exit_code == 2


def test_order_prints_the_next_one_first():
    rest = FakeRest({"order": [workload("pg-b", "train-2", position=1)]})

    row = lines_of(run(rest, "order").output)[1]

    assert row[:5] == ["1", "team/train-2", "vision", "train", "8"]


def test_order_of_a_queue_asks_for_its_subtree():
    rest = FakeRest({"queues/a%2Fb/order": []})

    assert "Nobody waits" in run(rest, "order", "--queue", "a/b").output


def test_top_prints_once_where_the_output_is_no_terminal():
    cluster = {
        "gpus": {"allocated": 6, "total": 8, "free": 2},
        "nodes": {"ready": 1, "total": 1},
        "workloads": {"running": 2, "pending": 1},
        "pendingByReason": [{"reason": "DeviceShortage", "workloads": 1}],
        "sessions": {"perMinute": 60, "lastDurationMs": 12.5},
    }
    node = {
        "name": "n1", "model": "H100", "ready": True, "cordoned": True, "gpuTotal": 2,
        "gpuAllocated": 1, "devices": [{"state": "whole"}, {"state": "free"}],
    }  # fmt: skip
    rest = FakeRest({"cluster": cluster, "queues": TREE, "nodes": [node]})

    output = run(rest, "top").output

    assert "GPUs 6 of 8 allocated, 2 free" in output
    assert "2 running, 1 pending (1 DeviceShortage)" in output
    assert ["n1", "H100", "█·", "1/2", "cordoned"] in lines_of(output)
    bar = next(row for row in lines_of(output) if row and row[0] == "vision")[1]
    assert bar == "━" * 18 + "─" * 6


def test_what_if_sends_the_edit_and_prints_the_verdict():
    eviction = {
        "cycle": 1, "workload": "team/pg", "pod": "p", "queue": "audio", "node": "n1", "gpu": 2,
        "action": "reclaim", "evictor": "team/new", "withoutEdits": False,
    }  # fmt: skip
    answer = simulation("evicts", evictions=[eviction, {**eviction, "pod": "q"}])
    rest = FakeRest({"simulations": answer})

    result = run(rest, "queues", "what-if", "vision", "quota.gpu=8", "limit.memory=64Gi")

    assert result.exit_code == 0
    edit = {"quota": {"gpu": 8}, "limit": {"memoryBytes": 64 << 30}}
    assert rest.sent[0][2] == {"cycles": 3, "queues": [{"name": "vision", "edit": edit}]}
    assert "Preview: evicts" in result.output
    assert ["1", "team/pg", "2", "4", "n1", "team/new"] in lines_of(result.output)


@pytest.mark.parametrize(("verdict", "code"), [("evicts", 3), ("safe", 0), ("invalid", 1)])
def test_a_pipeline_can_fail_on_evictions(verdict: str, code: int):
    rest = FakeRest({"simulations": simulation(verdict)})

    result = run(rest, "queues", "what-if", "vision", "quota.gpu=1", "--fail-on-evictions")

    assert result.exit_code == code


WRITTEN = {"changed": True, "diff": [{"pointer": "/quota/gpu", "before": 4, "after": 8}]}


def set_rest(verdict: str) -> FakeRest:
    totals = {"evictedOnlyByEdits": 5}
    return FakeRest(
        {
            "queues/vision": queue("vision") | WRITTEN,
            "simulations": simulation(verdict, totals=totals),
        }
    )


def test_set_previews_and_then_writes_the_version_it_has_read():
    rest = set_rest("safe")

    result = run(rest, "queues", "set", "vision", "quota.gpu=8")

    assert rest.sent[-1] == (
        "PATCH",
        "queues/vision",
        {"quota": {"gpu": 8}},
        {"If_Match": '"1-abc"'},
    )
    assert ["quota/gpu", "4", "8"] in lines_of(result.output)


@pytest.mark.parametrize(("words", "stdin", "is_written"), [((), "n\n", False), ((), "y\n", True), (("--yes",), "", True)])  # fmt: skip
def test_set_asks_before_it_evicts(words: tuple[str, ...], stdin: str, is_written: bool):
    rest = set_rest("evicts")

    result = run(rest, "queues", "set", "vision", "quota.gpu=8", *words, stdin=stdin)

    assert (rest.sent[-1][0] == "PATCH") == is_written
    assert ("The edit evicts 5 pods" in result.output) == (not words)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("quota.gpus=4", "expected FIELD=VALUE with a field of quota.gpu"),
        ("quota.gpu", "expected FIELD=VALUE"),
        ("quota.gpu=many", "expected an amount such as 4 or 64Gi, or unlimited, or unset"),
        ("weight.gpu=unlimited", "expected an amount"),
        ("priority=high", "expected a whole number, or unset"),
    ],
)
def test_a_wrong_field_is_refused_before_anything_is_sent(word: str, message: str):
    rest = FakeRest({"queues/vision": queue("vision")})

    result = run(rest, "queues", "what-if", "vision", word)

    assert result.exit_code == 2
    assert message in result.output.replace("\n", " ")
    assert rest.sent == []


def test_doctor_names_the_faults_and_ends_with_1():
    health = {
        "status": "unready",
        "faults": [{"check": "scheduling", "fault": "no cycle", "since": None}],
        "processes": [{"name": "web", "fault": "", "restarts": 2, "hangs": 1}],
        "setAside": [],
    }

    result = run(FakeRest({"health": health}), "doctor")

    assert result.exit_code == 1
    assert ["scheduling", "no", "cycle", "-"] in lines_of(result.output)
    assert ["web", "2", "1"] in lines_of(result.output)
    assert "docs/operations/when-something-stands-still.md" in result.output


def test_doctor_ends_with_0_if_everything_works():
    healthy = {"status": "ok", "faults": [], "processes": [], "setAside": []}

    result = run(FakeRest({"health": healthy}), "doctor")

    assert (result.exit_code, result.output.strip()) == (0, "Everything works.")
