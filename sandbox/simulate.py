"""Simulate a cluster behind an API server: nodes, kubelets, workload controllers, a workload stream.

    python -m sandbox.simulate --kubeconfig FILE [--nodes demo|none|500x8]
                               [--garbage-collector | --kubelets-only]
                               [--utilisation-port PORT] [--stream SPEED | --no-stream] [--seed N] [--fractions PART]

It works with the embedded API server and with a real kube-apiserver, and does what kubelets and, if there is none,
kube-controller-manager would do there; no container runs. SIGTERM or SIGINT ends it with exit code 0.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from kube.client import connect
from kube.errors import KubeError, UnauthorizedError
from kube.gateway import Gateway
from kube.link import Target
from kube.process import progress
from sandbox.controllers.claims import ClaimController
from sandbox.controllers.disruption import DisruptionController
from sandbox.controllers.garbage import GarbageCollector
from sandbox.controllers.namespaces import NamespaceController
from sandbox.controllers.runtime_class import ensure_runtime_class
from sandbox.controllers.volumes import VolumeController
from sandbox.controllers.workloads.controller import WorkloadControllers
from sandbox.nodes.kubelet import KubeletRunner
from sandbox.nodes.profiles import Machine, ensure_nodes, profile
from sandbox.nodes.utilisation import UtilisationServer
from sandbox.stream.stream import Stream

log = logging.getLogger("sandbox.simulate")

RETRY_S = 1.0
PULSE_S = 1.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until a signal or refused credentials; return the exit code."""
    options = _parse(arguments)
    if os.environ.get("KAIWEB_HOME"):
        progress.start("simulators", Path(os.environ["KAIWEB_HOME"]))
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    stop = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stop.set())
    failed: list[KubeError] = []

    def give_up(error: KubeError) -> None:
        failed.append(error)
        stop.set()

    gateway = connect(Target(kubeconfig=options.kubeconfig, user_agent="kaiweb-sandbox"))
    if not _populate(gateway, options.nodes, stop, give_up):
        return 1 if failed else 0
    parts: list[Callable[[], None]] = [
        KubeletRunner(gateway=gateway, stop=stop, on_fatal=give_up).run
    ]
    if not options.kubelets_only:
        parts += _controllers(gateway, stop, give_up)
    if options.garbage_collector:
        parts.append(GarbageCollector(gateway=gateway, stop=stop, on_fatal=give_up).run)
        parts.append(NamespaceController(gateway=gateway, stop=stop, on_fatal=give_up).run)
    if options.utilisation_port:
        server = UtilisationServer(gateway=gateway, port=options.utilisation_port, stop=stop)
        parts.append(server.run)
    if not options.no_stream:
        stream = Stream(
            gateway=gateway,
            stop=stop,
            on_fatal=give_up,
            speed=options.stream,
            seed=options.seed,
            fractions=options.fractions,
        )
        parts.append(stream.run)
    threads = [threading.Thread(target=part, daemon=True) for part in parts]
    for thread in threads:
        thread.start()
    while not stop.wait(PULSE_S):
        progress.track().beat("simulators run")
    progress.stop()
    for thread in threads:
        thread.join(timeout=5)
    for error in failed:
        log.error("credentials were refused: %s", error)
    return 1 if failed else 0


def _controllers(
    gateway: Gateway, stop: threading.Event, give_up: Callable[[KubeError], None]
) -> list[Callable[[], None]]:
    """Return what kube-controller-manager does in a cluster that has one."""
    return [
        WorkloadControllers(gateway=gateway, stop=stop, on_fatal=give_up).run,
        ClaimController(gateway=gateway, stop=stop, on_fatal=give_up).run,
        DisruptionController(gateway=gateway, stop=stop, on_fatal=give_up).run,
        VolumeController(gateway=gateway, stop=stop, on_fatal=give_up).run,
    ]


def _populate(
    gateway: Gateway,
    machines: Sequence[Machine],
    stop: threading.Event,
    give_up: Callable[[KubeError], None],
) -> bool:
    """Create the nodes, and retry while the API server is not reachable; return whether they exist."""
    while not stop.is_set():
        progress.track().beat("putting nodes in", progress.START_S)
        try:
            ensure_runtime_class(gateway)
            created = ensure_nodes(gateway, machines, time.time())
        except UnauthorizedError as error:
            give_up(error)
            return False
        except KubeError as error:
            log.warning("could not create the nodes: %s; will retry in %.0f s", error, RETRY_S)
            stop.wait(RETRY_S)
        else:
            log.info("%d nodes exist, %d of them are new", len(machines), created)
            return True
    return False


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m sandbox.simulate", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--nodes", type=_profile, default="demo", metavar="demo|none|NxG")
    parser.add_argument(
        "--garbage-collector",
        action="store_true",
        help="collect owned objects and end namespaces too: for a real API server without a controller manager",
    )
    parser.add_argument(
        "--kubelets-only",
        action="store_true",
        help="simulate nodes and kubelets only: for an API server with a kube-controller-manager",
    )
    parser.add_argument(
        "--stream",
        type=float,
        default=120.0,
        metavar="SPEED",
        help="simulated seconds of the demo day per real second (120: a day in 12 minutes)",
    )
    parser.add_argument(
        "--utilisation-port",
        type=int,
        default=0,
        metavar="PORT",
        help="serve the utilisation of simulated GPUs on 127.0.0.1, as Prometheus would (0: do not)",
    )
    parser.add_argument("--no-stream", action="store_true", help="start no workloads")
    parser.add_argument("--seed", type=int, default=1, help="seed of the simulated day (1)")
    parser.add_argument(
        "--fractions",
        type=float,
        default=0.5,
        help="part of the notebooks that share a GPU, 0 to 1 (0.5)",
    )
    return parser.parse_args(arguments)


def _profile(text: str) -> list[Machine]:
    try:
        return profile(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


if __name__ == "__main__":
    sys.exit(main())
