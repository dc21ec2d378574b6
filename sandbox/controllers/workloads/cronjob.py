"""CronJobs: a Job at each time of the schedule.

Supports concurrency policies, suspension, starting deadlines, time zones and the history of finished Jobs.
Of the runs that were missed while the simulator was down, only the latest is started.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import croniter
from croniter.croniter import CroniterError

from kube.resources import CRONJOBS, JOBS
from sandbox.controllers.workloads.objects import CronJob, Job, Json
from sandbox.controllers.workloads.plan import Plan, owner_reference
from sandbox.wallclock import parse_timestamp, timestamp

log = logging.getLogger(__name__)

SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"


def plan(cronjob: CronJob, jobs: Sequence[Job], now: float) -> Plan:
    """Return what to write for one CronJob; `jobs` are those it owns, finished or not."""
    result = Plan()
    active = [job for job in jobs if not job.is_finished]
    last = cronjob.status.get("lastScheduleTime")
    if not cronjob.spec.suspend and cronjob.metadata.deletion_timestamp is None:
        due_at = _run_due(cronjob, now, result)
        if due_at is not None and _may_start(cronjob, active, due_at, now, result):
            result.create(JOBS, cronjob.metadata.namespace, _job(cronjob, due_at))
            last = timestamp(due_at)
    _delete_old_jobs(cronjob, jobs, result)
    status = {"active": [_reference(job) for job in active] or None, "lastScheduleTime": last}
    result.set_status(CRONJOBS, cronjob, cronjob.status, status)
    return result


def _run_due(cronjob: CronJob, now: float, result: Plan) -> float | None:
    """Return the latest past time of the schedule without a run; plan the next pass."""
    last = cronjob.status.get("lastScheduleTime")
    since = parse_timestamp(last) if last else cronjob.metadata.created
    try:
        zone: tzinfo = ZoneInfo(cronjob.spec.time_zone) if cronjob.spec.time_zone else UTC
        times = croniter(cronjob.spec.schedule, datetime.fromtimestamp(now, tz=zone))
        latest = float(times.get_prev(float))
        times = croniter(cronjob.spec.schedule, datetime.fromtimestamp(now, tz=zone))
        result.look_again_after(float(times.get_next(float)) - now + 0.01)
    except (CroniterError, ZoneInfoNotFoundError) as error:
        log.warning("cron job %s: schedule %r: %s", cronjob.key, cronjob.spec.schedule, error)
        return None
    return latest if latest > since else None


def _may_start(
    cronjob: CronJob, active: Sequence[Job], due_at: float, now: float, result: Plan
) -> bool:
    deadline = cronjob.spec.starting_deadline_seconds
    if deadline is not None and now > due_at + deadline:
        return False
    if active and cronjob.spec.concurrency_policy == "Forbid":
        return False
    if cronjob.spec.concurrency_policy == "Replace":
        for job in active:
            result.delete(JOBS, job)
    return True


def _job(cronjob: CronJob, due_at: float) -> Json:
    template = cronjob.spec.job_template
    of_template = template.get("metadata", {})
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"{cronjob.metadata.name}-{int(due_at) // 60}",
            "labels": of_template.get("labels", {}),
            "annotations": {**of_template.get("annotations", {}), SCHEDULED: timestamp(due_at)},
            "ownerReferences": [owner_reference(CRONJOBS, cronjob)],
        },
        "spec": template.get("spec", {}),
    }


def _delete_old_jobs(cronjob: CronJob, jobs: Sequence[Job], result: Plan) -> None:
    for kind, limit in (
        ("Complete", cronjob.spec.successful_jobs_history_limit),
        ("Failed", cronjob.spec.failed_jobs_history_limit),
    ):
        ended = sorted(
            (job for job in jobs if job.condition(kind) is not None),
            key=lambda job: job.metadata.created,
        )
        for job in ended[: max(0, len(ended) - limit)]:
            if job.metadata.deletion_timestamp is None:
                result.delete(JOBS, job)


def _reference(job: Job) -> Json:
    meta = job.metadata
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
    }
