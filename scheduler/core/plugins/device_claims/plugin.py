"""Device claims of tasks: checks that need no node, a trial allocation per node, and the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from scheduler.core.arrays import Bools
from scheduler.core.cluster.axis import GPU_ROW
from scheduler.core.cluster.classes import RowAmounts, TaskClass
from scheduler.core.cluster.device_inputs import (
    EXTENDED_CLAIM,
    AllocatedDevice,
    ClaimAllocation,
    DeviceClaim,
    DeviceRequest,
)
from scheduler.core.cluster.matching import matches_any_term
from scheduler.core.cluster.state import ClusterState
from scheduler.core.cluster.status import ACTIVE_USED, TaskStatus
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.plugins.device_claims.allocator.allocator import Allocator, Refusal
from scheduler.core.plugins.device_claims.extended import ExtendedResources
from scheduler.core.plugins.device_claims.ledger import ClaimKey, ClaimLedger, extended_key
from scheduler.core.plugins.device_claims.sharing import MixedNodes, SharedDevices
from scheduler.core.session.fit import CheckFailure, NodeReason, NodeReasonKind
from scheduler.core.session.hooks import Scope
from scheduler.core.session.session import Session

#: Pods that may reserve one claim at the same time; the API server refuses more.
MAX_CONSUMERS = 256
#: Searches that may take too many steps in one cycle, for the tasks of one namespace.
MAX_OVERRUNS = 20


class DeviceClaimsPlugin:
    """The plugin; it registers its hooks only if tasks have claims, or request what a device class provides."""

    name = "dynamicresources"
    scope = Scope.CLUSTER

    def open(self, session: Session) -> None:
        """Copy the claims, adopt the allocations of live bind requests, and register."""
        self._state: ClusterState = session.state
        inputs = session.state.cluster_input.devices
        self._is_served = inputs.available
        self._queue_label = session.config.queue_label_key
        self._extended = ExtendedResources(inputs)
        has_claims = any(
            task_class.constraints.device_claims for task_class in session.state.classes.classes
        )
        self._extended_class_indices = {
            task_class.index
            for task_class in session.state.classes.classes
            if self._extended.are_wanted_by(task_class)
        }
        self._overruns: dict[str, int] = {}
        self.ledger = ClaimLedger(inputs.claims, session.state.journal)
        session.attach(self.ledger)
        mixed = MixedNodes(session.state)
        if mixed.exist:
            session.hooks.fit_rules.append(mixed)
        if not has_claims and not self._extended_class_indices:
            return
        self._allocator = Allocator(inputs, session.state.nodes.inputs)
        self._adopt_bind_requests()
        shared = SharedDevices(session.state, self.ledger)
        shared.correct_charges()
        session.hooks.checks.append(self)
        session.hooks.filters.append(self)
        session.hooks.listeners.append(self)
        session.hooks.fit_rules.append(_DeviceBackedRule(self))
        if shared.exist:
            session.hooks.fit_rules.append(shared)
            session.state.charge_rules.append(shared.adjust)

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether tasks have claims or request resources that a device class provides."""
        return (
            bool(task_class.constraints.device_claims)
            or task_class.index in self._extended_class_indices
        )

    # -------------------------------------------------------------------------------------- check

    def check(self, task: int, task_class: TaskClass) -> CheckFailure | None:
        """Return the first problem of a task's claims that does not depend on the node."""
        references = task_class.constraints.device_claims
        if not references:
            return None
        inputs = self._state.tasks.inputs[task]
        pod = f"{inputs.namespace}/{inputs.name}"
        if not self._is_served:
            return self._failure(
                f"pod {pod} cannot be scheduled, it references resource claims "
                f"{', '.join(reference.claim for reference in references)} while dynamic resource allocation is not available in the "
                f"cluster"
            )
        for reference in references:
            key = (task_class.namespace, reference.claim)
            claim = self.ledger.claims.get(key)
            if claim is None:
                return self._failure(f"resource claim {key[0]}/{key[1]} does not exist")
            problem = self._problem(claim, key, inputs.uid)
            if not reference.from_template and not problem:
                problem = self._label_problem(claim, task, pod)
            if problem:
                return self._failure(problem)
        return None

    def _problem(self, claim: DeviceClaim, key: ClaimKey, uid: str) -> str:
        """Return what is wrong with a claim for the pod with this uid, or ""."""
        name = f"{key[0]}/{key[1]}"
        consumers = self.ledger.consumers(key)
        if uid not in consumers and len(consumers) >= MAX_CONSUMERS:
            return (
                f"resource claim {name} has reached its maximum number of consumers "
                f"({MAX_CONSUMERS})"
            )
        if self.ledger.allocation(key) is None:
            for request in _all_requests(claim):
                if self._allocator.device_class(request.device_class) is None:
                    return (
                        f"device class {request.device_class} does not exist for claim {name} "
                        f"request {request.name}"
                    )
        return ""

    def _label_problem(self, claim: DeviceClaim, task: int, pod: str) -> str:
        """Return what is wrong with the queue label that a claim for several pods must have, or ""."""
        if not any(is_gpu(request.device_class) for request in _all_requests(claim)):
            return ""
        group = self._state.tasks.pod_group[task]
        queue = self._state.pod_groups.inputs[group].queue if group != NOWHERE else ""
        label = claim.labels.get(self._queue_label)
        prefix = f"pod {pod} cannot be scheduled: DRA claim {claim.name} is a shared GPU claim"
        if label is None:
            return f"{prefix} but does not have a queue label ({self._queue_label})"
        if label != queue:
            return (
                f"{prefix} with wrong queue label (expected queue: {queue}, claim queue label: "
                f"{label})"
            )
        return ""

    def _failure(self, text: str) -> CheckFailure:
        return CheckFailure(check="DynamicResources", text=text, stands_alone=True)

    # ------------------------------------------------------------------------------------- filter

    def mask(self, task: int, task_class: TaskClass) -> Bools:
        """Return which nodes can serve all claims of a task."""
        nodes = range(len(self._state.nodes))
        return np.array([self.passes(task, task_class, node) for node in nodes], dtype=np.bool_)

    def passes(self, task: int, task_class: TaskClass, node: int) -> bool:
        """Return whether one node can serve all claims of a task."""
        return self._claim_elsewhere(task_class, node) is None and not isinstance(
            self._allocations(task, task_class, node), Refusal
        )

    def reasons(self, task: int, task_class: TaskClass, node: int) -> tuple[NodeReason, ...]:
        """Return why a node cannot serve the claims of a task; no reason if it can."""
        name = self._state.nodes.inputs[node].name
        claim = self._claim_elsewhere(task_class, node)
        if claim is not None:
            subject = f"{claim[0]}/{claim[1]}"
            return (NodeReason(NodeReasonKind.CLAIM_ELSEWHERE, subject, name),)
        refusal = self._allocations(task, task_class, node)
        if isinstance(refusal, Refusal):
            return (NodeReason(NodeReasonKind.DEVICES, refusal.cause, name),)
        return ()

    def _claim_elsewhere(self, task_class: TaskClass, node: int) -> ClaimKey | None:
        """Return the first claim of a task whose devices cannot be used on a node."""
        inputs = self._state.nodes.inputs[node]
        for key in self._keys(task_class):
            allocation = self.ledger.allocation(key)
            terms = None if allocation is None else allocation.node_terms
            if terms is not None and not matches_any_term(inputs, terms):
                return key
        return None

    def _allocations(
        self, task: int, task_class: TaskClass, node: int
    ) -> list[ClaimAllocation] | Refusal:
        """Return new allocations for the claims of a task without devices, or why a node cannot serve them.

        Devices that the task had before are preferred, if they are free and on this node.
        """
        claims = self._unallocated(task, task_class, node)
        if not claims:
            return []
        before = self._state.tasks.claim_allocations.get(task, ())
        remembered = {allocation.claim: allocation for allocation in before}
        # A claim that the scheduler created may be left from a bind that failed. It holds devices for this task.
        previous = self.ledger.allocation(extended_key(self._state.tasks.inputs[task].uid))
        leaving = () if previous is None else previous.devices
        if previous is not None:
            remembered.setdefault(EXTENDED_CLAIM, previous)
        usable = [
            allocation
            for claim in claims
            if (allocation := remembered.get(claim.name)) is not None
            and self._is_usable(allocation, claim, node, leaving)
        ]
        if usable:
            names = {allocation.claim for allocation in usable}
            others = [claim for claim in claims if claim.name not in names]
            beside = [device for allocation in usable for device in allocation.devices]
            result = self._search(task_class, others, node, leaving, beside)
            if not isinstance(result, Refusal):
                return [*usable, *result]
        return self._search(task_class, claims, node, leaving)

    def _search(
        self,
        task_class: TaskClass,
        claims: list[DeviceClaim],
        node: int,
        leaving: Sequence[AllocatedDevice],
        beside: Sequence[AllocatedDevice] = (),
    ) -> list[ClaimAllocation] | Refusal:
        """Search devices for claims, unless searches for this namespace took too long already."""
        if not claims:
            return []
        overruns = self._overruns.get(task_class.namespace, 0)
        if overruns >= MAX_OVERRUNS:
            return Refusal(f"{overruns} searches for devices took too many steps in this cycle")
        result = self._allocator.allocate(claims, node, self.ledger, leaving=leaving, beside=beside)
        if isinstance(result, Refusal) and result.is_overrun:
            self._overruns[task_class.namespace] = overruns + 1
        return result

    def _is_usable(
        self,
        allocation: ClaimAllocation,
        claim: DeviceClaim,
        node: int,
        leaving: Sequence[AllocatedDevice],
    ) -> bool:
        terms = allocation.node_terms
        if claim.is_extended_resource and allocation.requests != claim.requests:
            return False
        is_on_node = terms is None or matches_any_term(self._state.nodes.inputs[node], terms)
        return is_on_node and self._allocator.is_free(
            allocation, node, self.ledger, leaving=leaving
        )

    def _unallocated(self, task: int, task_class: TaskClass, node: int) -> list[DeviceClaim]:
        claims = [
            self.ledger.claims[key]
            for key in self._keys(task_class)
            if self.ledger.allocation(key) is None
        ]
        resources = self._resources_by_claim(task_class, node)
        if resources:
            uid = self._state.tasks.inputs[task].uid
            claims.append(replace(self._extended.claim(task_class, resources), uid=uid))
        return claims

    def _resources_by_claim(self, task_class: TaskClass, node: int) -> frozenset[str]:
        """Return the extended resources that a task gets on a node through a created claim."""
        if task_class.index not in self._extended_class_indices:
            return frozenset()
        return self._extended.missing_on(task_class, self._state.nodes.inputs[node])

    def missing_rows(self, task: int, node: int) -> frozenset[int]:
        """Return the rows that need not be free on a node, since a device class provides them."""
        task_class = self._state.tasks.task_class[task]
        rows = self._state.axis.row_of
        return frozenset(
            rows[name] for name in self._resources_by_claim(task_class, node) if name in rows
        )

    # ------------------------------------------------------------------------------------- ledger

    def placed(self, task: int, node: int) -> None:
        """Reserve a task's claims and give devices to those that have none."""
        task_class = self._state.tasks.task_class[task]
        uid = self._state.tasks.inputs[task].uid
        allocations = self._allocations(task, task_class, node)
        self.ledger.free(extended_key(uid))
        for allocation in () if isinstance(allocations, Refusal) else allocations:
            key = (task_class.namespace, allocation.claim)
            if allocation.claim == EXTENDED_CLAIM:
                key = extended_key(uid)
            self.ledger.allocate(key, allocation)
        for key in self._keys(task_class):
            self.ledger.reserve(key, uid)
        self._remember(task, task_class, uid)

    def left(self, task: int, node: int) -> None:
        """Drop a task's reservations; devices that no task reserves any more are free."""
        del node
        task_class = self._state.tasks.task_class[task]
        uid = self._state.tasks.inputs[task].uid
        # If the eviction is taken back, the task holds the same devices as before.
        self._remember(task, task_class, uid)
        for key in self._keys(task_class):
            self.ledger.unreserve(key, uid)
        self.ledger.free(extended_key(uid))

    def _remember(self, task: int, task_class: TaskClass, uid: str) -> None:
        keys = [*self._keys(task_class), extended_key(uid)]
        current = [self.ledger.allocation(key) for key in keys]
        allocations = tuple(allocation for allocation in current if allocation is not None)
        remembered = self._state.tasks.claim_allocations
        if allocations and remembered.get(task) != allocations:
            self._state.journal.insert(remembered, task, allocations)

    def _keys(self, task_class: TaskClass) -> list[ClaimKey]:
        return [
            (task_class.namespace, reference.claim)
            for reference in task_class.constraints.device_claims
            if (task_class.namespace, reference.claim) in self.ledger.claims
        ]

    def _adopt_bind_requests(self) -> None:
        """Adopt the allocations of live bind requests that the claims do not show yet."""
        tasks = self._state.tasks
        for task, allocations in sorted(tasks.claim_allocations.items()):
            if not ACTIVE_USED[tasks.status[task]]:
                continue
            inputs = tasks.inputs[task]
            for allocation in allocations:
                key = (inputs.namespace, allocation.claim)
                if allocation.claim == EXTENDED_CLAIM:
                    key = extended_key(inputs.uid)
                self.ledger.assume(key, allocation)
                if tasks.status[task] != TaskStatus.RELEASING:
                    self.ledger.assume_reserved(key, inputs.uid)


class _DeviceBackedRule:
    """A fit rule: a resource that a device class provides need not be free as a plain resource."""

    def __init__(self, plugin: DeviceClaimsPlugin) -> None:
        self._plugin = plugin

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether tasks may get another resource than GPUs from a device class; nodes report GPUs."""
        return bool(task_class.request.other) and self._plugin.concerns(task_class)

    def adjust(self, task: int, node: int, needs: RowAmounts) -> RowAmounts:
        """Return the needs without the rows that a device class provides."""
        rows = self._plugin.missing_rows(task, node) - {GPU_ROW}
        return tuple(need for need in needs if need[0] not in rows) if rows else needs


def _all_requests(claim: DeviceClaim) -> Iterator[DeviceRequest]:
    """Yield the requests of a claim, with alternatives in place of a request that has some."""
    for request in claim.requests:
        yield from request.alternatives or (request,)


def is_gpu(device_class: str) -> bool:
    """Return whether a device class provides GPUs."""
    return "gpu" in device_class.lower()
