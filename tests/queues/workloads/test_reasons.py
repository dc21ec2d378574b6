"""The dominant reason of a workload: the code of the first that applies, and the text of the object it is from."""

from __future__ import annotations

from typing import Any

import pytest

from queues.workloads.reasons import Facts, Standing, dominant

OVER_LIMIT = {
    "message": "OverLimit: team quota has reached the allowable limit of GPUs. (...)",
    "reason": "Unschedulable",
    "reasons": [{"reason": "OverLimit", "message": "team quota has reached …"}],
    "since": "2026-11-29T12:00:00+00:00",
}
BEHIND = Standing(code="OrderBehind", text="others took it", position=4)
SHORT = Standing(code="DeviceShortage")


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ({"queue": ""}, "QueueDoesNotExist"),
        ({"is_queue_known": False, "conditions": [OVER_LIMIT]}, "QueueDoesNotExist"),
        ({"queue_problem": "parent queue 'x' does not exist"}, "QueueOrphan"),
        ({"alive": 2, "min_member": 3}, "GroupIncomplete"),
        ({"alive": 2, "min_member": 3, "queue": ""}, "GroupIncomplete"),
        ({"alive": 0, "min_member": 0}, "GroupIncomplete"),
        ({"alive": 3, "gated": 1, "min_member": 3}, "Gated"),
        ({"gated": 1, "is_backed_off": True}, "Held"),
        ({"gated": 1, "hold": "Held by a person"}, "Held"),
        ({"gated": 1, "is_backed_off": True, "is_queue_known": False}, "QueueDoesNotExist"),
        ({"bind_error": "no such device", "conditions": [OVER_LIMIT]}, "BindFailing"),
        ({"pod_reason": "BindingError", "pod_message": "timeout"}, "BindFailing"),
        ({"conditions": [OVER_LIMIT]}, "OverLimit"),
        ({"conditions": [OVER_LIMIT], "standing": BEHIND}, "OrderBehind"),
        ({"bind_error": "an old one", "standing": SHORT}, "DeviceShortage"),
        ({"pod_message": "1 node(s) had untolerated taint(s)."}, "NoNodeFits"),
        ({"pod_message": "OverLimit: team quota has reached …"}, "OverLimit"),
        ({}, "NotEvaluated"),
    ],
)
def test_the_first_reason_that_applies_wins(facts: dict[str, Any], code: str) -> None:
    assert dominant(Facts(**{"queue": "team", "alive": 1, **facts})).code == code


def test_the_text_and_time_are_those_of_the_condition() -> None:
    reason = dominant(Facts(queue="team", alive=1, conditions=[OVER_LIMIT], standing=SHORT))
    assert reason.text == OVER_LIMIT["message"]
    assert reason.since is not None
    assert reason.since.isoformat() == "2026-11-29T12:00:00+00:00"


def test_a_reason_without_a_text_in_the_cluster_uses_the_text_of_the_standing() -> None:
    reason = dominant(Facts(queue="team", alive=1, conditions=[OVER_LIMIT], standing=BEHIND))
    assert reason.text == "others took it"


def test_a_group_that_is_no_longer_tried_names_its_pool_and_reason() -> None:
    facts = Facts(queue="q", alive=1, is_backed_off=True, pool="a100", conditions=[OVER_LIMIT])
    assert dominant(facts).text == (
        "Not retried on node pool 'a100', because its schedulingBackoff allows one attempt. "
        "OverLimit: team quota has reached the allowable limit of GPUs. (...)"
    )


def test_an_incomplete_group_gets_the_schedulers_message() -> None:
    assert dominant(Facts(queue="q", alive=2, gated=1, min_member=4)).text == (
        "Job is not ready for scheduling. Waiting for 4 pods, currently 2 exist, 1 are gated"
    )
