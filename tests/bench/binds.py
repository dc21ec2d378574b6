"""Binds per second of one binder on a real kube-apiserver, and where the time goes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.real_cluster.build import ensure_binaries
from tests.real_cluster.cluster import running_cluster
from tests.real_cluster.installation import DEPLOY, run_kubectl

PODS = 1000


def measure() -> str:
    """Run `kaiweb bench_binds` on an empty cluster; return what it prints."""
    with (
        tempfile.TemporaryDirectory(prefix="kaiweb-bench-") as folder,
        running_cluster(Path(folder), ensure_binaries()) as cluster,
    ):
        run_kubectl(cluster, "apply", "--server-side", "-f", str(DEPLOY / "crds"))
        done = subprocess.run(
            [sys.executable, "-m", "kaiweb", "bench_binds", "--pods", str(PODS)],
            capture_output=True,
            text=True,
            check=False,
            env={
                **os.environ,
                "KAIWEB_KUBECONFIG": str(cluster.kubeconfig),
                "KAIWEB_HOME": str(Path(folder) / "home"),
            },
        )
    return done.stdout.strip() or done.stderr.strip()


if __name__ == "__main__":
    print(measure())
