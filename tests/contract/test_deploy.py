"""What we ship for a cluster: default objects, and roles that allow what each component does, no more."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kaiweb.supervisor.layout import CONTROLLERS
from tests.contract.api import APPLY, Api, Server

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "Queue": "/apis/scheduling.run.ai/v2/queues",
    "SchedulingShard": "/apis/kai.scheduler/v1/schedulingshards",
    "Config": "/apis/kai.scheduler/v1/configs",
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "Role": f"{RBAC}/namespaces/{{namespace}}/roles",
    "RoleBinding": f"{RBAC}/namespaces/{{namespace}}/rolebindings",
}


def documents(folder: str) -> Iterator[dict[str, Any]]:
    for file in sorted((DEPLOY / folder).glob("*.yaml")):
        yield from yaml.safe_load_all(file.read_text())


@pytest.fixture(scope="module")
def shipped(server: Server) -> Api:
    """The server with all default objects and roles applied."""
    api = Api(server)
    bodies = [*documents("defaults"), *documents("rbac")]
    for body in sorted(bodies, key=lambda body: list(PATHS).index(body["kind"])):
        meta = body["metadata"]
        path = PATHS[body["kind"]].format(namespace=meta.get("namespace", ""))
        api.patch(
            f"{path}/{meta['name']}", body, APPLY, fieldManager="shipped", force="true",
            fieldValidation="Strict",
        ).ok()  # fmt: skip
    return api


def test_default_queues_guarantee_nothing_and_cap_nothing(shipped: Api) -> None:
    queue = shipped.get(f"{PATHS['Queue']}/default-queue").ok()
    assert queue["spec"]["parentQueue"] == "default-parent-queue"
    open_end = {"quota": 0, "limit": -1, "overQuotaWeight": 1}
    assert queue["spec"]["resources"] == {"cpu": open_end, "gpu": open_end, "memory": open_end}
    parent = shipped.get(f"{PATHS['Queue']}/default-parent-queue").ok()
    assert parent["spec"]["resources"] == queue["spec"]["resources"]


def test_priority_classes(shipped: Api) -> None:
    items = shipped.get(PATHS["PriorityClass"]).ok()["items"]
    class_of_name = {item["metadata"]["name"]: item for item in items}
    names = ("train", "build-preemptible", "build", "inference")
    assert [class_of_name[name]["value"] for name in names] == [50, 75, 100, 125]
    assert not any(class_of_name[name].get("globalDefault") for name in names)


def test_the_config_states_that_schedulers_run(shipped: Api) -> None:
    """Clients written in Go follow this pointer of KAI's defaulted type without a look."""
    spec = shipped.get(f"{PATHS['Config']}/kai-config").ok()["spec"]
    assert spec["scheduler"] == {"service": {"enabled": True}}


def test_a_role_granted_to_the_pod_grouper_reaches_the_process_that_groups(shipped: Api) -> None:
    assert CONTROLLERS == "pod-grouper"
    request = (CONTROLLERS, "get", "example.test", "gadgets", "")
    assert not is_allowed(shipped, *request)
    rule = {"apiGroups": ["example.test"], "resources": ["gadgets"], "verbs": ["get"]}
    meta = {"name": "gadgets-for-kai"}
    shipped.post(PATHS["ClusterRole"], {"metadata": meta, "rules": [rule]}).ok(201)
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", **meta}
    subject = {"kind": "ServiceAccount", "name": "pod-grouper", "namespace": "kai-scheduler"}
    binding = {"metadata": meta, "roleRef": reference, "subjects": [subject]}
    shipped.post(PATHS["ClusterRoleBinding"], binding).ok(201)
    test_component_may(shipped, request)


def test_default_shard_takes_the_nodes_without_a_pool(shipped: Api) -> None:
    spec = shipped.get(f"{PATHS['SchedulingShard']}/default").ok()["spec"]
    assert spec == {
        "partitionLabelValue": "",
        "placementStrategy": {"gpu": "binpack", "cpu": "binpack"},
    }


