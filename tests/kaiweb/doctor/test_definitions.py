"""Definitions that are missing, KAI's, or not served."""

from __future__ import annotations

import copy
from typing import Any

from kaiweb import install
from kaiweb.doctor.definitions import check_definitions, check_versions
from kube.resources import CRDS, NODES
from tests.fakes.gateway import FakeGateway
from tests.kaiweb.doctor.cluster import DEPLOY, body, lines


def our_definitions() -> list[dict[str, Any]]:
    """Our definitions as a server stores and serves them."""
    stored = [copy.deepcopy(dict(item)) for item in install.documents(DEPLOY / "crds")]
    for item in stored:
        item["status"] = {
            "conditions": [{"type": "Established", "status": "True"}],
            "storedVersions": [item["spec"]["versions"][0]["name"]],
        }
    return stored


def queue_definition(items: list[dict[str, Any]]) -> dict[str, Any]:
    (match,) = (item for item in items if item["spec"]["names"]["kind"] == "Queue")
    return match


def cluster(items: list[dict[str, Any]]) -> FakeGateway:
    gateway = FakeGateway()
    gateway.seed(CRDS, *items)
    return gateway


def test_our_own_definitions_cause_no_finding() -> None:
    assert lines(check_definitions, cluster(our_definitions())) == []


def test_a_missing_definition_is_a_fault() -> None:
    items = [item for item in our_definitions() if item["spec"]["names"]["kind"] != "Topology"]
    assert lines(check_definitions, cluster(items)) == [
        "fault: definition topologies.kai.scheduler: does not exist"
    ]


def test_definitions_of_kai_are_told_from_ours_by_their_fields() -> None:
    items = our_definitions()
    version = queue_definition(items)["spec"]["versions"][0]
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["new"] = {
        "type": "string"
    }
    assert lines(check_definitions, cluster(items)) == [
        "warning: definition queues.scheduling.run.ai: the fields of version v2 are not ours, probably KAI's"
    ]


def test_a_conversion_by_a_webhook_that_is_gone_is_a_fault() -> None:
    items = our_definitions()
    queue_definition(items)["spec"]["conversion"] = {"strategy": "Webhook"}
    assert lines(check_definitions, cluster(items)) == [
        "fault: definition queues.scheduling.run.ai: asks a webhook for conversion, which nobody answers"
        " without KAI's operator"
    ]


def test_versions_that_are_not_served_or_only_stored_are_named() -> None:
    items = our_definitions()
    definition = queue_definition(items)
    definition["spec"]["versions"][0]["served"] = False
    definition["status"]["storedVersions"] = ["v1", "v2"]
    assert lines(check_definitions, cluster(items)) == [
        "fault: definition queues.scheduling.run.ai: version v2 is not served",
        "warning: definition queues.scheduling.run.ai: objects may be stored in version v1, which we do not have",
    ]


def test_nodes_that_are_old_or_far_apart_are_named() -> None:
    gateway = FakeGateway()
    for name, version in (("old", "v1.29.4"), ("new", "v1.33.0+k3s1")):
        status = {"nodeInfo": {"kubeletVersion": version}}
        gateway.seed(NODES, body(NODES, name, status=status))
    assert lines(check_versions, gateway) == [
        "warning: node old: runs Kubernetes 1.29; expected 1.31 or newer",
        "warning: nodes: run Kubernetes 1.29 to 1.33; Kubernetes supports three versions apart",
    ]
