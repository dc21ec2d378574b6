"""`/metrics` of the web process in Prometheus text, with the state of the mirror read at scrape time.

Queue and scheduler metrics (`kai_…`) come from the processes that compute them. Here is what only the web process
knows: requests, live sockets, and the age of the mirror's data.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kaiweb.health import views as health
from kaiweb.health.checks import WRITE_TEST, children
from kube.process.progress import FOLDER, read_beat
from queues import live
from queues.mirror.turns import RECORD
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
        for state in MirrorState.objects.exclude(kind__in=(RECORD, WRITE_TEST)):
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


class ProcessCollector(Collector):
    """Reads the signs of life of all processes of this machine when Prometheus asks."""

    def describe(self) -> Iterator[Metric]:
        """Describe nothing up front: there may be no files yet."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield the families."""
        now = time.monotonic()
        age = GaugeMetricFamily(
            "kaiweb_process_progress_age_seconds",
            "Seconds since the last sign of the thread that is silent for longest",
            labels=["process"],
        )
        for file in sorted((Path(settings.KAIWEB_HOME) / FOLDER).glob("*.beat")):
            beat = read_beat(file)
            if beat is not None and beat.signs:
                at_work = [sign.moment for sign in beat.signs if sign.limit_s]
                age.add_metric([file.stem], max(0.0, now - min(at_work or [beat.latest()])))
        yield age
        restarts = CounterMetricFamily(
            "kaiweb_watchdog_restarts",
            "How often a process was ended because it stood still",
            labels=["process"],
        )
        for name, child in children().items():
            restarts.add_metric([name], child.hangs)
        yield restarts


class CheckCollector(Collector):
    """Reports the checks of readiness, so that alerts need no probe of `/readyz`."""

    def describe(self) -> Iterator[Metric]:
        """Describe nothing up front, so that registering runs no check."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield the family."""
        failed = GaugeMetricFamily(
            "kaiweb_check_failed",
            "1 for each check of /readyz that fails, else 0",
            labels=["check"],
        )
        faults = {fault.check for fault in health.READINESS.faults()}
        for check in sorted({*health.READINESS.checks, *faults}):
            failed.add_metric([check], float(check in faults))
        yield failed


# Registered once: the module is imported once per process.
REGISTRY.register(MirrorCollector())
REGISTRY.register(ProcessCollector())
REGISTRY.register(CheckCollector())


def metrics(request: HttpRequest) -> HttpResponse:
    """Answer a scrape, but not for everybody: the numbers cost queries and describe the cluster."""
    if not _may_scrape(request):
        response = HttpResponse(
            "Metrics are for this machine, or for a bearer token set as KAIWEB_METRICS_TOKEN.\n",
            content_type="text/plain; charset=utf-8",
            status=401,
        )
        response["WWW-Authenticate"] = "Bearer"
        return response
    return HttpResponse(generate_latest(REGISTRY), content_type=CONTENT_TYPE_LATEST)


def _may_scrape(request: HttpRequest) -> bool:
    """Return whether the token is right or, where none is set, the client is on this machine."""
    token: str = settings.KAIWEB_METRICS_TOKEN
    if token:
        scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
        return scheme.lower() == "bearer" and constant_time_compare(secret.strip(), token)
    if "X-Forwarded-For" in request.headers or "Forwarded" in request.headers:
        return False  # sent by a proxy on this machine for a client elsewhere
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False
