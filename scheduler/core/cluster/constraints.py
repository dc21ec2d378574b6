"""What a task requires of a node besides room: selectors, tolerations, ports, other pods, volumes.

Whoever builds the snapshot normalises the values. They are hashable, so that equal tasks share one object
and one cached verdict per node.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Operator(StrEnum):
    """How a label (or taint) is compared."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"
    EQUAL = "Equal"


@dataclass(frozen=True, slots=True)
class Expression:
    """One comparison of a label; `key` may be `metadata.name` in a match-fields term."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """All expressions must hold; a term without any matches nothing, as in Kubernetes."""

    labels: tuple[Expression, ...] = ()
    fields: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint: keeps tasks without a toleration off a node."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True, slots=True)
class Toleration:
    """An empty key with EXISTS tolerates every taint; an empty effect matches all effects."""

    key: str = ""
    operator: Operator = Operator.EQUAL
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of the node itself; an empty address means all addresses."""

    port: int
    protocol: str = "TCP"
    address: str = ""


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All expressions must hold; `nothing` marks a missing selector, which matches no labels."""

    expressions: tuple[Expression, ...] = ()
    nothing: bool = False


@dataclass(frozen=True, slots=True)
class PodTerm:
    """Inter-pod (anti-)affinity: pods matching `selector` in `namespaces` within one `topology_key`.

    An empty `namespaces` with no `namespace_selector` means the namespace of the task itself; `weight`
    is 0 for a required term and 1-100 for a preferred one.
    """

    topology_key: str
    selector: LabelSelector = field(default_factory=LabelSelector)
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    weight: int = 0


@dataclass(frozen=True, slots=True)
class ClaimReference:
    """A device claim that a task uses: the claim's name, and whether it comes from a template."""

    claim: str
    from_template: bool = False


@dataclass(frozen=True, slots=True)
class ContainerRequest:
    """Requests of one container, for rules that look below the pod (NUMA, extended resources).

    `requests` are sorted by the names the API has for them, because claims refer to their positions.
    """

    name: str = ""
    kind: str = "app"  # app | init | sidecar
    requests: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskConstraints:
    """Everything besides amounts that decides which nodes take a task. Equal objects are shared."""

    node_selector: tuple[tuple[str, str], ...] = ()
    #: Any of the terms must match (so an empty tuple matches no node); None without required affinity.
    node_affinity: tuple[NodeTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    pod_affinity: tuple[PodTerm, ...] = ()
    pod_anti_affinity: tuple[PodTerm, ...] = ()
    preferred_pod_affinity: tuple[PodTerm, ...] = ()
    preferred_pod_anti_affinity: tuple[PodTerm, ...] = ()
    #: Names of persistent volume claims in the task's namespace (ephemeral ones resolved).
    volume_claims: tuple[str, ...] = ()
    #: Names of config maps that must exist in the task's namespace; optional ones are left out.
    config_maps: tuple[str, ...] = ()
    device_claims: tuple[ClaimReference, ...] = ()
    containers: tuple[ContainerRequest, ...] = ()
    qos_class: str = "Burstable"
    priority_class: str = ""
    #: Distinguishes the signatures of tasks whose other fields (volumes, spread constraints) differ;
    #: no rule reads it.
    signature_extra: str = ""


NO_CONSTRAINTS = TaskConstraints()
