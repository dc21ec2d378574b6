"""Rules about explanations: a waiting pod group has a reason, one that was served has none."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.core.actions.base import pending_views
from scheduler.core.cluster.status import TaskStatus
from scheduler.explain.standings import standings
from scheduler.explain.verdicts import verdicts
from tests.scheduler.fuzz.cycles import CycleRun, Finding


def explanations_agree(cycle_run: CycleRun) -> Iterator[Finding]:
    """A pod group that was tried and waits has a code; one whose pods all hold a place and run has none."""
    session = cycle_run.session
    codes = {key: value.code for key, value in standings(session, verdicts(session, 0.0)).items()}
    waiting = {
        session.state.pod_groups.inputs[view.pod_group].name for view in pending_views(session)
    }
    for group in cycle_run.cluster.pod_groups:
        code = codes.get(f"{group.namespace}/{group.name}")
        pods = cycle_run.pods_of(group.name)
        if group.name in waiting and not code:
            yield Finding("no reason", f"{group.name} waits without a reason")
        has_nominated = any(pod.after == TaskStatus.NOMINATED for pod in pods)
        if code and all(pod.holds_after for pod in pods) and not has_nominated:
            yield Finding(
                "reason of a served group", f"{group.name} is served, its reason is {code}"
            )
