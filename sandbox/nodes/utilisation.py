"""What the DCGM exporter and Prometheus say in a real cluster: how busy the GPUs of simulated pods are.

A server on this machine answers the one kind of query that is asked about them, `/api/v1/query`, with a series for
each device that a running pod holds. Most pods are busy. A part of them, chosen by their uids, does nothing, so that
there is something to find.
"""

from __future__ import annotations

import json
import logging
import math
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kube.errors import KubeError
from kube.gateway import Gateway
from kube.resources import PODS
from sandbox.nodes import podhints
from sandbox.nodes.devices import device_id
from sandbox.nodes.simpod import GPU, SimPod

log = logging.getLogger(__name__)

METRIC = "DCGM_FI_DEV_GPU_UTIL"
PATH = "/api/v1/query"
#: One pod in so many does nothing.
IDLE_ONE_IN = 6
WAVE_S = 900.0


def percent(uid: str, now: float) -> int:
    """Return the utilisation of a pod's devices: 0 or 1 for idle pods, else a slow wave between 55 and 95."""
    number = zlib.crc32(uid.encode())
    if number % IDLE_ONE_IN == 0:
        return number // IDLE_ONE_IN % 2
    phase = number % 360 / 360 + now / WAVE_S
    return round(75 + 20 * math.sin(2 * math.pi * phase))


@dataclass(slots=True)
class DeviceNumbers:
    """Which device of its node each pod has; a pod keeps its devices until it ends."""

    #: Node -> number of the device -> uid of the pod.
    _holders: dict[str, dict[int, str]] = field(default_factory=dict)

    def series(self, pods: Sequence[SimPod], now: float) -> list[dict[str, Any]]:
        """Return one series for each device that a running pod holds, as Prometheus writes it."""
        running = [pod for pod in pods if pod.status.phase == "Running" and pod.spec.node_name]
        alive = {pod.metadata.uid for pod in running}
        self._holders = {
            node: {number: uid for number, uid in holders.items() if uid in alive}
            for node, holders in self._holders.items()
        }
        return [
            _series(pod, number, now)
            for pod in running
            for number in self._numbers(pod, pod.device_requests().get(GPU, 0))
        ]

    def _numbers(self, pod: SimPod, count: int) -> list[int]:
        holders = self._holders.setdefault(pod.spec.node_name, {})
        numbers = [number for number, uid in holders.items() if uid == pod.metadata.uid]
        number = 0
        while len(numbers) < count:
            if number not in holders:
                holders[number] = pod.metadata.uid
                numbers.append(number)
            number += 1
        return numbers


def _series(pod: SimPod, number: int, now: float) -> dict[str, Any]:
    node = pod.spec.node_name
    labels = {
        "__name__": METRIC,
        "Hostname": node,
        "gpu": str(number),
        "UUID": device_id(node, GPU, number),
        "namespace": pod.metadata.namespace,
        "pod": pod.metadata.name,
    }
    hint = pod.metadata.annotations.get(podhints.UTILISATION)
    return {"metric": labels, "value": [now, hint or str(percent(pod.metadata.uid, now))]}


@dataclass(slots=True)
class UtilisationServer:
    """Serves the series until it is told to stop."""

    gateway: Gateway
    port: int
    stop: threading.Event
    numbers: DeviceNumbers = field(default_factory=DeviceNumbers)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> None:
        """Serve on 127.0.0.1; without the port, say so and return."""
        try:
            server = ThreadingHTTPServer(("127.0.0.1", self.port), _handler(self.answer))
        except OSError as error:
            log.warning("the utilisation of GPUs is not simulated: port %d: %s", self.port, error)
            return
        with server:
            server.timeout = 0.5
            while not self.stop.is_set():
                server.handle_request()

    def answer(self, query: str) -> list[dict[str, Any]]:
        """Return the result of a query: nothing for other metrics, or while the cluster does not answer."""
        if METRIC not in query:
            return []
        try:
            pods = self.gateway.list(PODS, as_type=SimPod).items
        except KubeError as error:
            log.warning("cannot list pods, will retry: %s", error)
            return []
        with self._lock:
            return self.numbers.series(pods, time.time())


def _handler(answer: Callable[[str], list[dict[str, Any]]]) -> type[BaseHTTPRequestHandler]:
    class Api(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = parse_qs(parts.query).get("query", [""])[0]
            data = {"resultType": "vector", "result": answer(query)}
            body = json.dumps({"status": "success", "data": data}).encode()
            self.send_response(200 if parts.path == PATH else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log no request."""

    return Api
