"""Tables: what kubectl prints."""

from __future__ import annotations

from typing import Any

from tests.contract.api import TABLE, Api
from tests.contract.bodies import configmap, pod, podgroup, queue


def columns(table: dict[str, Any]) -> list[str]:
    return [column["name"] for column in table["columnDefinitions"] if column["priority"] == 0]


def test_pod_table(api: Api) -> None:
    path = "/api/v1/namespaces/{ns}/pods"
    api.post(path, pod("a")).ok(201)
    table = api.get(path, accept=TABLE).ok()
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert columns(table) == ["Name", "Ready", "Status", "Restarts", "Age"]
    (row,) = table["rows"]
    assert row["cells"][:3] == ["a", "0/1", "Pending"]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    assert row["object"]["metadata"]["name"] == "a"


def test_single_object_table(api: Api) -> None:
    path = "/api/v1/namespaces/{ns}/configmaps"
    api.post(path, configmap("a", k="1", j="2")).ok(201)
    table = api.get(f"{path}/a", accept=TABLE).ok()
    assert columns(table) == ["Name", "Data", "Age"]
    assert table["rows"][0]["cells"][:2] == ["a", 2]


def test_podgroup_table(api: Api) -> None:
    path = "/apis/scheduling.run.ai/v2alpha2/namespaces/{ns}/podgroups"
    api.post(path, podgroup("a", priorityClassName="train")).ok(201)
    table = api.get(path, accept=TABLE).ok()
    assert columns(table) == ["Name", "MinMember", "Queue", "PriorityClass", "Age"]
    assert table["rows"][0]["cells"][:4] == ["a", 2, "team", "train"]


def test_queue_table(api: Api, unique: str) -> None:
    path = "/apis/scheduling.run.ai/v2/queues"
    api.post(path, queue(unique, parentQueue="root", displayName="The team")).ok(201)
    api.patch(f"{path}/{unique}/status", {"status": {"childQueues": ["x", "y"]}}).ok()
    table = api.get(f"{path}/{unique}", accept=TABLE).ok()
    assert columns(table) == ["Name", "Priority", "Parent", "Children", "DisplayName"]
    cells = table["rows"][0]["cells"]
    assert (cells[0], cells[2], cells[4]) == (unique, "root", "The team")
    assert cells[1] is None
    assert cells[3] == '["x","y"]'


def test_watch_sends_tables_when_asked(api: Api) -> None:
    path = "/api/v1/namespaces/{ns}/configmaps"
    at = api.get(path).ok()["metadata"]["resourceVersion"]
    with api.watch(path, accept=TABLE, resourceVersion=at) as events:
        api.post(path, configmap("a")).ok(201)
        event = next(events)
    assert (event["type"], event["object"]["kind"]) == ("ADDED", "Table")
    assert event["object"]["rows"][0]["cells"][0] == "a"


def test_partial_metadata_list(api: Api) -> None:
    path = "/api/v1/namespaces/{ns}/configmaps"
    api.post(path, configmap("a", k="1")).ok(201)
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    body = api.get(path, accept=accept).ok()
    assert body["kind"] == "PartialObjectMetadataList"
    assert "data" not in body["items"][0]
