"""What the pod grouper writes and what it leaves to others."""

from __future__ import annotations

import copy
from typing import Any

from queues.grouping.base import Metadata, Settings, SubGroup, Topology
from queues.grouping.engine.write import pod_group_body, pod_group_patch, pod_patch
from queues.grouping.offline.report import merge

SETTINGS = Settings()


def metadata(**changes: Any) -> Metadata:
    fields: dict[str, Any] = {
        "name": "pg-j-u",
        "namespace": "lab",
        "owner": {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u"},
        "labels": {"kai.scheduler/queue": "a", "team": "x"},
        "annotations": {"note": "1"},
        "queue": "a",
    }
    return Metadata(**(fields | changes))


def test_a_group_is_created_with_everything_it_asks_for() -> None:
    group_metadata = metadata(
        min_sub_group=2,
        preemptibility="preemptible",
        topology=Topology(name="t", required="rack"),
        sub_groups=(
            SubGroup(name="p", min_sub_group=1),
            SubGroup(
                name="c", parent="p", min_member=0, topology=Topology(name="t", preferred="host")
            ),
        ),
    )
    assert pod_group_body(group_metadata)["spec"] == {
        "queue": "a",
        "priorityClassName": "train",
        "minSubGroup": 2,
        "preemptibility": "preemptible",
        "topologyConstraint": {"topology": "t", "requiredTopologyLevel": "rack"},
        "subGroups": [
            {"name": "p", "minSubGroup": 1},
            {
                "name": "c",
                "minMember": 0,
                "parent": "p",
                "topologyConstraint": {"topology": "t", "preferredTopologyLevel": "host"},
            },
        ],
    }


def test_nothing_is_written_when_nothing_differs() -> None:
    body = pod_group_body(metadata())
    assert pod_group_patch(copy.deepcopy(body), body, SETTINGS) is None


def test_what_others_own_is_kept() -> None:
    stored = pod_group_body(metadata())
    stored["metadata"]["labels"] = {"kai.scheduler/queue": "moved", "theirs": "1"}
    stored["metadata"]["annotations"]["kai.scheduler/last-start-timestamp"] = "now"
    stored["spec"] |= {
        "queue": "moved",
        "markUnschedulable": False,
        "schedulingBackoff": 1,
        "topologyConstraint": {"topology": "by-hand"},
    }
    group_metadata = metadata(
        labels={"kai.scheduler/queue": "a", "kai.scheduler/node-pool": "p", "team": "y"}
    )
    patch = pod_group_patch(stored, pod_group_body(group_metadata), SETTINGS)
    assert patch == {"metadata": {"labels": {"team": "y"}}}


def test_hand_edits_of_the_gang_are_overwritten_and_left_over_fields_removed() -> None:
    stored = pod_group_body(metadata())
    stored["spec"] |= {"minMember": 9, "priorityClassName": "vip", "preemptionDelay": "5m0s"}
    patch = pod_group_patch(stored, pod_group_body(metadata(min_sub_group=1)), SETTINGS)
    assert patch == {
        "spec": {
            "minMember": None,
            "preemptionDelay": None,
            "priorityClassName": "train",
            "minSubGroup": 1,
        }
    }


def test_a_changed_topology_leaves_no_level_behind() -> None:
    before = pod_group_body(
        metadata(topology=Topology(name="t", required="rack", preferred="host"))
    )
    after = pod_group_body(metadata(topology=Topology(name="t2", required="rack")))
    patch = pod_group_patch(before, after, SETTINGS)
    assert patch is not None
    merge(before, patch)
    assert before["spec"]["topologyConstraint"] == {
        "topology": "t2",
        "requiredTopologyLevel": "rack",
    }


def test_owner_references_are_replaced() -> None:
    stored = pod_group_body(metadata())
    other = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "up"}
    patch = pod_group_patch(stored, pod_group_body(metadata(owner=other)), SETTINGS)
    assert patch == {"metadata": {"ownerReferences": [other]}}


def test_a_pod_is_patched_only_where_it_differs_and_its_subgroup_never_removed() -> None:
    pod = {
        "metadata": {
            "annotations": {"pod-group-name": "g"},
            "labels": {"kai.scheduler/subgroup-name": "s"},
        }
    }
    assert pod_patch(pod, "g", "s") is None
    assert pod_patch(pod, "g", "") is None
    assert pod_patch(pod, "h", "t") == {
        "metadata": {
            "annotations": {"pod-group-name": "h"},
            "labels": {"kai.scheduler/subgroup-name": "t"},
        }
    }
