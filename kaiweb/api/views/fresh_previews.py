"""Whether the preview that a caller has seen may still be relied on when the change is applied."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone
from rest_framework.request import Request

from kaiweb.api.base import caller
from kaiweb.api.errors import Problem
from kaiweb.api.views.simulations import PREVIEW_WAIT_S, start_simulation
from kaiweb.models import ChangeSet, Simulation, SimulationState
from kaiweb.planning.previews import is_worse

PREVIEW_LIFE = timedelta(seconds=60)


def check_preview(
    request: Request, row: ChangeSet, number: int | None, question: dict[str, Any]
) -> None:
    """Refuse a preview of other edits, one that has become worse, and evictions without a reason.

    A preview that is too old is made again, and may only be as good as it was.

    Parameters
    ----------
    number : the preview that the caller has seen; None: nothing is checked
    """
    if number is None:
        return
    preview = Simulation.objects.filter(pk=number, state=SimulationState.DONE).first()
    if preview is None or preview.pk != row.preview_id:
        raise Problem("preview-stale", "preview the change again: the preview is of other edits")
    if preview.created_at < timezone.now() - PREVIEW_LIFE:
        preview = _repeated(request, preview, question)
    if preview.verdict == "evicts" and not row.reason.strip():
        raise Problem("validation", "reason: expected one, because the change evicts workloads")


def _repeated(request: Request, preview: Simulation, question: dict[str, Any]) -> Simulation:
    """Return a new preview that is not worse than an old one."""
    if not caller(request).may_simulate:
        raise Problem("preview-stale", "preview the change again: the preview is old")
    newer = start_simulation(request, question, PREVIEW_WAIT_S)
    if newer.state != SimulationState.DONE:
        raise Problem("preview-stale", "the preview is old, and a new one was not finished in time")
    if is_worse(newer.answer, preview.answer):
        detail = "the cluster has changed, and the change does more harm than its preview says"
        raise Problem("preview-stale", detail, extra={"preview": newer.pk})
    return newer
