"""The texts of the five conditions."""

from __future__ import annotations

from kaiweb.operator.conditions import ObjectState, beginning, conditions
from kube.conditions import ConditionState


def test_an_object_without_faults_gets_five_good_conditions() -> None:
    assert conditions(ObjectState(generation=3)) == {
        "Reconciling": ConditionState(
            "False", "reconciled", "Reconciliation completed successfully", 3
        ),
        "Deployed": ConditionState("True", "deployed", "Resources deployed", 3),
        "Available": ConditionState("True", "available", "System available", 3),
        "DependenciesFulfilled": ConditionState(
            "True", "dependencies_fulfilled", "Dependencies are fulfilled", 3
        ),
        "Ready": ConditionState("True", "ready", "System is ready", 3),
    }


def test_a_generation_that_was_not_looked_at_is_being_reconciled() -> None:
    assert beginning(2) == {
        "Reconciling": ConditionState("True", "reconciling", "Reconciliation in progress", 2)
    }


def test_a_shard_the_supervisor_has_not_adopted_is_not_deployed() -> None:
    states = conditions(ObjectState(generation=1, is_applied=False))
    assert states["Reconciling"] == beginning(1)["Reconciling"]
    assert states["Deployed"] == ConditionState(
        "False", "deployed", "Resources not deployed yet", 1
    )
    assert states["Ready"] == ConditionState("False", "not_ready", "System not ready", 1)


def test_every_missing_component_is_named() -> None:
    states = conditions(ObjectState(generation=1, missing=["PodGrouper", "Binder"]))
    text = "PodGrouper: not available\nBinder: not available"
    assert states["Available"] == ConditionState("False", "available", text, 1)
    assert (states["Deployed"].status, states["Ready"].status) == ("True", "False")


def test_invalid_settings_are_reported_in_the_condition_deployed() -> None:
    states = conditions(ObjectState(generation=1, problem="kValue: expected x, got y"))
    assert states["Deployed"] == ConditionState("False", "deployed", "kValue: expected x, got y", 1)
    assert (states["Reconciling"].status, states["Available"].status) == ("True", "True")
    assert states["Ready"].status == "False"


def test_a_missing_dependency_keeps_it_from_being_ready() -> None:
    states = conditions(
        ObjectState(generation=1, unmet=["KAI-prometheus is missing prometheus operator"])
    )
    text = "\nKAI-prometheus is missing prometheus operator"
    assert states["DependenciesFulfilled"] == ConditionState(
        "False", "dependencies_missing", text, 1
    )
    assert states["Ready"].status == "False"
