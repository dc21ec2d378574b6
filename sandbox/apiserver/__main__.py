"""`python -m sandbox.apiserver --home DIR --port N`: run the API server."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
from pathlib import Path

import uvloop

from kube.process import progress
from kube.process.files import use_private_umask
from sandbox.apiserver.server import HOST, Server, Settings, tune_collector
from sandbox.apiserver.storage.persistence import HomeInUseError

log = logging.getLogger("sandbox.apiserver")


def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; the kubeconfig is `<home>/kubeconfig`."""
    uvloop.run(_serve(settings))


async def _serve(settings: Settings) -> None:
    server = Server(settings)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop)
    tune_collector()
    await server.serve(
        lambda port: log.info(
            "sandbox API at https://%s:%d, kubeconfig %s", HOST, port, server.kubeconfig
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="sandbox.apiserver", description=__doc__)
    parser.add_argument(
        "--home", type=Path, required=True, help="directory of objects, keys and kubeconfig"
    )
    parser.add_argument("--port", type=int, default=0, help="0 chooses a free port")
    parser.add_argument("--in-memory", action="store_true", help="save no objects")
    parser.add_argument(
        "--gangs", action="store_true", help="serve Workloads of scheduling.k8s.io/v1alpha1"
    )
    arguments = parser.parse_args()
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    use_private_umask()
    progress.start("cluster", arguments.home)
    try:
        run(
            Settings(
                home=arguments.home,
                port=arguments.port,
                persistent=not arguments.in_memory,
                serves_gangs=arguments.gangs,
            )
        )
    except HomeInUseError as error:
        raise SystemExit(f"sandbox.apiserver: {error}") from error


if __name__ == "__main__":
    main()
