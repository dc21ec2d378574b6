"""The pod grouper's role lets it read every kind that it has a rule for; a kind it may not read it silently walks past."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from queues.grouping.engine.kinds import plural_of
from queues.grouping.engine.table import READABLE, TABLE

ROLE = Path(__file__).resolve().parents[3] / "deploy" / "rbac" / "pod-grouper.yaml"


def allowed(verb: str) -> set[tuple[str, str]]:
    """Return (group, plural) of everything the role may do this to."""
    bodies: list[dict[str, Any]] = list(yaml.safe_load_all(ROLE.read_text()))
    (role,) = [body for body in bodies if body["kind"] == "ClusterRole"]
    return {
        (group, resource)
        for rule in role["rules"]
        if verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def test_every_kind_of_the_table_may_be_read() -> None:
    wanted = {(group, plural_of(kind)) for group, _, kind in TABLE}
    assert wanted - allowed("get") == set()


def test_the_kinds_that_offline_grouping_takes_as_readable_are_those_of_the_role() -> None:
    of_workloads = {group for group, _ in READABLE} - {""}
    covered = {pair for pair in allowed("get") if pair[0] in of_workloads} - {("run.ai", "kartas")}
    assert {(group, plural_of(kind)) for group, kind in READABLE} - {("", "pods")} == covered


def test_objects_that_rules_look_up_may_be_read() -> None:
    wanted = {
        ("scheduler.grove.io", "podgangs"),
        ("serving.knative.dev", "revisions"),
        ("run.ai", "kartas"),
        ("scheduling.k8s.io", "priorityclasses"),
        ("", "configmaps"),
        ("", "namespaces"),
    }
    assert wanted - allowed("get") == set()
    watched = {
        ("run.ai", "kartas"),
        ("scheduling.k8s.io", "workloads"),
        ("scheduling.k8s.io", "podgroups"),
    }
    assert watched - allowed("watch") == set()


def test_owners_may_be_named_as_such_and_groups_never_deleted() -> None:
    groups = {group for group, _, kind in TABLE if kind != "Pod"}
    assert {(group, "*/finalizers") for group in groups} - allowed("update") == set()
    assert ("scheduling.run.ai", "podgroups") not in allowed("delete")
