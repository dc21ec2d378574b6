"""The time-based simulator: two queues that both want everything take turns."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

from scheduler.tools.simulate.fair_share import SimulationInputError
from scheduler.tools.simulate.over_time import Row, read_time_input, simulate_over_time, write_csv


def simulation(**more) -> dict:
    return {
        "Cycles": 30,
        "windowsize": 8,
        "Nodes": [{"GPUs": 16, "Count": 1}],
        "Queues": [
            {"Name": "root"},
            {"Name": "a", "Parent": "root"},
            {"Name": "b", "Parent": "root"},
        ],
        "Jobs": {
            "a": {"GPUs": 16, "NumPods": 1, "NumJobs": 3},
            "b": {"GPUs": 16, "NumPods": 1, "NumJobs": 3},
        },
    } | more


def turns(rows: list[Row], queue: str) -> list[float]:
    return [row.allocation for row in rows if row.queue == queue]


def test_queues_that_want_everything_take_turns() -> None:
    rows = simulate_over_time(read_time_input(simulation()))
    a, b = turns(rows, "a"), turns(rows, "b")
    assert all(left + right <= 16 for left, right in zip(a, b, strict=True))
    assert max(a) == max(b) == 16
    starts = [i for i in range(1, 30) if a[i] == 16 and a[i - 1] == 0]
    assert starts == [11, 29]
    assert turns(rows, "root") == [left + right for left, right in zip(a, b, strict=True)]


def test_without_k_the_first_keeps_what_it_has() -> None:
    rows = simulate_over_time(read_time_input(simulation(KValue=0)))
    assert turns(rows, "a") == [16.0] * 30
    assert turns(rows, "b") == [0.0] * 30


def test_equal_input_gives_equal_rows() -> None:
    assert simulate_over_time(read_time_input(simulation())) == simulate_over_time(
        read_time_input(simulation())
    )


def test_rows_are_written_with_six_decimals() -> None:
    assert (
        write_csv([Row(0, "a", 1, 2 / 3)])
        == "Time,QueueID,Allocation,FairShare\n0,a,1.000000,0.666667\n"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Nodes": []}, "expected Nodes, got none"),
        ({"Cycles": 0}, "Cycles and WindowSize above 0"),
        ({"Jobs": {"c": {}}}, "queue 'c' is not one of root, a, b"),
        ({"Queues": [{"Parent": "x"}]}, "expected a name"),
        ({"Queues": [{"Name": "a", "Parent": "x"}], "Jobs": {}}, "its parent 'x' is not there"),
        ({"Nodes": [{"GPUs": "many"}]}, "expected a number for gpus, got 'many'"),
        ({"Nodes": [4]}, "node: expected a mapping, got int"),
    ],
)
def test_bad_input_is_refused(change, message) -> None:
    with pytest.raises(SimulationInputError, match=message):
        read_time_input(simulation(**change))


def test_the_commands_read_files_and_print(tmp_path, capsys) -> None:
    shares = tmp_path / "shares.json"
    shares.write_text('{"totalResource": {"GPU": 4}, "queues": [{"uid": "q"}]}')
    call_command("simulate", "fair-share", str(shares))
    assert '"gpu": 4.0' in capsys.readouterr().out
    small = tmp_path / "small.yaml"
    small.write_text("Cycles: 2\nNodes: [{GPUs: 1}]\nQueues: [{Name: q}]\n")
    call_command("simulate", "time", str(small), output="-")
    assert capsys.readouterr().out.splitlines() == [
        "Time,QueueID,Allocation,FairShare",
        "0,q,0.000000,0.000000",
        "1,q,0.000000,0.000000",
    ]
    out = tmp_path / "out.csv"
    call_command("simulate", "time", str(small), output=str(out))
    assert len(out.read_text().splitlines()) == 3
    with pytest.raises(CommandError, match="No such file"):
        call_command("simulate", "time", str(tmp_path / "none.yaml"))
