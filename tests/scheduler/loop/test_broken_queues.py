"""A broken part of the queue tree keeps only its own work waiting."""

from __future__ import annotations

from typing import Any

import pytest

from kube.resources import BINDREQUESTS, QUEUES
from tests.scheduler.load.objects import queue
from tests.scheduler.loop.harness import FREE, harness

RESOURCES = dict.fromkeys(("cpu", "memory", "gpu"), FREE)


def amounts(quota: float) -> dict[str, Any]:
    return {**RESOURCES, "gpu": {"quota": quota, "limit": -1, "overQuotaWeight": 1}}


CASES: dict[str, list[dict[str, Any]]] = {
    "a parent that is missing": [queue("bad", resources=RESOURCES, parentQueue="nowhere")],
    "two queues below each other": [
        queue("bad", resources=RESOURCES, parentQueue="worse"),
        queue("worse", resources=RESOURCES, parentQueue="bad"),
    ],
    "a queue below itself": [queue("bad", resources=RESOURCES, parentQueue="bad")],
}


@pytest.mark.parametrize("case", CASES)
def test_work_of_other_queues_starts_beside(case: str) -> None:
    with harness() as cluster:
        cluster.cluster().seed(QUEUES, *CASES[case])
        cluster.pending("healthy").pending("stuck", queue="bad")

        cluster.cycle()

        bound = {key[2] for key in cluster.gateway.objects if key[0] == BINDREQUESTS}
        assert bound == {"healthy-0"}
        assert cluster.group_conditions("stuck")[0]["message"].startswith("QueueDoesNotExist: ")


def test_children_with_more_quota_than_their_parent_stop_nobody() -> None:
    with harness() as cluster:
        cluster.cluster().seed(
            QUEUES,
            queue("small", resources=amounts(1)),
            queue("a", resources=amounts(6), parentQueue="small"),
            queue("b", resources=amounts(6), parentQueue="small"),
        )
        cluster.pending("healthy").pending("greedy", queue="a")

        cluster.cycle()

        bound = {key[2] for key in cluster.gateway.objects if key[0] == BINDREQUESTS}
        assert bound == {"healthy-0", "greedy-0"}
