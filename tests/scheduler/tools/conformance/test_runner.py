"""The runner and its command: what is found in a folder, counted, printed."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from scheduler.tools.conformance.runner import run_folder
from scheduler.tools.conformance.tables import TABLES, judge_table
from tests.scheduler.scenarios.test_scenarios import FOLDER

SCENARIO = json.loads((FOLDER / "preempt-takes-elastic-steps.json").read_text())
FLAT = {
    "schema": "kai-conformance-table/1",
    "table": "generated_flat_division",
    "cases": [
        {
            "name": "right",
            "queues": {"a": {"priority": 1}},
            "resources": {
                "gpu": {
                    "total": 4,
                    "queues": {"a": {"quota": 1, "request": 1, "limit": -1}},
                    "expected_fair_share": {"a": 1},
                }
            },
        },
        {
            "name": "wrong",
            "queues": {"a": {}},
            "resources": {"gpu": {"total": 4, "queues": {}, "expected_fair_share": {"a": 1}}},
        },
        {"name": "broken"},
    ],
}


@pytest.fixture
def folder(tmp_path):
    inner = tmp_path / "scenarios" / "group"
    inner.mkdir(parents=True)
    (inner / "good.json").write_text(json.dumps(SCENARIO))
    strange = SCENARIO | {
        "id": "group/strange",
        "surprise": {"x": 1},
        "expected": {"jobs": {"high": {"status": "running"}}},
    }
    (inner / "strange.json").write_text(json.dumps(strange))
    silent = {key: value for key, value in SCENARIO.items() if key not in ("expected", "id")}
    (inner / "silent.json").write_text(json.dumps(silent))
    (tmp_path / "table.json").write_text(json.dumps(FLAT))
    (tmp_path / "other.json").write_text("[1, 2]")
    (tmp_path / "more.json").write_text('{"schema": "something else"}')
    (tmp_path / "README.md").write_text("not a case")
    return tmp_path


def test_scenarios_and_rows_are_counted_and_failures_say_what_came(folder) -> None:
    report = run_folder(folder)
    assert report.summary == "2 of 5"
    assert {
        verdict.case: [miss.where for miss in verdict.mismatches] for verdict in report.failing
    } == {
        "group/strange": ["end: status of high-0", "end: status of high-1"],
        "generated_flat_division#1 wrong": ["gpu fair share of a"],
        "generated_flat_division#2 broken": ["run"],
    }
    assert sorted(report.actual) == ["group/strange", "own/preempt-takes-elastic-steps", "silent"]


def test_the_command_prints_failures_and_ends_with_the_count(folder, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        call_command("conformance", str(folder))
    lines = capsys.readouterr().out.splitlines()
    assert ended.value.code == 1
    assert lines[0] == "FAIL group/strange"
    assert lines[1] == "  end: status of high-0: expected 'running', got 'pipelined'"
    assert lines[-1] == "2 of 5"


def test_the_command_prints_json(folder, capsys) -> None:
    with pytest.raises(SystemExit):
        call_command("conformance", str(folder), json=True)
    printed = json.loads(capsys.readouterr().out)
    assert (printed["passed"], printed["total"], printed["summary"]) == (2, 5, "2 of 5")
    assert printed["cases"]["own/preempt-takes-elastic-steps"] is True
    assert printed["failing"][0]["case"] == "group/strange"


def test_the_command_prints_what_came_also_without_expectations(folder, capsys) -> None:
    call_command("conformance", str(folder), actual=True)
    printed = json.loads(capsys.readouterr().out)
    silent = printed["silent"]
    assert silent["tasks"]["elastic-3"] == {"status": "releasing", "node": "n0"}
    assert silent["nodes"] == {"n0": {"idle_gpus": 0.0, "releasing_gpus": 0.0}}
    assert [event["kind"] for event in silent["events_by_round"][0]] == [
        "evict",
        "evict",
        "pipeline",
        "pipeline",
    ]


def test_one_file_will_do_and_a_missing_one_is_named(folder) -> None:
    assert run_folder(folder / "table.json").summary == "1 of 3"
    with pytest.raises(CommandError, match="no folder or file at"):
        call_command("conformance", str(folder / "nowhere"))


def test_a_scenario_that_cannot_be_read_counts_as_failed(tmp_path) -> None:
    broken = SCENARIO | {"cluster": {"nodes": [{"name": "n0"}, {"name": "n0"}], "queues": []}}
    (tmp_path / "broken.json").write_text(json.dumps(broken))
    report = run_folder(tmp_path)
    assert report.summary == "0 of 1"
    assert "node 'n0' is in the snapshot twice" in report.failing[0].mismatches[0].actual


def test_an_unknown_table_fails_by_name() -> None:
    [verdict] = judge_table({"table": "surprise", "cases": [{"name": "x"}]})
    assert verdict.mismatches[0].actual == "surprise"
    assert len(TABLES) == 17


def test_observations_judge_what_states_no_expectation(tmp_path) -> None:
    observed = {
        "tasks": {
            "elastic-0": {"status": "running", "node": "n0"},
            "elastic-3": {"status": "running", "node": "n0"},
        }
    }
    silent = {key: value for key, value in SCENARIO.items() if key != "expected"} | {
        "observed": observed
    }
    (tmp_path / "silent.json").write_text(json.dumps(silent))
    assert run_folder(tmp_path).summary == "0 of 0"
    report = run_folder(tmp_path, judge_observations=True)
    assert [miss.where for miss in report.failing[0].mismatches] == ["observed elastic-3"]
