"""A list of conditions is brought up to date as a whole and keeps what is not ours."""

from __future__ import annotations

from datetime import UTC, datetime

from kube.conditions import ConditionState, merged_conditions
from kube.objects.meta import Condition

EARLY = datetime(2026, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 1, 1, 1, 2, 3, tzinfo=UTC)


def _stored(status: str = "True", message: str = "up", generation: int = 1) -> Condition:
    return Condition(
        type="Available",
        status=status,
        reason="available",
        message=message,
        observed_generation=generation,
        last_transition_time=EARLY,
    )


def _state(
    status: str = "True", message: str = "up", generation: int = 1
) -> dict[str, ConditionState]:
    return {"Available": ConditionState(status, "available", message, generation)}


def test_the_result_is_none_when_nothing_differs() -> None:
    assert merged_conditions([_stored()], _state(), NOW) is None


def test_the_transition_time_changes_with_the_status_and_not_with_the_message() -> None:
    changed_status = merged_conditions([_stored()], _state("False", "down"), NOW)
    assert changed_status == [
        {
            "type": "Available",
            "status": "False",
            "reason": "available",
            "message": "down",
            "lastTransitionTime": "2026-01-01T01:02:03Z",
            "observedGeneration": 1,
        }
    ]
    changed_message = merged_conditions([_stored()], _state(message="all up"), NOW)
    assert changed_message is not None
    assert changed_message[0]["lastTransitionTime"] == "2026-01-01T00:00:00Z"


def test_a_new_observed_generation_alone_is_written() -> None:
    conditions = merged_conditions([_stored()], _state(generation=2), NOW)
    assert conditions is not None
    assert conditions[0]["observedGeneration"] == 2


def test_conditions_of_other_types_come_first_and_unchanged() -> None:
    foreign = Condition(type="Theirs", status="True", last_transition_time=EARLY)
    conditions = merged_conditions([foreign], _state(generation=0), NOW)
    assert conditions is not None
    assert [item["type"] for item in conditions] == ["Theirs", "Available"]
    assert (conditions[0]["reason"], conditions[0]["message"]) == ("", "")
    assert "observedGeneration" not in conditions[1]
