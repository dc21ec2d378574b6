"""Workloads of the gang API: served only when asked for, with the texts of a real kube-apiserver 1.35."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sandbox.apiserver.server import Server, Settings
from tests.sandbox.apiserver.conftest import InProcess

GROUP = "/apis/scheduling.k8s.io"
WORKLOADS = f"{GROUP}/v1alpha1/namespaces/default/workloads"
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
    "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


def running(tmp_path: Path, *, serves_gangs: bool) -> InProcess:
    return InProcess(Server(Settings(home=tmp_path, persistent=False, serves_gangs=serves_gangs)))


def workload(*groups: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": "a"},
        "spec": {"podGroups": list(groups)},
    }


def group(name: str = "w", **policy: Any) -> dict[str, Any]:
    return {"name": name, "policy": policy}


async def test_the_gang_api_is_not_served_by_default(tmp_path) -> None:
    api = running(tmp_path, serves_gangs=False)
    versions = (await api.call("GET", GROUP)).ok()["versions"]
    assert [entry["version"] for entry in versions] == ["v1"]
    assert (await api.call("GET", WORKLOADS)).code == 404


async def test_with_the_setting_workloads_are_served_and_kept_as_they_were_made(tmp_path) -> None:
    api = running(tmp_path, serves_gangs=True)
    document = (await api.call("GET", GROUP)).ok()
    assert [entry["version"] for entry in document["versions"]] == ["v1", "v1alpha1"]
    assert document["preferredVersion"]["version"] == "v1"
    stored = (await api.call("POST", WORKLOADS, workload(group(gang={"minCount": 2})))).ok(201)
    stored["spec"]["podGroups"][0]["policy"]["gang"]["minCount"] = 3
    changed = await api.call("PUT", f"{WORKLOADS}/a", stored)
    assert changed.code == 422
    assert changed.body["details"]["causes"][0]["field"] == "podGroups"


@pytest.mark.parametrize(
    ("groups", "text"),
    [
        ([], "spec.podGroups: Required value: must have at least one item"),
        (
            [group(f"w{number}", basic={}) for number in range(9)],
            "spec.podGroups: Too many: 9: must have at most 8 items",
        ),
        (
            [group()],
            "spec.podGroups[0].policy: Required value: exactly one of `basic`, `gang` is required",
        ),
        (
            [group(basic={}, gang={"minCount": 2})],
            'spec.podGroups[0].policy: Invalid value: "{`basic`, `gang`}": exactly one of `basic`, `gang` is '
            "required, but multiple fields are set",
        ),
        (
            [group(gang={"minCount": 0})],
            "spec.podGroups[0].policy.gang.minCount: Invalid value: 0: must be greater than zero",
        ),
        (
            [group("W.x", gang={"minCount": 2})],
            f'spec.podGroups[0].name: Invalid value: "W.x": {LABEL}',
        ),
        (
            [group(gang={"minCount": 2}), group(basic={})],
            'spec.podGroups[1].name: Duplicate value: "w"',
        ),
    ],
)
async def test_refusals_read_as_those_of_the_real_server(tmp_path, groups, text) -> None:
    api = running(tmp_path, serves_gangs=True)
    (await api.call("POST", WORKLOADS, workload(*groups))).refused(
        422, f'Workload.scheduling.k8s.io "a" is invalid: {text}'
    )
