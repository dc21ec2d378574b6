"""The pod grouper's role allows to read every kind with a rule; objects that it may not read get no rule, without an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from queues.grouping.engine.kinds import plural_of
from queues.grouping.engine.table import READABLE, TABLE

ROLE = Path(__file__).resolve().parents[3] / "deploy" / "rbac" / "pod-grouper.yaml"


def allowed(verb: str) -> set[tuple[str, str]]:
    """Return (group, plural) of the kinds on which the role allows a verb."""
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
    required = {(group, plural_of(kind)) for group, _, kind in TABLE}
    assert required - allowed("get") == set()


def test_offline_grouping_reads_the_same_kinds_as_the_role_allows() -> None:
    workload_groups = {group for group, _ in READABLE} - {""}
    granted = {pair for pair in allowed("get") if pair[0] in workload_groups} - {
        ("run.ai", "kartas")
    }
    assert {(group, plural_of(kind)) for group, kind in READABLE} - {("", "pods")} == granted


def test_objects_that_rules_look_up_may_be_read() -> None:
    required = {
        ("scheduler.grove.io", "podgangs"),
        ("serving.knative.dev", "revisions"),
        ("run.ai", "kartas"),
        ("scheduling.k8s.io", "priorityclasses"),
        ("", "configmaps"),
        ("", "namespaces"),
    }
    assert required - allowed("get") == set()
    watched_kinds = {
        ("run.ai", "kartas"),
        ("scheduling.k8s.io", "workloads"),
        ("scheduling.k8s.io", "podgroups"),
    }
    assert watched_kinds - allowed("watch") == set()


def test_the_role_may_set_blocking_owner_references_and_may_not_delete_pod_groups() -> None:
    groups = {group for group, _, kind in TABLE if kind != "Pod"}
    assert {(group, "*/finalizers") for group in groups} - allowed("update") == set()
    assert ("scheduling.run.ai", "podgroups") not in allowed("delete")
