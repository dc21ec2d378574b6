"""Queues, pod groups, bind requests and the Config: what is wrong with the objects themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kaiweb.doctor.finding import ClusterContext, Finding, age_s, fault, warning
from kube.errors import NotFoundError
from kube.gateway import Selectors
from kube.keys import GPU_GROUP, POD_GROUP, RESERVATION, RESERVED_DEVICE
from kube.resources import BINDREQUESTS, CONFIGS, PODGROUPS, PODS, QUEUES
from kube.values.texts import first_few
from queues.tree.hierarchy import problem_of
from queues.tree.shape import shapes_of
from scheduler.settings.shard import CONFIG_NAME

#: How many objects one finding names.
SHOWN = 5
#: A pod group appears a moment after its pods, and a bind request is carried out in seconds.
PATIENCE_S = 120.0
BOOTSTRAP = "kaiweb bootstrap"


def check_config(context: ClusterContext) -> Iterator[Finding]:
    """Report a Config that is missing or of another namespace."""
    try:
        config = context.gateway.get(CONFIGS, CONFIG_NAME, as_type=dict)
    except NotFoundError:
        yield fault(f"config {CONFIG_NAME}", "does not exist", BOOTSTRAP)
        return
    namespace = (config.get("spec") or {}).get("namespace", context.namespace)
    if namespace != context.namespace:
        yield warning(
            f"config {CONFIG_NAME}",
            f"names namespace {namespace}, but this installation is in {context.namespace}",
            "set KAIWEB_NAMESPACE or spec.namespace; Leases and accounts are looked for there",
        )


def check_queues(context: ClusterContext) -> Iterator[Finding]:
    """Report queues that the scheduler ignores, and pod groups whose queue does not exist."""
    tree = shapes_of(context.all_of(QUEUES))
    for name in sorted(tree):
        problem = problem_of(tree, name)
        if problem:
            yield fault(
                f"queue {name}",
                f"is ignored: {problem}",
                f"kubectl edit queue {name} (spec.parentQueue), or create the parent",
            )
    without_queue = [
        _key(item)
        for item in context.all_of(PODGROUPS)
        if (item.get("spec") or {}).get("queue", "") not in tree
    ]
    if without_queue:
        yield warning(
            f"pod groups {first_few(sorted(without_queue), SHOWN)}",
            "are in queues that do not exist, so they never start",
            "create the queues, or change the label kai.scheduler/queue of the workloads",
        )


def check_pods(context: ClusterContext) -> Iterator[Finding]:
    """Report pods that are ours and were never grouped."""
    selectors = Selectors(fields=f"spec.schedulerName={context.scheduler_name}")
    pods = context.gateway.list(PODS, as_type=dict, selectors=selectors).items
    ungrouped = [
        _key(pod)
        for pod in pods
        if pod.get("status", {}).get("phase") in ("Pending", "Running")
        and pod["metadata"].get("namespace") != RESERVATION
        and POD_GROUP not in (pod["metadata"].get("annotations") or {})
        and _is_old(pod, context)
    ]
    if ungrouped:
        yield fault(
            f"pods {first_few(sorted(ungrouped), SHOWN)}",
            "have no pod group",
            "look at the log of the controllers: the pod grouper does not run or may not read their owner",
        )


def check_bind_requests(context: ClusterContext) -> Iterator[Finding]:
    """Report requests that nobody carries out."""
    waiting = [
        _key(item)
        for item in context.all_of(BINDREQUESTS)
        if (item.get("status") or {}).get("phase", "") in ("", "Pending") and _is_old(item, context)
    ]
    if waiting:
        yield fault(
            f"bind requests {first_few(sorted(waiting), SHOWN)}",
            f"have not been carried out for more than {PATIENCE_S:.0f} s",
            "look at the log of the binder; kubectl describe bindrequest says what it waits for",
        )


def check_reservations(context: ClusterContext) -> Iterator[Finding]:
    """Report reservation pods that have ended, or do not say which GPU they hold."""
    for pod in context.all_of(PODS, RESERVATION):
        annotations = pod["metadata"].get("annotations") or {}
        phase = pod.get("status", {}).get("phase")
        if phase in ("Failed", "Succeeded"):
            yield warning(
                f"reservation {_key(pod)}",
                f"has ended ({phase}); its GPU is given to others although pods may still share it",
                f"restart the pods of the same group (label {GPU_GROUP})",
            )
        elif not annotations.get(RESERVED_DEVICE) and _is_old(pod, context):
            yield fault(
                f"reservation {_key(pod)}",
                "does not say which GPU it holds, so the pods that share it wait",
                f"kubectl -n {RESERVATION} logs {pod['metadata']['name']}",
            )


def _is_old(item: dict[str, Any], context: ClusterContext) -> bool:
    return age_s(item["metadata"].get("creationTimestamp"), context.now()) > PATIENCE_S


def _key(item: dict[str, Any]) -> str:
    metadata = item["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}"
