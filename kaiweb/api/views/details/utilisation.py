"""How busy the GPUs of a workload were."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import Shows, View
from kaiweb.api.schema import workloads as schema
from kaiweb.api.views.workloads import find
from kaiweb.items.amounts import timestamp
from kaiweb.utilisation import course

SHOWN = timedelta(days=1)


class WorkloadUtilisation(View):
    """The utilisation of one workload over time."""

    shows = Shows.WORKLOAD
    accepts: ClassVar = {"get": ()}

    @extend_schema(
        operation_id="getWorkloadUtilisation", responses=schema.WorkloadUtilisationCourse
    )
    def get(self, request: Request, namespace: str, name: str) -> Response:
        """Return the mean utilisation of the workload's GPUs in steps of five minutes, over a day at most."""
        row = find(namespace, name)
        now = timezone.now()
        times, percents = course.series(row.key, max(row.created_at, now - SHOWN), now)
        return Response(
            {
                "stepSeconds": int(course.STEP.total_seconds()),
                "times": [timestamp(moment) for moment in times],
                "utilisation": percents,
            }
        )
