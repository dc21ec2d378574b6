"""The state machine: pods arrive, finish, fail and are evicted in random order, while requests fail."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kube.resources import PODS
from scheduler.loop.cycle import CycleSummary
from tests.binder.machine.checks import check_devices, check_nothing_is_left_over, is_live
from tests.binder.machine.cluster import KINDS, DeviceCluster, is_finished, node_of
from tests.binder.machine.faults import Fault
from tests.binder.machine.kubelet import Kubelet
from tests.binder.machine.parts import BinderPart, SchedulerPart

NAMES = ("p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7")
PRIORITIES = st.sampled_from(("low", "low", "high"))
ENDS = ("Succeeded", "Failed", "deleted", "evicted")
#: Longer than the longest pause of a failed bind, the rest of a node and the claim of a dead binder.
LONG_S = 400.0
QUIET_ROUNDS, ENDING_ROUNDS = 4, 10
#: Which of its watches (bind requests, pods, nodes) a binder sees news of.
NEWS = st.sampled_from((slice(None), slice(None), slice(0, 1), slice(1, 2), slice(0)))
PLANS = st.none() | st.tuples(st.sampled_from(Fault), st.integers(0, 9))
Plan = tuple[Fault, int] | None
#: What others do while a process stands still.
STORIES = st.sampled_from(("blind", "round", "end", "end and arrive"))


class Devices(RuleBasedStateMachine):
    """One cluster, one scheduler, two binders."""

    @initialize(kinds=st.lists(st.sampled_from(KINDS), min_size=2, max_size=5))
    def begin(self, kinds: list[str]) -> None:
        self.cluster = DeviceCluster()
        self.cluster.begin()
        self.kubelet = Kubelet(self.cluster)
        self.scheduler = SchedulerPart(self.cluster)
        self.binders = [BinderPart(self.cluster, self.kubelet) for _ in range(2)]
        self.is_interrupted = False
        for kind in kinds:
            self._arrive(kind, "low")
        self._round(0)

    # ------------------------------------------------------------------------------------- pods

    @rule(kind=st.sampled_from(KINDS), priority=PRIORITIES)
    def arrive(self, kind: str, priority: str) -> None:
        self._arrive(kind, priority)

    @rule(number=st.integers(0, 7), how=st.sampled_from(ENDS))
    def end(self, number: int, how: str) -> None:
        self._end(number, how)

    @rule(number=st.integers(0, 7), kind=st.sampled_from(KINDS), priority=PRIORITIES)
    def replace(self, number: int, kind: str, priority: str) -> None:
        """Let a pod end, the scheduler decide for another, and one binder see nothing of both yet."""
        self._end(number, "Succeeded")
        self._arrive(kind, priority)
        self.scheduler.cycle()

    # -------------------------------------------------------------------------------- processes

    @rule(
        seconds=st.sampled_from((0.0, 1.0, 3.0)),
        sees_changes=st.sampled_from((True, True, False)),
        plan=PLANS,
    )
    def cycle(self, seconds: float, sees_changes: bool, plan: Plan) -> None:
        self.cluster.wait(seconds)
        self.scheduler.gateway.disturb(plan, self._let_bind)
        self.scheduler.cycle(sees_changes=sees_changes)

    @rule(index=st.sampled_from((0, 1)), watched=NEWS, plan=PLANS, story=STORIES)
    def bind(self, index: int, watched: slice, plan: Plan, story: str) -> None:
        binder = self.binders[index]
        binder.gateway.disturb(plan, lambda: self._go_on(self.binders[1 - index], story))
        binder.work(watched=watched)

    @rule()
    def run_kubelets(self) -> None:
        self.kubelet.step()

    @rule(seconds=st.sampled_from((0.0, 11.0)))
    def everything(self, seconds: float) -> None:
        self._round(seconds)

    @rule(index=st.sampled_from((0, 1, 2)))
    def restart(self, index: int) -> None:
        (self.scheduler, *self.binders)[index].restart()

    # ----------------------------------------------------------------------------------- checks

    @invariant()
    @precondition(lambda self: hasattr(self, "cluster"))
    def no_device_is_given_twice(self) -> None:
        check_devices(self.cluster)

    def teardown(self) -> None:
        if not hasattr(self, "cluster"):
            return
        for part in (self.scheduler, *self.binders):
            part.gateway.plan.clear()
        summary = None
        for _ in range(QUIET_ROUNDS):
            summary = self._round(LONG_S)
        assert summary is not None
        self._check_reasons(summary)
        check_nothing_is_left_over(self.cluster)
        self._check_that_all_pods_get_their_turn()

    def _check_reasons(self, summary: CycleSummary) -> None:
        for body in self.cluster.users():
            if node_of(body) or is_finished(body):
                continue
            name = body["metadata"]["name"]
            standing = summary.standings.get(f"ns/{name}")
            assert standing is not None, f"{name} is pending without a standing"
            assert standing.code, f"{name} is pending without a reason"

    def _check_that_all_pods_get_their_turn(self) -> None:
        """End what runs until nothing waits: then every pod had a place, and all devices are free."""
        for _ in range(ENDING_ROUNDS):
            unfinished = [body for body in self.cluster.users() if not is_finished(body)]
            if not unfinished:
                break
            for body in unfinished:
                if body["status"]["phase"] == "Running":
                    self.kubelet.finish(body, "Succeeded")
            self._round(LONG_S)
        waiting = [
            body["metadata"]["name"] for body in self.cluster.users() if not is_finished(body)
        ]
        assert not waiting, f"never placed: {waiting}"
        self._round(LONG_S)
        check_nothing_is_left_over(self.cluster)
        assert not self.cluster.holders()

    def _round(self, seconds: float) -> CycleSummary | None:
        return self._round_with(self.binders, seconds)

    def _round_with(self, binders: list[BinderPart], seconds: float) -> CycleSummary | None:
        self.cluster.wait(seconds)
        self.kubelet.step()
        summary = self.scheduler.cycle()
        for binder in binders:
            binder.work()
        self.kubelet.step()
        check_devices(self.cluster)
        return summary

    def _go_on(self, other: BinderPart, story: str) -> None:
        """Let the rest of the cluster go on while a process stands still."""
        if self.is_interrupted:
            return
        self.is_interrupted = True
        if story.startswith("end"):
            self._end(0, "Succeeded")
        if story == "end and arrive":
            self._arrive("half", "low")
            self.scheduler.cycle()
        if story == "blind":
            other.work(watched=slice(0))
        else:
            self._round_with([other], 11)
            self._round_with([other], 11)
        self.is_interrupted = False

    def _let_bind(self) -> None:
        """Let a binder work while the scheduler stands still; one that stands still itself cannot."""
        if not self.is_interrupted:
            self.is_interrupted = True
            self.binders[0].work()
            self.is_interrupted = False

    def _arrive(self, kind: str, priority: str) -> None:
        name = next((item for item in NAMES if self._is_free(item)), None)
        if name is None:
            return
        body = self._pod(name)
        if body is not None:
            self.cluster.delete(PODS, name, namespace="ns", grace_period_s=0)
        self.cluster.arrive(name, kind, priority)

    def _is_free(self, name: str) -> bool:
        body = self._pod(name)
        return body is None or is_finished(body)

    def _end(self, number: int, how: str) -> None:
        """End one of the running pods, or delete one of all pods."""
        is_deletion = how in ("deleted", "evicted")
        pods = [
            body
            for body in self.cluster.users()
            if body["status"]["phase"] == "Running" or (is_deletion and not is_finished(body))
        ]
        if not pods:
            return
        body = sorted(pods, key=lambda item: str(item["metadata"]["name"]))[number % len(pods)]
        name = body["metadata"]["name"]
        if how == "deleted":
            self.cluster.delete(
                PODS, name, namespace="ns", grace_period_s=None if is_live(body) else 0
            )
        elif how == "evicted":
            self.cluster.evict("ns", name, pod_uid=body["metadata"]["uid"])
        else:
            self.kubelet.finish(body, how)

    def _pod(self, name: str) -> dict[str, Any] | None:
        return self.cluster.objects.get((PODS, "ns", name))
