"""Reads the jobs of a scenario file: trees of subgroups, requests, demands on nodes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from scheduler.core.cluster.constraints import (
    ClaimReference,
    ContainerRequest,
    Expression,
    LabelSelector,
    NodeTerm,
    Operator,
    PodTerm,
    TaskConstraints,
)
from scheduler.core.cluster.inputs import (
    PodSetInput,
    SubGroupInput,
    TaskRequest,
    TopologyConstraint,
)

Document = Mapping[str, Any]


def read_subgroups(job: Document, tasks: int) -> SubGroupInput:
    """Read the tree of subgroups, or the plain minimum of a job."""
    tree = job.get("pod_group")
    if tree is not None:
        return _group(tree)
    minimum = job.get("min_available")
    return SubGroupInput(
        pod_sets=(PodSetInput(min_available=tasks if minimum is None else int(minimum)),)
    )


def _group(tree: Document) -> SubGroupInput:
    return SubGroupInput(
        name=tree.get("name") or "",
        min_subgroups=tree.get("min_subgroups"),
        topology=_topology(tree.get("topology")),
        subgroups=tuple(_group(inner) for inner in tree.get("groups") or ()),
        pod_sets=tuple(
            PodSetInput(
                name=entry["name"],
                min_available=int(entry.get("min_available", 0)),
                topology=_topology(entry.get("topology")),
            )
            for entry in tree.get("pod_sets") or ()
        ),
    )


def _topology(constraint: Document | None) -> TopologyConstraint | None:
    if not constraint:
        return None
    return TopologyConstraint(
        topology=constraint.get("topology") or "",
        required_level=constraint.get("required_level") or "",
        preferred_level=constraint.get("preferred_level") or "",
    )


def read_request(request: Document) -> TaskRequest:
    """Read what one task asks for; equal requests are one object."""
    return _intern_request(
        TaskRequest(
            cpu_milli=float(request.get("cpu_millis", 0)),
            memory_bytes=float(request.get("memory_bytes", 0)),
            gpus=float(request.get("gpu", 0)),
            gpu_fraction=float(request.get("gpu_fraction", 0)),
            gpu_memory_mib=int(request.get("gpu_memory_mib", 0)),
            gpu_devices=int(request.get("gpu_devices", 1)),
            mig=_pairs(request.get("mig")),
            device_classes=_pairs(request.get("dra_gpus")),
            legacy_mig=bool(request.get("legacy_mig", False)),
        )
    )


@lru_cache(maxsize=4096)
def _intern_request(request: TaskRequest) -> TaskRequest:
    """Share equal requests: the core finds classes of equal tasks by identity."""
    return request


@lru_cache(maxsize=4096)
def _intern_constraints(constraints: TaskConstraints) -> TaskConstraints:
    return constraints


def _pairs(counts: Mapping[str, float] | None) -> tuple[tuple[str, float], ...]:
    return tuple((name, float(count)) for name, count in sorted((counts or {}).items()))


def read_constraints(task: Document, request: Document) -> TaskConstraints:
    """Read what a task demands of nodes besides room."""
    affinity = task.get("node_affinity")
    container = ContainerRequest(name="main", requests=_container_requests(request))
    return _intern_constraints(
        TaskConstraints(
            node_affinity=(_node_term(affinity),) if affinity else None,
            pod_affinity=_pod_terms(task.get("pod_affinity")),
            pod_anti_affinity=_pod_terms(task.get("pod_anti_affinity")),
            volume_claims=tuple(task.get("persistent_volume_claims") or ()),
            device_claims=tuple(
                ClaimReference(claim=entry["claim"], from_template=bool(entry.get("template")))
                for entry in task.get("resource_claims") or ()
            ),
            containers=(container,),
            qos_class=(task.get("qos_class") or "burstable").title(),
        )
    )


def _container_requests(request: Document) -> tuple[tuple[str, float], ...]:
    named = {
        "cpu": float(request.get("cpu_millis", 0)),
        "memory": float(request.get("memory_bytes", 0)),
        "gpu": float(request.get("gpu", 0)),
    }
    return tuple((name, amount) for name, amount in named.items() if amount)


def _node_term(expressions: list[Document]) -> NodeTerm:
    return NodeTerm(
        labels=tuple(
            Expression(
                key=entry["key"],
                operator=Operator(entry["operator"]),
                values=tuple(entry.get("values") or ()),
            )
            for entry in expressions
        )
    )


def _pod_terms(terms: list[Document] | None) -> tuple[PodTerm, ...]:
    return tuple(
        PodTerm(
            topology_key=term["topology_key"],
            selector=LabelSelector(
                expressions=tuple(
                    Expression(key=key, operator=Operator.IN, values=(value,))
                    for key, value in sorted((term.get("match_labels") or {}).items())
                )
            ),
        )
        for term in terms or ()
    )
