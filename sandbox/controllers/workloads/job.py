"""Jobs: pods until enough have succeeded, or too many have failed.

Supports plain and indexed completion, parallelism, work queues (no completions), back-off between failures
and its limit, deadlines, suspension, and the deletion of finished Jobs after their time to live.
Not supported: pod failure policies, success policies, managedBy, per-index back-off.

Finished pods may be deleted while the Job is running. The real controller keeps them with a finalizer
until they are counted; here a tally remembers the ones that were seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kube.process.backoff import doubled_s
from kube.resources import JOBS, PODS
from sandbox.controllers.workloads.objects import Job, Json, WorkPod
from sandbox.controllers.workloads.plan import Plan, first_to_go, pod_body
from sandbox.wallclock import parse_timestamp, timestamp

INDEX = "batch.kubernetes.io/job-completion-index"
BACKOFF_FIRST_S = 10.0
BACKOFF_MOST_S = 600.0


@dataclass(slots=True)
class Tally:
    """The finished pods of one Job: those seen, and the count of those before the simulator started."""

    base_succeeded: int = 0
    base_failed: int = 0
    phase_by_uid: dict[str, str] = field(default_factory=dict)
    last_failure: float = 0.0

    @property
    def succeeded(self) -> int:
        # Copied first, because the watch thread may record a pod meanwhile.
        return self.base_succeeded + list(self.phase_by_uid.values()).count("Succeeded")

    @property
    def failed(self) -> int:
        return self.base_failed + list(self.phase_by_uid.values()).count("Failed")

    def record(self, pods: Iterable[WorkPod], now: float) -> None:
        """Count the finished pods, each once."""
        for pod in pods:
            if pod.is_finished and pod.metadata.uid not in self.phase_by_uid:
                self.phase_by_uid[pod.metadata.uid] = pod.status.phase
                if pod.status.phase == "Failed":
                    self.last_failure = now


def open_tally(job: Job, pods: Iterable[WorkPod]) -> Tally:
    """Return the first tally of a Job: the finished pods in its status that no longer exist."""
    phases = [pod.status.phase for pod in pods]
    return Tally(
        base_succeeded=max(0, int(job.status.get("succeeded", 0)) - phases.count("Succeeded")),
        base_failed=max(0, int(job.status.get("failed", 0)) - phases.count("Failed")),
    )


def plan(job: Job, pods: Sequence[WorkPod], tally: Tally, now: float) -> Plan:
    """Return what to write for one Job.

    Parameters
    ----------
    pods : the pods that the Job owns, in any state
    tally : counts its finished pods; updated here
    now : Unix seconds
    """
    result = Plan()
    tally.record(pods, now)
    if job.is_finished:
        _clean_up(job, now, result)
        return result
    active = [pod for pod in pods if pod.is_active]
    started = _started(job, now)
    completed = _completed_indexes(job, pods)
    succeeded = len(completed) if _is_indexed(job) else tally.succeeded
    end = _end(job, active, succeeded, tally.failed, started, now, result)
    if end is not None:
        result.delete_pods(active)
        _write_status(
            job, pods, result, _Counts(succeeded, tally.failed, completed), started, end, now
        )
        return result
    if job.spec.suspend:
        result.delete_pods(active)
    else:
        _adjust(job, active, succeeded, completed, tally, now, result)
    _write_status(
        job, pods, result, _Counts(succeeded, tally.failed, completed), started, None, now
    )
    return result


@dataclass(frozen=True, slots=True)
class _Counts:
    succeeded: int
    failed: int
    completed: frozenset[int]


@dataclass(frozen=True, slots=True)
class _End:
    """How a Job ends: the condition before its pods have stopped, the final one, and the reason."""

    interim: str
    final: str
    reason: str
    message: str


_COMPLETE = _End("SuccessCriteriaMet", "Complete", "CompletionsReached",
                 "Reached expected number of succeeded pods")  # fmt: skip
_BACKOFF = _End("FailureTarget", "Failed", "BackoffLimitExceeded",
                "Job has reached the specified backoff limit")  # fmt: skip
_DEADLINE = _End("FailureTarget", "Failed", "DeadlineExceeded",
                 "Job was active longer than specified deadline")  # fmt: skip


def _end(
    job: Job,
    active: Sequence[WorkPod],
    succeeded: int,
    failed: int,
    started: float | None,
    now: float,
    result: Plan,
) -> _End | None:
    for end in (_COMPLETE, _BACKOFF, _DEADLINE):
        interim = job.condition(end.interim)
        if interim is not None and interim.get("reason") == end.reason:
            return end
    if failed > job.spec.backoff_limit:
        return _BACKOFF
    deadline = job.spec.active_deadline_seconds
    if deadline is not None and started is not None and not job.spec.suspend:
        if now >= started + deadline:
            return _DEADLINE
        result.look_again_after(started + deadline - now)
    completions = job.spec.completions
    if completions is None:
        return _COMPLETE if succeeded and not active else None
    return _COMPLETE if succeeded >= completions else None


def _adjust(
    job: Job,
    active: Sequence[WorkPod],
    succeeded: int,
    completed: frozenset[int],
    tally: Tally,
    now: float,
    result: Plan,
) -> None:
    """Create or delete pods, so that as many are active as there is work for."""
    completions = job.spec.completions
    if completions is not None:
        desired = min(job.spec.parallelism, completions - succeeded)
    else:
        desired = min(job.spec.parallelism, len(active)) if succeeded else job.spec.parallelism
    if len(active) > desired:
        result.delete_pods(first_to_go(active)[: len(active) - desired])
        return
    missing = desired - len(active)
    if not missing:
        return
    pause = tally.last_failure + _backoff_s(tally.failed) - now if tally.failed else 0.0
    if pause > 0:
        result.look_again_after(pause)
        return
    used_indexes = completed | {_index(pod) for pod in active}
    free_indexes = (index for index in range(completions or 0) if index not in used_indexes)
    for _ in range(missing):
        body = _indexed_pod(job, next(free_indexes)) if _is_indexed(job) else _pod(job)
        result.create(PODS, job.metadata.namespace, body)


def _pod(job: Job, **annotations: str) -> Json:
    meta = job.metadata
    labels = {
        "batch.kubernetes.io/controller-uid": meta.uid,
        "batch.kubernetes.io/job-name": meta.name,
        "controller-uid": meta.uid,
        "job-name": meta.name,
    }
    return pod_body(JOBS, job, job.spec.template, labels=labels, annotations=annotations)


def _indexed_pod(job: Job, index: int) -> Json:
    body = _pod(job, **{INDEX: str(index)})
    body["metadata"]["labels"][INDEX] = str(index)
    body["metadata"]["generateName"] = f"{job.metadata.name}-{index}-"
    spec = {**body["spec"], "hostname": f"{job.metadata.name}-{index}"}
    variable = {"name": "JOB_COMPLETION_INDEX", "value": str(index)}
    spec["containers"] = [
        {**container, "env": [*container.get("env", ()), variable]}
        for container in spec.get("containers", ())
    ]
    return {**body, "spec": spec}


def _write_status(
    job: Job,
    pods: Sequence[WorkPod],
    result: Plan,
    counts: _Counts,
    started: float | None,
    end: _End | None,
    now: float,
) -> None:
    active = [pod for pod in pods if pod.is_active]
    terminating = sum(1 for pod in pods if pod.is_terminating and not pod.is_finished)
    time = timestamp(now)
    desired: Json = {
        "active": len(active) or None,
        "ready": sum(1 for pod in active if pod.is_ready),
        "terminating": terminating,
        "succeeded": counts.succeeded or None,
        "failed": counts.failed or None,
        "startTime": None if started is None else timestamp(started),
    }
    if _is_indexed(job):
        desired["completedIndexes"] = _format_indexes(counts.completed) or None
    desired["conditions"] = _conditions(job, end, time, is_final=not active and not terminating)
    if any(c["type"] == "Complete" for c in desired["conditions"] or ()):
        desired["completionTime"] = time
    result.set_status(JOBS, job, job.status, desired)


def _conditions(job: Job, end: _End | None, time: str, *, is_final: bool) -> list[Json] | None:
    conditions: list[Json] = list(job.status.get("conditions") or ())
    types = {condition["type"]: condition for condition in conditions}

    def put(kind: str, status: str, reason: str, message: str) -> None:
        if types.get(kind, {}).get("status") == status:
            return
        new_condition = {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastProbeTime": time,
            "lastTransitionTime": time,
        }
        conditions[:] = [c for c in conditions if c["type"] != kind] + [new_condition]

    if job.spec.suspend:
        put("Suspended", "True", "JobSuspended", "Job suspended")
    elif "Suspended" in types:
        put("Suspended", "False", "JobResumed", "Job resumed")
    if end is not None:
        put(end.interim, "True", end.reason, end.message)
        if is_final:
            put(end.final, "True", end.reason, end.message)
    return conditions or None


def _clean_up(job: Job, now: float, result: Plan) -> None:
    lifetime = job.spec.ttl_seconds_after_finished
    final = job.condition("Complete") or job.condition("Failed")
    if lifetime is None or final is None or job.metadata.deletion_timestamp is not None:
        return
    remaining_s = parse_timestamp(final["lastTransitionTime"]) + lifetime - now
    if remaining_s > 0:
        result.look_again_after(remaining_s)
    else:
        result.delete(JOBS, job)


def _started(job: Job, now: float) -> float | None:
    text = job.status.get("startTime")
    if job.spec.suspend:
        return None
    return parse_timestamp(text) if text else now


def _backoff_s(failures: int) -> float:
    return doubled_s(failures - 1, first_s=BACKOFF_FIRST_S, max_s=BACKOFF_MOST_S)


def _is_indexed(job: Job) -> bool:
    return job.spec.completion_mode == "Indexed"


def _index(pod: WorkPod) -> int:
    return int(pod.metadata.annotations.get(INDEX, "-1"))


def _completed_indexes(job: Job, pods: Iterable[WorkPod]) -> frozenset[int]:
    recorded = _parse_indexes(job.status.get("completedIndexes", ""))
    return frozenset(
        recorded | {_index(pod) for pod in pods if pod.status.phase == "Succeeded"} - {-1}
    )


def _parse_indexes(text: str) -> set[int]:
    indexes: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        indexes.update(range(int(first), int(last or first) + 1))
    return indexes


def _format_indexes(indexes: Iterable[int]) -> str:
    """Return indexes in the form of the status field, such as `0-2,5`."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in runs)
