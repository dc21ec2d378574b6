"""The dominant reason: the first that applies, as a code, in the words of the cluster's objects."""

from __future__ import annotations

from typing import Any

import pytest

from queues.reasons import Facts, code_of_text, dominant

OVER_LIMIT = {
    "message": "OverLimit: team quota has reached the allowable limit of GPUs. (...)",
    "reason": "Unschedulable",
    "reasons": [{"reason": "OverLimit", "message": "team quota has reached …"}],
    "since": "2026-11-29T12:00:00+00:00",
}


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ({"queue": ""}, "QueueDoesNotExist"),
        ({"is_queue_known": False, "conditions": [OVER_LIMIT]}, "QueueDoesNotExist"),
        ({"queue_problem": "parent queue 'x' does not exist"}, "QueueOrphan"),
        ({"alive": 2, "min_member": 3}, "GroupIncomplete"),
        ({"alive": 0, "min_member": 0}, "GroupIncomplete"),
        ({"alive": 3, "gated": 1, "min_member": 3}, "Gated"),
        ({"bind_error": "no such device", "conditions": [OVER_LIMIT]}, "BindFailing"),
        ({"pod_reason": "BindingError", "pod_message": "timeout"}, "BindFailing"),
        ({"conditions": [OVER_LIMIT]}, "OverLimit"),
        ({"pod_message": "1 node(s) had untolerated taint(s)."}, "NoNodeFits"),
        ({}, "NotEvaluated"),
    ],
)
def test_the_first_reason_that_applies_wins(facts: dict[str, Any], code: str) -> None:
    assert dominant(Facts(**{"queue": "team", "alive": 1, **facts})).code == code


def test_the_text_and_time_are_those_of_the_condition() -> None:
    reason = dominant(Facts(queue="team", alive=1, conditions=[OVER_LIMIT]))
    assert reason.text == OVER_LIMIT["message"]
    assert reason.since is not None
    assert reason.since.isoformat() == "2026-11-29T12:00:00+00:00"


def test_an_incomplete_group_is_told_in_the_schedulers_words() -> None:
    assert dominant(Facts(queue="q", alive=2, gated=1, min_member=4)).text == (
        "Job is not ready for scheduling. Waiting for 4 pods, currently 2 exist, 1 are gated"
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("3 node(s) didn't have enough resources: GPUs.", "DeviceShortage"),
        (
            "Max 8 GPU resources available in a single node in the default node-pool is topped at 8",
            "NeverFits",
        ),
        ("No node in the default node-pool has GPU resources", "NeverFits"),
        ("topology dc, requirement rack couldn't be satisfied for job <a/b>", "TopologyFragmented"),
        ("node(s) didn't find available persistent volumes to bind", "VolumeOrClaim"),
        ("node(s) didn't match Pod's node affinity/selector", "NoNodeFits"),
        (
            "NonPreemptibleOverQuota: Non-preemptible workload is over quota.",
            "NonPreemptibleOverQuota",
        ),
    ],
)
def test_fit_errors_have_a_code(text: str, code: str) -> None:
    assert code_of_text("Unschedulable", text) == code
