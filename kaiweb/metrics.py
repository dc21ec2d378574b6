"""`/metrics` of the web process in Prometheus text, with the state of the mirror read at scrape time.

Queue and scheduler metrics (`kai_…`) come from the processes that own them; here is what only the web
side knows: requests, live sockets, and how old the mirror's picture is.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from queues import live
from queues.mirror.identity import RECORD
from queues.models import MirrorState, Node, PodGroup, Queue, WorkloadState


class MirrorCollector(Collector):
    """Reads counts and ages from the database when Prometheus asks."""

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Describe nothing up front, so that registering does not touch the database."""
        return iter(())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the families."""
        now = timezone.now()
        age = GaugeMetricFamily(
            "kaiweb_mirror_age_seconds",
            "Seconds since the mirror last heard of a kind",
            labels=["kind"],
        )
        for state in MirrorState.objects.exclude(kind=RECORD):
            age.add_metric([state.kind], max(0.0, (now - state.seen_at).total_seconds()))
        yield age
        rows = GaugeMetricFamily("kaiweb_mirror_rows", "Rows in the mirror", labels=["kind"])
        rows.add_metric(["Queue"], Queue.objects.count())
        rows.add_metric(["Node"], Node.objects.count())
        for state_name in WorkloadState.values:
            rows.add_metric(
                [f"PodGroup/{state_name}"], PodGroup.objects.filter(state=state_name).count()
            )
        yield rows
        yield GaugeMetricFamily(
            "kaiweb_live_position", "Newest position of the live change log", value=live.position()
        )


# Registered once: the module is imported once per process.
REGISTRY.register(MirrorCollector())


def metrics(_request: HttpRequest) -> HttpResponse:
    """Answer a scrape."""
    return HttpResponse(generate_latest(REGISTRY), content_type=CONTENT_TYPE_LATEST)
