"""A pod's life at the API: defaults, binding once, eviction, graceful deletion, what may change."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.apiserver.conftest import InProcess, pod

PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


async def bind(cluster: InProcess, name: str, node: str = "n1", **meta: Any) -> Any:
    body = {"metadata": {"name": name, **meta}, "target": {"kind": "Node", "name": node}}
    return await cluster.post(f"{PODS}/{name}/binding", body)


async def test_defaults_and_quality_of_service(cluster: InProcess) -> None:
    container = {
        "name": "c",
        "image": "i",
        "resources": {"limits": {"cpu": "1000m", "memory": "1Gi"}},
    }
    created = (await cluster.post(PODS, pod("a", containers=[container]))).ok(201)
    assert created["status"] == {"phase": "Pending", "qosClass": "Guaranteed"}
    spec = created["spec"]
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert (spec["restartPolicy"], spec["schedulerName"]) == ("Always", "default-scheduler")
    assert (spec["priority"], spec["terminationGracePeriodSeconds"]) == (0, 30)
    assert created["metadata"]["generation"] == 1


async def test_templates_do_not_request_their_limits(cluster: InProcess) -> None:
    container = {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    path = "/apis/apps/v1/namespaces/default/deployments"
    created = (await cluster.post(path, {"metadata": {"name": "d"}, "spec": spec})).ok(201)
    resources = created["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert resources == {"limits": {"nvidia.com/gpu": "1"}}


async def test_priority_comes_from_the_class(cluster: InProcess) -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    await cluster.post(classes, {"metadata": {"name": "train"}, "value": 50})
    await cluster.post(classes, {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True})
    named = (await cluster.post(PODS, pod("a", priorityClassName="train"))).ok(201)
    assert named["spec"]["priority"] == 50
    usual = (await cluster.post(PODS, pod("b"))).ok(201)
    assert (usual["spec"]["priorityClassName"], usual["spec"]["priority"]) == ("usual", 7)
    (await cluster.post(PODS, pod("c", priorityClassName="none"))).refused(
        403, 'pods "c" is forbidden: no PriorityClass with name none was found'
    )


async def test_second_bind_is_a_conflict(cluster: InProcess) -> None:
    await cluster.post(PODS, pod("a"))
    (await bind(cluster, "a", annotations={"k": "v"})).ok(201)
    bound = (await cluster.get(f"{PODS}/a")).ok()
    assert bound["spec"]["nodeName"] == "n1"
    assert bound["metadata"]["annotations"] == {"k": "v"}
    (condition,) = bound["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    (await bind(cluster, "a", "n2")).refused(
        409,
        'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n1"',
    )


async def test_bind_through_the_collection(cluster: InProcess) -> None:
    await cluster.post(PODS, pod("a"))
    body = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}
    (await cluster.post("/api/v1/namespaces/default/bindings", body)).ok(201)
    assert (await cluster.get(f"{PODS}/a")).ok()["spec"]["nodeName"] == "n1"


async def test_what_may_not_be_bound(cluster: InProcess) -> None:
    await cluster.post(PODS, pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
    (await bind(cluster, "gated")).refused(
        409,
        'Operation cannot be fulfilled on pods/binding "gated": pod gated has non-empty '
        ".spec.schedulingGates",
    )
    await cluster.post(PODS, pod("a"))
    assert (await bind(cluster, "a", uid="other")).code == 409
    assert (await bind(cluster, "none")).code == 404


async def test_bound_pod_is_deleted_gracefully(cluster: InProcess) -> None:
    await cluster.post(PODS, pod("a"))
    await bind(cluster, "a")
    leaving = (await cluster.delete(f"{PODS}/a")).ok()
    assert leaving["metadata"]["deletionGracePeriodSeconds"] == 30
    repeated = (await cluster.delete(f"{PODS}/a")).ok()
    assert repeated["metadata"]["resourceVersion"] == leaving["metadata"]["resourceVersion"]
    (await cluster.delete(f"{PODS}/a", {"gracePeriodSeconds": 0})).ok()
    assert (await cluster.get(f"{PODS}/a")).code == 404


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_finished_pod_goes_at_once(cluster: InProcess, phase: str) -> None:
    await cluster.post(PODS, pod("a"))
    await bind(cluster, "a")
    await cluster.patch(f"{PODS}/a/status", {"status": {"phase": phase}})
    await cluster.delete(f"{PODS}/a")
    assert (await cluster.get(f"{PODS}/a")).code == 404


async def test_status_and_spec_are_written_apart(cluster: InProcess) -> None:
    await cluster.post(PODS, pod("a"))
    await cluster.patch(f"{PODS}/a", {"status": {"phase": "Failed"}})
    patch = {"spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}
    changed = (await cluster.patch(f"{PODS}/a/status", patch)).ok()
    assert changed["status"]["phase"] == "Running"
    assert "nodeName" not in changed["spec"]


async def test_spec_is_frozen_but_for_images_and_gates(cluster: InProcess) -> None:
    await cluster.post(PODS, pod("a", schedulingGates=[{"name": "example.com/wait"}]))
    image = [{"op": "replace", "path": "/spec/containers/0/image", "value": "new"}]
    (await cluster.patch(f"{PODS}/a", image, "application/json-patch+json")).ok()
    (await cluster.patch(f"{PODS}/a", {"spec": {"schedulingGates": None}})).ok()
    refused = await cluster.patch(f"{PODS}/a", {"spec": {"nodeName": "n1"}})
    assert refused.code == 422
    assert "pod updates may not change fields other than" in refused.body["message"]
    refused = await cluster.patch(f"{PODS}/a", {"spec": {"schedulingGates": [{"name": "x/y"}]}})
    assert "only deletion is allowed" in refused.body["message"]


async def ready(cluster: InProcess, name: str, *, is_ready: bool = True) -> None:
    body = pod(name)
    body["metadata"]["labels"] = {"app": "x"}
    await cluster.post(PODS, body)
    await bind(cluster, name)
    condition = {"type": "Ready", "status": str(is_ready)}
    status = {"phase": "Running", "conditions": [condition]}
    await cluster.patch(f"{PODS}/{name}/status", {"status": status})


async def budget(cluster: InProcess, name: str = "p", **status: int) -> None:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    (await cluster.post(BUDGETS, {"metadata": {"name": name}, "spec": spec})).ok(201)
    (await cluster.patch(f"{BUDGETS}/{name}/status", {"status": status})).ok()


async def evict(cluster: InProcess, name: str, **options: Any) -> Any:
    body = {"metadata": {"name": name}, "deleteOptions": options}
    return await cluster.post(f"{PODS}/{name}/eviction", body)


async def test_an_eviction_takes_one_from_its_budget_and_the_next_is_refused(
    cluster: InProcess,
) -> None:
    await ready(cluster, "a")
    await ready(cluster, "b")
    await budget(
        cluster, disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1, observedGeneration=1
    )
    (await evict(cluster, "a", dryRun=["All"])).ok(201)
    (await evict(cluster, "a")).ok(201)
    status = (await cluster.get(f"{BUDGETS}/p")).ok()["status"]
    assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (0, ["a"])
    conditions = (await cluster.get(f"{PODS}/a")).ok()["status"]["conditions"]
    assert conditions[-1]["reason"] == "EvictionByEvictionAPI"
    refused = await evict(cluster, "b")
    refused.refused(429, "Cannot evict pod as it would violate the pod's disruption budget.")
    assert refused.body["details"]["causes"] == [
        {
            "reason": "DisruptionBudget",
            "message": "The disruption budget p needs 1 healthy pods and has 2 currently",
        }
    ]
    assert "deletionTimestamp" not in (await cluster.get(f"{PODS}/b")).ok()["metadata"]


async def test_a_budget_whose_last_change_was_not_counted_refuses_with_a_pause(
    cluster: InProcess,
) -> None:
    await ready(cluster, "a")
    await budget(cluster, disruptionsAllowed=1, observedGeneration=0)
    refused = await evict(cluster, "a")
    assert refused.code == 429
    assert refused.body["details"]["retryAfterSeconds"] == 10
    assert "still being processed" in refused.body["details"]["causes"][0]["message"]


async def test_an_unready_pod_goes_freely_while_enough_others_are_healthy(
    cluster: InProcess,
) -> None:
    await ready(cluster, "a", is_ready=False)
    await budget(
        cluster, disruptionsAllowed=0, currentHealthy=1, desiredHealthy=1, observedGeneration=1
    )
    (await evict(cluster, "a")).ok(201)


async def test_a_pod_of_two_budgets_is_not_evicted(cluster: InProcess) -> None:
    await ready(cluster, "a")
    for name in ("p", "q"):
        await budget(cluster, name, disruptionsAllowed=1, observedGeneration=1)
    refused = await evict(cluster, "a")
    assert refused.code == 500
    assert "more than one PodDisruptionBudget" in refused.body["message"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"containers": []}, 'Pod "a" is invalid: spec.containers: Required value'),
        (
            {"containers": [{"name": "c"}]},
            'Pod "a" is invalid: spec.containers[0].image: Required value',
        ),
        (
            {
                "containers": [
                    {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "0.5"}}}
                ]
            },
            'Pod "a" is invalid: [spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: '
            '"500m": must be an integer, spec.containers[0].resources.requests[nvidia.com/gpu]: Invalid '
            'value: "500m": must be an integer]',
        ),
        (
            {"restartPolicy": "Sometimes"},
            'Pod "a" is invalid: spec.restartPolicy: Unsupported value: "Sometimes": supported values: '
            '"Always", "OnFailure", "Never"',
        ),
    ],
)
async def test_invalid_pods(cluster: InProcess, spec: dict[str, Any], message: str) -> None:
    (await cluster.post(PODS, pod("a", **spec))).refused(422, message)
    assert (await cluster.get(f"{PODS}/a")).code == 404


async def test_streaming_is_refused_clearly(cluster: InProcess) -> None:
    await cluster.post(PODS, pod("a"))
    for path in (f"{PODS}/a/log", f"{PODS}/a/exec?command=ls"):
        answer = await cluster.get(path)
        assert (answer.code, answer.body["reason"]) == (501, "NotImplemented")
        assert "runs no containers" in answer.body["message"]
