"""The health of the installation, for callers with a log-in."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import View
from kaiweb.api.schema import health as schema
from kaiweb.health import views as health
from kaiweb.health.checks import children
from kube.process.left_out import read_entries
from kube.values.times import format_time


class Health(View):
    """Readiness with the names of objects, which `/readyz` leaves out because it is open to everybody."""

    @extend_schema(operation_id="getHealth", responses=schema.Health)
    def get(self, request: Request) -> Response:
        """Return what does not work and since when, how the processes are, and which objects are left out."""
        faults = health.READINESS.faults()
        return Response(
            {
                "status": "unready" if faults else "ok",
                "faults": [
                    {"check": f.check, "fault": f.text, "since": format_time(f.since)}
                    for f in faults
                ],
                "processes": [
                    {
                        "name": name,
                        "fault": child.fault,
                        "heldObject": child.held or None,
                        "restarts": child.restarts,
                        "hangs": child.hangs,
                    }
                    for name, child in children().items()
                ],
                "setAside": [
                    {
                        "process": entry.process,
                        "kind": entry.held.kind,
                        "namespace": entry.held.namespace,
                        "name": entry.held.name,
                        "time": entry.time,
                        "reason": entry.reason,
                    }
                    for entry in read_entries(Path(settings.KAIWEB_HOME))
                ],
            }
        )
