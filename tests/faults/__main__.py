"""Make faults while two thousand pods arrive: `make faults`, or `make faults FAULTS="redis api-gone" PODS=500`.

Everything of `tests/deploy/whole.py` is started once, with a proxy between kaiweb and the API server. For each fault
jobs arrive for half a minute; the fault begins when a part of the pods is bound. Then all pods must run, none may have
been deleted or moved, `/readyz` must answer 200 and `kaiweb check_cluster --settled` must find nothing.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from kube.client import connect
from tests.deploy.installed import Installed
from tests.deploy.whole import whole_or_skip
from tests.faults.catalogue import FAULTS
from tests.faults.clock import make_clock
from tests.faults.load import Observer, delete_jobs, submit_jobs
from tests.faults.proxy import Proxy, running_proxy
from tests.faults.scene import Scene

ARRIVAL_S = 30.0
#: The fault begins when this part of the pods is bound.
BEGIN_AT = 0.1
#: For each step, also on a machine that shares its processors with much other work.
LIMIT_S = 1200.0


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table; a time that never came is None."""

    name: str
    held_s: float
    pause_s: float
    all_run_s: float | None
    ready_s: float | None
    faults: tuple[str, ...]

    def line(self) -> str:
        """Return the columns as text."""
        verdict = "; ".join(self.faults) or "sound"
        return (
            f"{self.name:<16}{self.held_s:>8.1f}{self.pause_s:>10.1f}"
            f"{_seconds(self.all_run_s):>10}{_seconds(self.ready_s):>9}  {verdict}"
        )


HEAD = f"{'fault':<16}{'held s':>8}{'pause s':>10}{'all run':>10}{'ready':>9}  check_cluster"


def main(arguments: Sequence[str]) -> int:
    """Run the named faults; return 1 if one was not survived."""
    options = _parse(arguments)
    # A shell starts background jobs with SIGINT ignored.
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, signal.default_int_handler)
    try:
        with tempfile.TemporaryDirectory(prefix="kaiweb-faults-") as scratch:
            folder = options.folder or Path(scratch)
            folder.mkdir(parents=True, exist_ok=True)
            results = _run(folder, options.faults or list(FAULTS), options.pods)
    except pytest.skip.Exception as missing:
        print(f"faults skipped: {missing}")
        return 0
    print(f"\n{HEAD}", *(result.line() for result in results), sep="\n")
    print(
        "\nheld: how long the fault lasted; pause: the longest time without a new binding from its begin until all"
        "\npods ran; all run, ready: seconds from the end of the fault until all pods ran, and until /readyz was 200"
    )
    return 1 if any(result.faults for result in results) else 0


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("faults", nargs="*", metavar="FAULT", help=", ".join(FAULTS))
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--folder", type=Path, help="keep the logs and the data there")
    options = parser.parse_args(arguments)
    unknown = set(options.faults) - FAULTS.keys()
    if unknown:
        parser.error(f"expected {', '.join(FAULTS)}, got {', '.join(sorted(unknown))}")
    return options


def _run(folder: Path, names: Sequence[str], pods: int) -> list[Result]:
    clock = make_clock(folder)

    def change(installed: Installed) -> None:
        """Let the replicas use the proxy and the clock."""
        proxy = stack.enter_context(running_proxy(installed.cluster))
        proxies.append(proxy)
        installed.server = proxy.url
        installed.environment = clock.environment if clock else {}

    proxies: list[Proxy] = []
    results: list[Result] = []
    with ExitStack() as stack:
        nodes = f"{max(1, pods // 8)}x8"
        whole = stack.enter_context(whole_or_skip(folder / "whole", nodes=nodes, change=change))
        gateway = connect(whole.cluster.kubeconfig)
        stack.callback(gateway.close)
        observer = Observer(gateway)
        observer.start()
        stack.callback(observer.stop.set)
        scene = Scene(whole, proxies[0], gateway, observer, clock)
        print(f"{len(whole.installed.replicas)} processes, {nodes} GPUs\n{HEAD}", flush=True)
        for number, name in enumerate(names):
            results.append(_try_fault(scene, name, f"load{number}", pods))
            print(results[-1].line(), flush=True)
    return results


def _try_fault(scene: Scene, name: str, prefix: str, pods: int) -> Result:
    """Make one fault under load, judge, and delete the load."""
    observer = scene.observer
    observer.begin()
    submitter = submit_jobs(scene.gateway, prefix, pods, ARRIVAL_S)
    scene.await_that(lambda: observer.bound >= BEGIN_AT * pods, LIMIT_S)
    began = time.monotonic()
    FAULTS[name](scene)
    ended = time.monotonic()
    all_run_s = scene.await_that(lambda: observer.running == pods, LIMIT_S)
    pause_s = observer.longest_pause(began, max(observer.bound_at.values(), default=began))
    submitter.join(LIMIT_S)
    ready_s = scene.await_that(scene.whole.installed.is_ready, LIMIT_S)
    ready_s = None if ready_s is None else time.monotonic() - ended
    faults = [*observer.faults, *_check(scene)]
    if all_run_s is None:
        faults.append(f"{observer.running} of {pods} pods run, {observer.bound} are bound")
    if ready_s is None:
        faults.append("/readyz: " + "; ".join(_unready(scene)))
    observer.expects_deletions = True
    delete_jobs(scene.gateway, prefix)
    if scene.await_that(lambda: observer.present == 0, LIMIT_S) is None:
        faults.append(f"{observer.present} pods were not deleted")
    return Result(name, ended - began, pause_s, all_run_s, ready_s, tuple(faults[:5]))


def _check(scene: Scene) -> list[str]:
    """Return what `kaiweb check_cluster` says against the cluster once nothing is on its way."""
    for _ in range(10):
        verdict = scene.whole.installed.kaiweb("check_cluster", "--settled")
        if verdict.returncode == 0:
            return []
        scene.rest(3.0)
    return verdict.stdout.splitlines()[:3] or verdict.stderr.splitlines()[-3:]


def _unready(scene: Scene) -> list[str]:
    replicas = scene.whole.installed.replicas
    return [
        scene.whole.installed.unready(replica)[:200] for replica in replicas if replica.web_port
    ]


def _seconds(value: float | None) -> str:
    return "never" if value is None else f"{value:.1f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
