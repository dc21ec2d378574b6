"""Find other schedulers that write beside us, and what they left behind."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from kaiweb.doctor.finding import ClusterContext, Finding, age_s, fault, note, warning
from kube.resources import BINDREQUESTS, DEPLOYMENTS, LEASES, SHARDS

#: The Lease of KAI's operator, which makes Deployments and webhooks again whenever they are deleted.
OPERATOR_LEASE = "41fce092.run.ai"
KAI_OPERATOR = "kai-operator"
#: Writes within this time count as recent.
LATELY_S = 600.0
DEFAULT_LEASE_S = 15
PART_OF = "app.kubernetes.io/part-of"
MANAGED_BY = "app.kubernetes.io/managed-by"
OUR_WRITER = "kaiweb"


def check_other_schedulers(context: ClusterContext) -> Iterator[Finding]:
    """Report Deployments of KAI that work for the scheduler name that is ours."""
    for item in context.all_of(DEPLOYMENTS):
        metadata, replicas = item["metadata"], item["spec"].get("replicas", 1)
        labels = metadata.get("labels") or {}
        is_kais = labels.get(MANAGED_BY) == KAI_OPERATOR or metadata["name"] == KAI_OPERATOR
        if not is_kais or not replicas or labels.get(PART_OF) == OUR_WRITER:
            continue
        namespace, name = metadata["namespace"], metadata["name"]
        served_name = _flag(item, "--scheduler-name") or context.scheduler_name
        if served_name != context.scheduler_name:
            yield note(
                f"deployment {namespace}/{name}", f"is KAI's, for pods of {served_name}, not ours"
            )
            continue
        yield fault(
            f"deployment {namespace}/{name}",
            f"is KAI's and runs for the same pods ({context.scheduler_name})",
            f"kubectl -n {namespace} scale deployment {name} --replicas=0 (kai-operator first)",
        )


def _flag(deployment: dict[str, Any], flag: str) -> str:
    """Return the value of a flag of the first container, written as `--flag=value` or `--flag value`."""
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    words = [*container.get("command", ()), *container.get("args", ())]
    for word, following in pairwise([*words, ""]):
        name, equals, value = word.partition("=")
        if name == flag:
            return str(value if equals else following)
    return ""


def check_leases(context: ClusterContext) -> Iterator[Finding]:
    """Report Leases of KAI: held ones, and those that were left over."""
    for item in context.all_of(LEASES, context.namespace):
        name, spec = item["metadata"]["name"], item.get("spec") or {}
        is_operators = name == OPERATOR_LEASE
        is_schedulers = name == context.scheduler_name or name.startswith(
            f"{context.scheduler_name}-"
        )
        holder = spec.get("holderIdentity") or ""
        if not holder or not (is_operators or is_schedulers):
            continue
        seconds = age_s(spec.get("renewTime"), context.now())
        if seconds > 2 * (spec.get("leaseDurationSeconds") or DEFAULT_LEASE_S):
            yield note(
                f"lease {context.namespace}/{name}",
                f"was left by {holder}",
                f"kubectl -n {context.namespace} delete lease {name}",
            )
        elif is_operators:
            yield fault(
                f"lease {context.namespace}/{name}",
                f"KAI's operator works ({holder}): it makes KAI's schedulers and webhooks again",
                f"kubectl -n {context.namespace} scale deployment {KAI_OPERATOR} --replicas=0",
            )
        else:
            yield warning(
                f"lease {context.namespace}/{name}",
                f"{holder} holds the lease of a scheduler with leader election",
                "expected only with `kaiweb run_scheduler --leader-elect`; else stop KAI's scheduler",
            )


def check_writers(context: ClusterContext) -> Iterator[Finding]:
    """Report who else has written BindRequests in the last minutes."""
    writers: dict[str, str] = {}
    for item in context.all_of(BINDREQUESTS):
        metadata = item["metadata"]
        for entry in metadata.get("managedFields") or ():
            manager = entry.get("manager", "")
            is_recent = age_s(entry.get("time"), context.now()) <= LATELY_S
            if is_recent and not manager.startswith(OUR_WRITER):
                writers[manager] = f"{metadata['namespace']}/{metadata['name']}"
    for manager, key in sorted(writers.items()):
        yield warning(
            f"bind request {key}",
            f"was written by {manager} in the last {LATELY_S / 60:.0f} minutes",
            "two schedulers of one shard decide against each other: stop the other one",
        )


def check_shards(context: ClusterContext) -> Iterator[Finding]:
    """Report shards that share a part of the cluster."""
    shards_of: dict[str, list[str]] = {}
    for item in context.all_of(SHARDS):
        value = (item.get("spec") or {}).get("partitionLabelValue", "")
        shards_of.setdefault(value, []).append(item["metadata"]["name"])
    for value, names in sorted(shards_of.items()):
        if len(names) > 1:
            yield fault(
                f"shards {', '.join(sorted(names))}",
                f"schedule the same nodes (partitionLabelValue {value!r})",
                f"kubectl delete schedulingshard {sorted(names)[-1]}, or give it another value",
            )
    if not shards_of:
        yield warning("shards", "there is no SchedulingShard", "kaiweb bootstrap")
