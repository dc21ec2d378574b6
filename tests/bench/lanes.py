"""The two installations that are measured: on the embedded API server, and on a real kube-apiserver."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from tests.bench.consumption import Meter
from tests.integration.stack import Stack, running_stack
from tests.real_cluster.build import ensure_binaries
from tests.real_cluster.installation import prepared_cluster, stack_on


class Lane(StrEnum):
    """Which API server an installation has."""

    EMBEDDED = "embedded"
    REAL = "kube-apiserver"


@contextmanager
def measured_stack(lane: Lane, settings: Mapping[str, str]) -> Iterator[tuple[Stack, Meter]]:
    """Run an installation whose requests and processor time are counted.

    Raises
    ------
    tests.real_cluster.build.ClusterUnavailableError : there is no kube-apiserver and no Go to build it with
    """
    with tempfile.TemporaryDirectory(prefix="kaiweb-bench-") as name:
        folder = Path(name)
        meter = Meter(folder / "requests")
        environment = {**settings, **meter.environment()}
        if lane is Lane.EMBEDDED:
            with running_stack(folder / "home", environment) as stack:
                meter.stack = stack
                yield stack, meter
            return
        ensure_binaries()
        with (
            prepared_cluster(folder / "cluster") as cluster,
            stack_on(cluster, folder / "home", environment) as stack,
        ):
            meter.stack = stack
            yield stack, meter
