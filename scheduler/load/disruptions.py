"""The limits on evictions of a snapshot: disruption budgets, a bound per owner, and refusals a moment ago."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kube.keys import POD_GROUP
from kube.label_selectors import selects
from kube.objects.pod import Pod
from kube.objects.policy import PodDisruptionBudget
from kube.resources import POD_DISRUPTION_BUDGETS, PODS
from kube.store import StoreView
from scheduler.core.cluster.disruption_limits import DisruptionLimit, LimitKind
from scheduler.settings.params import ShardParams


@dataclass(frozen=True, slots=True)
class RefusedEviction:
    """A pod that the API server would not evict, and its answer; not tried again before Unix time `until`."""

    pod: str
    answer: str
    until: float


@dataclass(frozen=True, slots=True)
class DisruptionInputs:
    """The limits of a snapshot, and the budget that the eviction of a pod takes from, by uid of the pod."""

    limits: tuple[DisruptionLimit, ...] = ()
    budget_of: Mapping[str, PodDisruptionBudget] = field(default_factory=dict)


def disruptions_of(
    view: StoreView, refused: Mapping[str, RefusedEviction], params: ShardParams
) -> DisruptionInputs:
    """Return the limits of a store view; budgets count only where the shard uses the Eviction API."""
    budgets = view.of(POD_DISRUPTION_BUDGETS, PodDisruptionBudget)
    if not params.use_eviction_api:
        budgets = {}
    if not (budgets or refused or params.max_evictions_per_owner):
        return DisruptionInputs()
    return disruption_inputs(
        budgets.values(),
        view.of(PODS, Pod).values(),
        refused,
        most_per_owner=params.max_evictions_per_owner,
    )


def disruption_inputs(
    budgets: Iterable[PodDisruptionBudget],
    pods: Iterable[Pod],
    refused: Mapping[str, RefusedEviction],
    *,
    most_per_owner: int = 0,
) -> DisruptionInputs:
    """Return the limits that hold for running pods.

    Parameters
    ----------
    refused : evictions that the API server refused a moment ago, by uid of the pod
    most_per_owner : how many pods of one controller may be terminating at the same time; 0 for no bound
    """
    running = [pod for pod in pods if pod.status.phase == "Running"]
    selected = _selected(budgets, running)
    limits = [*_of_budgets(selected), *_of_refusals(refused)]
    if most_per_owner:
        limits += _of_owners(running, most_per_owner)
    budget_of = {
        pod.metadata.uid: selecting[0]
        for pod, selecting in selected
        if len(selecting) == 1 and _counts(pod, selecting[0])
    }
    return DisruptionInputs(tuple(limits), budget_of)


def _selected(
    budgets: Iterable[PodDisruptionBudget], running: Iterable[Pod]
) -> list[tuple[Pod, list[PodDisruptionBudget]]]:
    """Return the pods that some budget selects and that are not yet terminating, each with those budgets."""
    by_namespace: dict[str, list[PodDisruptionBudget]] = {}
    for budget in budgets:
        by_namespace.setdefault(budget.metadata.namespace, []).append(budget)
    selected = []
    for pod in running:
        of_namespace = by_namespace.get(pod.metadata.namespace)
        if of_namespace is None or pod.metadata.deletion_timestamp is not None:
            continue
        selecting = [
            item for item in of_namespace if selects(item.spec.selector, pod.metadata.labels)
        ]
        if selecting:
            selected.append((pod, selecting))
    return selected


def _of_budgets(
    selected: Iterable[tuple[Pod, list[PodDisruptionBudget]]],
) -> Iterator[DisruptionLimit]:
    """Yield one limit per budget; the API server evicts no pod that several budgets select."""
    counted: dict[str, list[str]] = {}
    allowed: dict[str, int] = {}
    several: dict[str, list[str]] = {}
    for pod, selecting in selected:
        if len(selecting) > 1:
            names = " and ".join(sorted(item.key for item in selecting))
            several.setdefault(names, []).append(pod.metadata.uid)
        elif _counts(pod, selecting[0]):
            allowed[selecting[0].key] = selecting[0].allowed
            counted.setdefault(selecting[0].key, []).append(pod.metadata.uid)
    for key in sorted(counted):
        yield DisruptionLimit(
            kind=LimitKind.BUDGET,
            subject=key,
            allowed=allowed[key],
            pods=frozenset(counted[key]),
        )
    for names in sorted(several):
        yield DisruptionLimit(
            kind=LimitKind.SEVERAL_BUDGETS,
            subject=names,
            allowed=0,
            pods=frozenset(several[names]),
        )


def _counts(pod: Pod, budget: PodDisruptionBudget) -> bool:
    """Return whether evicting a pod counts against its budget; for most unready pods the API server counts none."""
    ready = pod.condition("Ready")
    is_ready = ready is not None and ready.status == "True"
    return is_ready or budget.spares_unready_pods


def _of_refusals(refused: Mapping[str, RefusedEviction]) -> Iterator[DisruptionLimit]:
    for uid, refusal in sorted(refused.items()):
        yield DisruptionLimit(
            kind=LimitKind.REFUSAL,
            subject=refusal.pod,
            allowed=0,
            pods=frozenset((uid,)),
            detail=refusal.answer,
        )


def _of_owners(running: Iterable[Pod], most_per_owner: int) -> Iterator[DisruptionLimit]:
    """Yield a limit for every controller whose pods belong to several pod groups.

    A controller with one pod group needs none: a gang is evicted as a whole, or down to its minimum, anyway.
    """
    pods_of: dict[tuple[str, str], list[Pod]] = {}
    for pod in running:
        owner = next((o for o in pod.metadata.owner_references if o.controller), None)
        if owner is not None:
            name = f"{owner.kind} {pod.metadata.namespace}/{owner.name}"
            pods_of.setdefault((name, owner.uid), []).append(pod)
    for (name, _), pods in sorted(pods_of.items()):
        if len({pod.metadata.annotations.get(POD_GROUP, "") for pod in pods}) == 1:
            continue
        leaving = sum(pod.metadata.deletion_timestamp is not None for pod in pods)
        yield DisruptionLimit(
            kind=LimitKind.OWNER,
            subject=name,
            allowed=max(0, most_per_owner - leaving),
            pods=frozenset(pod.metadata.uid for pod in pods),
        )