ALLOWED = [
    ("scheduler", "create", "scheduling.run.ai", "bindrequests", ""),
    ("scheduler", "delete", "", "pods", ""),
    ("scheduler", "patch", "", "pods", "status"),
    ("scheduler", "update", "scheduling.run.ai", "podgroups", "status"),
    ("scheduler", "create", "coordination.k8s.io", "leases", ""),
    ("binder", "create", "", "pods", "binding"),
    ("binder", "create", "", "pods", ""),
    ("binder", "patch", "scheduling.run.ai", "bindrequests", "status"),
    ("binder", "patch", "", "persistentvolumeclaims", ""),
    ("binder", "patch", "", "persistentvolumes", ""),
    ("numa-placement-exporter", "patch", "", "pods", ""),
    ("admission", "list", "scheduling.run.ai", "queues", ""),
    ("pod-grouper", "create", "scheduling.run.ai", "podgroups", ""),
    ("pod-grouper", "patch", "scheduling.run.ai", "podgroups", "status"),
    ("pod-grouper", "patch", "scheduling.run.ai", "queues", "status"),
    ("pod-grouper", "get", "ray.io", "rayclusters", ""),
    ("pod-grouper", "get", "kubevirt.io", "virtualmachines", ""),
    ("pod-grouper", "update", "batch", "jobs", "finalizers"),
    ("podgroup-controller", "patch", "scheduling.run.ai", "podgroups", "status"),
    ("queue-controller", "patch", "scheduling.run.ai", "queues", "status"),
    ("web", "patch", "scheduling.run.ai", "queues", ""),
    ("web", "watch", "", "nodes", ""),
]
REFUSED = [
    ("scheduler", "create", "", "pods", "binding"),
    ("scheduler", "patch", "scheduling.run.ai", "queues", ""),
    ("binder", "create", "scheduling.run.ai", "bindrequests", ""),
    ("binder", "delete", "scheduling.run.ai", "queues", ""),
    ("pod-grouper", "delete", "scheduling.run.ai", "podgroups", ""),
    ("pod-grouper", "delete", "", "pods", ""),
    ("podgroup-controller", "patch", "scheduling.run.ai", "podgroups", ""),
    ("queue-controller", "delete", "scheduling.run.ai", "queues", ""),
    ("admission", "get", "", "pods", ""),
    ("web", "delete", "", "pods", ""),
    ("web", "get", "", "secrets", ""),
]


def is_allowed(api: Api, account: str, verb: str, group: str, resource: str, sub: str) -> bool:
    attributes = {
        "verb": verb,
        "group": group,
        "resource": resource,
        "subresource": sub,
        "namespace": "default",
    }
    user = f"system:serviceaccount:kai-scheduler:{account}"
    groups = ["system:serviceaccounts", "system:serviceaccounts:kai-scheduler"]
    review = {"spec": {"user": user, "groups": groups, "resourceAttributes": attributes}}
    return bool(api.post(REVIEWS, review).ok(201)["status"]["allowed"])


@pytest.mark.parametrize("request_", ALLOWED, ids="-".join)
def test_component_may(shipped: Api, request_: tuple[str, str, str, str, str]) -> None:
    deadline = time.monotonic() + 5
    while not is_allowed(shipped, *request_):
        # A real server's role cache follows within a moment.
        assert time.monotonic() < deadline, f"{request_} is not allowed"
        time.sleep(0.1)


@pytest.mark.parametrize("request_", REFUSED, ids="-".join)
def test_component_may_not(shipped: Api, request_: tuple[str, str, str, str, str]) -> None:
    # Roles are there for certain once the first positive check has passed.
    test_component_may(shipped, ALLOWED[0])
    assert not is_allowed(shipped, *request_)


def test_webhooks_may_be_registered_by_who_serves_them_and_no_others(shipped: Api) -> None:
    def may(account: str, verb: str, resource: str, **attributes: str) -> bool:
        user = f"system:serviceaccount:kai-scheduler:{account}"
        attributes_of_request = {"verb": verb, "resource": resource, **attributes}
        review = {"spec": {"user": user, "resourceAttributes": attributes_of_request}}
        return bool(shipped.post(REVIEWS, review).ok(201)["status"]["allowed"])

    group, kind = "admissionregistration.k8s.io", "validatingwebhookconfigurations"
    secret = {"namespace": "kai-scheduler", "name": "kai-admission-webhook-tls-secret"}
    for account in ("admission", "web"):
        for verb in ("create", "patch"):
            assert may(account, verb, kind, group=group, name="kai-queue-validation-v2")
            assert not may(account, verb, kind, group=group, name="somebody-elses")
        assert may(account, "update", "secrets", **secret)
        assert not may(account, "get", "secrets", **{**secret, "name": "database-password"})
    assert not may("scheduler", "patch", kind, group=group, name="kai-queue-validation-v2")


def test_stand_in_pods_may_be_made_in_their_namespace_only(shipped: Api) -> None:
    def may(verb: str, resource: str, namespace: str) -> bool:
        plural, _, sub = resource.partition("/")
        attributes_of_request = {
            "verb": verb,
            "resource": plural,
            "subresource": sub,
            "namespace": namespace,
        }
        user = "system:serviceaccount:kai-scheduler:pod-grouper"
        review = {"spec": {"user": user, "resourceAttributes": attributes_of_request}}
        return bool(shipped.post(REVIEWS, review).ok(201)["status"]["allowed"])

    for verb, resource in (("create", "pods"), ("delete", "pods"), ("patch", "pods/status")):
        assert may(verb, resource, "kai-scale-adjust")
        assert not may(verb, resource, "default")


def test_reservation_pods_may_only_touch_pods_of_their_namespace(shipped: Api) -> None:
    def may(verb: str, resource: str, namespace: str) -> bool:
        attributes = {"verb": verb, "resource": resource, "namespace": namespace}
        user = "system:serviceaccount:kai-resource-reservation:kai-resource-reservation"
        review = {"spec": {"user": user, "resourceAttributes": attributes}}
        return bool(shipped.post(REVIEWS, review).ok(201)["status"]["allowed"])

    assert may("patch", "pods", "kai-resource-reservation")
    assert not may("patch", "pods", "default")
    assert not may("delete", "pods", "kai-resource-reservation")
