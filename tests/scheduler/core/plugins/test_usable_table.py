"""The tables of the typical mix agree with the definition, for arrays of nodes and for single ones."""

from __future__ import annotations

import random

import numpy as np
import pytest

from scheduler.core.plugins.fragmentation.mix import TypicalRequest
from scheduler.core.plugins.fragmentation.usable import UsableTable

NODES, DEVICES = 6, 4


def draw_requests(draw: random.Random, count: int) -> list[TypicalRequest]:
    return [
        TypicalRequest(
            cpu_milli=float(draw.choice((500, 1000, 2000, 8000))),
            share=draw.choice((0.1, 0.25, 0.5, 0.81, 1.0))
            if (devices := draw.choice((1, 1, 2, 4))) == 1
            else 1.0,
            devices=devices,
            weight=draw.random(),
            nodes=np.array([draw.random() < 0.7 for _ in range(NODES)]),
        )
        for _ in range(count)
    ]


def by_definition(
    requests: list[TypicalRequest], node: int, cpu: float, left: list[float]
) -> float:
    usable = 0.0
    for request in requests:
        large = [amount for amount in left if amount >= request.share]
        fits = request.nodes[node] and cpu >= request.cpu_milli
        if fits and len(large) >= request.devices:
            usable += request.weight * sum(large)
    return usable


@pytest.mark.parametrize("seed", range(5))
def test_the_tables_return_what_the_definition_says(seed: int) -> None:
    draw = random.Random(seed)
    requests = draw_requests(draw, 12)
    table = UsableTable(requests, NODES)
    left = [
        [draw.choice((0.0, 0.1, 0.3, 0.5, 0.9, 1.0)) for _ in range(DEVICES)] for _ in range(NODES)
    ]
    cpu = [float(draw.choice((0, 500, 999, 1000, 9000))) for _ in range(NODES)]
    expected = [by_definition(requests, node, cpu[node], left[node]) for node in range(NODES)]
    amounts = np.array(left)
    usable = table.usable(np.arange(NODES), np.array(cpu), amounts, table.levels(amounts))
    assert usable.tolist() == pytest.approx(expected)
    node_by_node = [table.usable_on(node, cpu[node], left[node]) for node in range(NODES)]
    assert node_by_node == pytest.approx(expected)


def test_without_any_request_for_gpus_nothing_is_of_use() -> None:
    table = UsableTable([], NODES)
    assert table.usable_on(0, 1000.0, [1.0]) == 0.0
