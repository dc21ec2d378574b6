"""Which evictions the snapshot says are limited, and by what."""

from __future__ import annotations

from typing import Any

from kube.objects.meta import convert
from kube.objects.pod import Pod
from kube.objects.policy import PodDisruptionBudget
from scheduler.core.cluster.disruption_limits import DisruptionLimit, LimitKind
from scheduler.load.disruptions import RefusedEviction, disruption_inputs
from tests.scheduler.load.objects import pod

READY = [{"type": "Ready", "status": "True"}]


def running(name: str, *, ready: bool = True, owner: str = "", **options: Any) -> Pod:
    body = pod(name, node="n0", phase="Running", labels={"app": "web"}, **options)
    body["status"]["conditions"] = READY if ready else []
    if owner:
        reference = {"kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}
        body["metadata"]["ownerReferences"] = [reference]
    return convert(body, Pod)


def budget(name: str, allowed: int, *, namespace: str = "ns", **spec: Any) -> PodDisruptionBudget:
    status = {"disruptionsAllowed": allowed, "observedGeneration": 1, **spec.pop("status", {})}
    body = {
        "metadata": {"name": name, "namespace": namespace, "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
        "status": status,
    }
    return convert(body, PodDisruptionBudget)


def limits(budgets: list[PodDisruptionBudget], *pods: Pod, **options: Any) -> Any:
    return disruption_inputs(budgets, pods, options.pop("refused", {}), **options).limits


def test_a_budget_limits_the_ready_pods_it_selects_in_its_namespace() -> None:
    assert limits([budget("b", 1), budget("far", 0, namespace="other")], running("p")) == (
        DisruptionLimit(
            kind=LimitKind.BUDGET, subject="ns/b", allowed=1, pods=frozenset({"uid-p"})
        ),
    )


def test_pods_that_do_not_run_or_are_leaving_are_not_limited() -> None:
    pending = convert(pod("new", labels={"app": "web"}), Pod)
    leaving = running("old", deleted="2026-01-01T00:00:00Z")
    assert limits([budget("b", 0)], pending, leaving) == ()


def test_an_unready_pod_counts_only_while_too_few_others_are_healthy() -> None:
    enough = {"currentHealthy": 2, "desiredHealthy": 2}
    too_few = {"currentHealthy": 1, "desiredHealthy": 2}
    unready = running("p", ready=False)
    assert limits([budget("b", 0, status=enough)], unready) == ()
    assert len(limits([budget("b", 0, status=too_few)], unready)) == 1
    always = budget("b", 0, status=too_few, unhealthyPodEvictionPolicy="AlwaysAllow")
    assert limits([always], unready) == ()


def test_a_budget_whose_last_change_is_not_counted_yet_allows_nothing() -> None:
    [limit] = limits([budget("b", 3, status={"observedGeneration": 0})], running("p"))
    assert limit.allowed == 0


def test_an_empty_selector_selects_every_pod_and_an_absent_one_none() -> None:
    assert len(limits([budget("b", 0, selector={})], running("p"))) == 1
    assert limits([budget("b", 0, selector=None)], running("p")) == ()


def test_expressions_of_a_selector_count() -> None:
    def selector(operator: str) -> dict[str, Any]:
        return {"matchExpressions": [{"key": "app", "operator": operator, "values": ["web"]}]}

    assert len(limits([budget("b", 0, selector=selector("In"))], running("p"))) == 1
    assert limits([budget("b", 0, selector=selector("NotIn"))], running("p")) == ()


def test_no_pod_of_two_budgets_can_be_evicted() -> None:
    [limit] = limits([budget("b", 5), budget("a", 5)], running("p"))
    assert (limit.kind, limit.subject, limit.allowed) == (
        LimitKind.SEVERAL_BUDGETS,
        "ns/a and ns/b",
        0,
    )


def test_a_bound_per_owner_counts_pods_that_are_leaving_already() -> None:
    pods = [
        running("a", owner="rs", group="a"),
        running("b", owner="rs", group="b", deleted="2026-01-01T00:00:00Z"),
        running("c", owner="rs", group="c"),
        running("gang-0", owner="job", group="gang"),
        running("gang-1", owner="job", group="gang"),
    ]
    [limit] = limits([], *pods, most_per_owner=2)
    assert (limit.kind, limit.subject, limit.allowed) == (LimitKind.OWNER, "ReplicaSet ns/rs", 1)
    assert limit.pods == {"uid-a", "uid-b", "uid-c"}
    assert limits([], *pods) == ()


def test_a_refused_eviction_is_a_limit_of_its_pod() -> None:
    refused = {"uid-p": RefusedEviction("ns/p", "no", until=10.0)}
    [limit] = limits([], running("p"), refused=refused)
    assert (limit.kind, limit.subject, limit.detail) == (LimitKind.REFUSAL, "ns/p", "no")
    assert limit.pods == {"uid-p"}
