"""Binds per second of one binder on a real kube-apiserver, and where the time goes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from binder.params import BinderParams
from binder.tools.bench import measure_binds
from kube.client import connect
from tests.processes import processes
from tests.real_cluster.build import ClusterUnavailableError, ensure_binaries
from tests.real_cluster.cluster import running_cluster
from tests.real_cluster.installation import DEPLOY, run_kubectl

PODS = 1000


def measure() -> str:
    """Bind pods on an empty cluster; return what was measured, as `kaiweb bench_binds` prints it."""
    with (
        tempfile.TemporaryDirectory(prefix="kaiweb-bench-") as folder,
        running_cluster(Path(folder), ensure_binaries()) as cluster,
        closing(connect(cluster.kubeconfig)) as gateway,
    ):
        run_kubectl(cluster, "apply", "--server-side", "-f", str(DEPLOY / "crds"))
        measurement = measure_binds(
            gateway, pods=PODS, concurrency=BinderParams().concurrency, server_cpu_s=children_cpu_s
        )
    return measurement.text()


def children_cpu_s() -> Mapping[str, float]:
    """Return the processor time of the processes that this one has started: API server and etcd."""
    return {
        process.name.rstrip("-v0123456789."): process.cpu_s
        for process in processes()
        if process.parent == os.getpid()
    }


def print_measurement() -> None:
    """Measure and print; name what is missing where there is no kube-apiserver."""
    try:
        print(measure(), flush=True)
    except ClusterUnavailableError as error:
        print(f"binds: not measured: {error}")


if __name__ == "__main__":
    print_measurement()
