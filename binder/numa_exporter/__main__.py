"""The main process of the exporter (`python -m binder.numa_exporter`), one on each node with several zones.

    NODE_NAME                  the node it runs on, if --node-name is not given
    KAIWEB_POD_RESOURCES       a JSON file with grants to use instead of asking the kubelet

It runs until SIGTERM. A kubelet or an API server that does not answer is asked again.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from binder.numa_exporter.allocations import AllocationError, GrantSource, ListedGrants
from binder.numa_exporter.exporter import PlacementExporter
from binder.numa_exporter.kubelet import KubeletGrants
from binder.numa_exporter.zones import cpu_zones
from kube.client import connect
from kube.errors import BadValueError, KubeError, UnauthorizedError
from kube.link import Target
from kube.values.durations import SECOND, parse_duration

log = logging.getLogger("binder.numa_exporter")
GRANTS_VARIABLE = "KAIWEB_POD_RESOURCES"


def main(
    arguments: Sequence[str] | None = None, environment: Mapping[str, str] = os.environ
) -> int:
    """Export until SIGTERM or SIGINT; return the exit code."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    options = parser_of(environment).parse_args(arguments)
    if not options.node_name:
        log.error("expected --node-name or NODE_NAME")
        return 1
    stop = threading.Event()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_number, lambda *_: stop.set())
    gateway = connect(Target(user_agent="kaiweb-numa-placement-exporter"))
    try:
        zones = cpu_zones(options.sysfs_root)
        source = source_of(environment, options.podresources_socket)
        exporter = PlacementExporter(gateway, options.node_name, source, zones)
        run(exporter, stop, options.poll_interval, options.drift_resync_interval)
    except (AllocationError, UnauthorizedError) as error:
        log.error("%s", error)
        return 1
    finally:
        gateway.close()
    return 0


def source_of(environment: Mapping[str, str], socket: Path) -> GrantSource:
    """Return the grants in the file that KAIWEB_POD_RESOURCES names; without it, those of the kubelet."""
    file = environment.get(GRANTS_VARIABLE, "")
    return ListedGrants(Path(file)) if file else KubeletGrants(socket)


def run(
    exporter: PlacementExporter,
    stop: threading.Event,
    poll_s: float,
    resync_s: float,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Look every `poll_s` until `stop` is set, and compare with the API server every `resync_s` (0: never)."""
    resync_at = clock() + resync_s
    while True:
        _guarded(exporter.poll)
        if resync_s and clock() >= resync_at:
            resync_at = clock() + resync_s
            _guarded(exporter.resync)
        if stop.wait(poll_s):
            return


def _guarded(look: Callable[[], None]) -> None:
    try:
        look()
    except UnauthorizedError:
        raise
    except (AllocationError, KubeError) as error:
        log.warning("%s", error)


def parser_of(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    """Return the options, which are KAI's."""
    parser = argparse.ArgumentParser(prog="python -m binder.numa_exporter")
    socket = Path("/var/lib/kubelet/pod-resources/kubelet.sock")
    parser.add_argument("--node-name", default=environment.get("NODE_NAME", ""))
    parser.add_argument("--podresources-socket", type=Path, default=socket)
    parser.add_argument("--sysfs-root", type=Path, default=Path("/sys"))
    parser.add_argument("--poll-interval", type=_positive_seconds, default=1.0)
    parser.add_argument("--drift-resync-interval", type=_seconds, default=60.0, help="0: never")
    return parser


def _seconds(text: str) -> float:
    try:
        seconds = parse_duration(text) / SECOND
    except BadValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if seconds < 0:
        raise argparse.ArgumentTypeError(f"expected 0 or more, got {text}")
    return seconds


def _positive_seconds(text: str) -> float:
    seconds = _seconds(text)
    if not seconds:
        raise argparse.ArgumentTypeError(f"expected more than 0, got {text}")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
