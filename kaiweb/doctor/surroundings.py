"""The clock of the API server, and what kaiweb needs beside the cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from kaiweb.doctor.finding import ClusterContext, Finding, fault, note, warning
from kaiweb.health.checks import BrokerCheck, DatabaseCheck, MigrationsCheck
from kube.resources import LEASES
from kube.values.times import parse_time

#: A timestamp of the API has no fraction of a second.
RESOLUTION = timedelta(seconds=1)
SKEW_WARNING_S = 5.0
SKEW_FAULT_S = 60.0


def check_clock(context: ClusterContext) -> Iterator[Finding]:
    """Compare our clock with that of the API server, which dates an object in a dry run."""
    body = {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"generateName": "kaiweb-doctor-", "namespace": context.namespace},
    }
    before = context.now()
    answer = context.gateway.create(LEASES, body, namespace=context.namespace, dry_run=True)
    after = context.now()
    stamp = answer["metadata"].get("creationTimestamp")
    if not stamp:
        yield note("clock", "the API server does not date objects in a dry run")
        return
    server_time = parse_time(stamp)
    seconds = skew_s(before, server_time, after)
    if seconds > SKEW_WARNING_S:
        report = fault if seconds > SKEW_FAULT_S else warning
        yield report(
            "clock",
            f"ours and that of the API server are {seconds:.0f} s apart",
            "start a time service on both machines: Leases, certificates and runtimes depend on it",
        )


def skew_s(before: datetime, server_time: datetime, after: datetime) -> float:
    """Return how far apart two clocks are at least, when theirs was read between two readings of ours."""
    if server_time + RESOLUTION < before:
        return (before - server_time - RESOLUTION).total_seconds()
    return max(0.0, (server_time - after).total_seconds())


BROKER = "broker"
STORES: tuple[tuple[str, Callable[[], str], str], ...] = (
    ("database", DatabaseCheck(), "see docs/operations/when-something-stands-still.md"),
    ("migrations", MigrationsCheck(), "kaiweb bootstrap"),
    (BROKER, BrokerCheck(), "start the broker, or correct REDIS_URL"),
)


def check_stores(_context: ClusterContext) -> Iterator[Finding]:
    """Report the stores that do not work."""
    for name, find_fault, remedy in STORES:
        if name == BROKER and not os.environ.get("REDIS_URL"):
            continue  # the embedded one, whose address only `kaiweb up` knows
        text = find_fault()
        if text:
            yield fault(name, text, remedy)
