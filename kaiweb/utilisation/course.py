"""The utilisation of each workload over time: means over steps of five minutes, kept for three days."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kaiweb.utilisation.models import WorkloadStep, WorkloadUtilisation

STEP = timedelta(minutes=5)
KEPT = timedelta(days=3)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def step_start(moment: datetime) -> datetime:
    """Return the start of the step that contains the moment."""
    return moment - (moment - EPOCH) % STEP


def note(now: datetime) -> None:
    """Add the reading that was just taken to the current step, and delete old steps."""
    start = step_start(now)
    steps = {row.workload: row for row in WorkloadStep.objects.filter(start=start)}
    new_rows = []
    for row in WorkloadUtilisation.objects.filter(measured_at=now):
        step = steps.get(row.workload)
        if step is None:
            step = WorkloadStep(workload=row.workload, start=start, percent_sum=0.0, readings=0)
            new_rows.append(step)
        step.percent_sum += row.percent
        step.readings += 1
    WorkloadStep.objects.bulk_create(new_rows, batch_size=1000)
    sums = ["percent_sum", "readings"]
    WorkloadStep.objects.bulk_update(steps.values(), sums, batch_size=500)
    WorkloadStep.objects.filter(start__lt=now - KEPT).delete()


def series(
    workload: str, start: datetime, end: datetime
) -> tuple[list[datetime], list[float | None]]:
    """Return the starts of the steps between two moments, and the mean of each; None where nothing was read."""
    first = max(step_start(start), step_start(end - KEPT))
    rows = WorkloadStep.objects.filter(workload=workload, start__gte=first, start__lt=end)
    means = {row.start: round(row.percent_sum / row.readings, 1) for row in rows if row.readings}
    times = []
    moment = first
    while moment < end:
        times.append(moment)
        moment += STEP
    return times, [means.get(moment) for moment in times]
