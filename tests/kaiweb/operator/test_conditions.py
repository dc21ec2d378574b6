"""The texts of the five conditions."""

from __future__ import annotations

from kaiweb.operator.conditions import Outlook, beginning, conditions
from kube.conditions import Said


def test_all_is_well() -> None:
    assert conditions(Outlook(generation=3)) == {
        "Reconciling": Said("False", "reconciled", "Reconciliation completed successfully", 3),
        "Deployed": Said("True", "deployed", "Resources deployed", 3),
        "Available": Said("True", "available", "System available", 3),
        "DependenciesFulfilled": Said(
            "True", "dependencies_fulfilled", "Dependencies are fulfilled", 3
        ),
        "Ready": Said("True", "ready", "System is ready", 3),
    }


def test_a_generation_that_was_not_looked_at_is_being_reconciled() -> None:
    assert beginning(2) == {
        "Reconciling": Said("True", "reconciling", "Reconciliation in progress", 2)
    }


def test_what_the_supervisor_has_not_heard_of_is_not_deployed() -> None:
    said = conditions(Outlook(generation=1, is_adopted=False))
    assert said["Reconciling"] == beginning(1)["Reconciling"]
    assert said["Deployed"] == Said("False", "deployed", "Resources not deployed yet", 1)
    assert said["Ready"] == Said("False", "not_ready", "System not ready", 1)


def test_every_missing_component_is_named() -> None:
    said = conditions(Outlook(generation=1, missing=["PodGrouper", "Binder"]))
    text = "PodGrouper: not available\nBinder: not available"
    assert said["Available"] == Said("False", "available", text, 1)
    assert (said["Deployed"].status, said["Ready"].status) == ("True", "False")


def test_settings_that_cannot_be_used_are_told_where_kai_tells_a_failed_deployment() -> None:
    said = conditions(Outlook(generation=1, problem="kValue: expected x, got y"))
    assert said["Deployed"] == Said("False", "deployed", "kValue: expected x, got y", 1)
    assert (said["Reconciling"].status, said["Available"].status) == ("True", "True")
    assert said["Ready"].status == "False"


def test_a_missing_dependency_keeps_it_from_being_ready() -> None:
    said = conditions(
        Outlook(generation=1, unmet=["KAI-prometheus is missing prometheus operator"])
    )
    text = "\nKAI-prometheus is missing prometheus operator"
    assert said["DependenciesFulfilled"] == Said("False", "dependencies_missing", text, 1)
    assert said["Ready"].status == "False"
