# ruff: noqa: RUF012 - msgspec gives every struct its own copy of an empty default
"""Disruption budgets, as far as evictions read them, and the ClusterPolicy of NVIDIA's GPU operator."""

from __future__ import annotations

from datetime import datetime

from kube.objects.meta import KubeObject, KubeStruct, LabelSelector


class DisruptionBudgetSpec(KubeStruct, frozen=True, kw_only=True):
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str = ""


class DisruptionBudgetStatus(KubeStruct, frozen=True, kw_only=True):
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    observed_generation: int = 0
    disrupted_pods: dict[str, datetime] = {}


class PodDisruptionBudget(KubeObject, frozen=True, kw_only=True):
    spec: DisruptionBudgetSpec = DisruptionBudgetSpec()
    status: DisruptionBudgetStatus = DisruptionBudgetStatus()

    @property
    def allowed(self) -> int:
        """Return how many pods may be evicted; none while the last change of its spec is not yet counted."""
        is_current = self.status.observed_generation >= self.metadata.generation
        return max(0, self.status.disruptions_allowed) if is_current else 0

    @property
    def spares_unready_pods(self) -> bool:
        """Return whether evicting a pod that is not ready counts, because too few others are ready."""
        if self.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
            return False
        status = self.status
        return not 0 < status.desired_healthy <= status.current_healthy


class CdiSpec(KubeStruct, frozen=True, kw_only=True):
    enabled: bool = False
    default: bool = False


class ClusterPolicySpec(KubeStruct, frozen=True, kw_only=True):
    cdi: CdiSpec = CdiSpec()


class ClusterPolicy(KubeObject, frozen=True, kw_only=True):
    """How the GPU operator is set up."""

    spec: ClusterPolicySpec = ClusterPolicySpec()
