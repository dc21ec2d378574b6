"""Past usage of queues, from our own history or from Prometheus.

Both return the part of the cluster that each queue held in the current window. The history keeps one sample
per fetch interval in a file of JSON lines and weights them itself; Prometheus weights them in its queries. A
reader polls its source, keeps the last good answer, and reports when it is stale; stale data is still used, as
in KAI.
"""

from __future__ import annotations

import json
import os
import time
import urllib.parse
import urllib.request
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from kube.keys import NVIDIA_GPU
from kube.process.files import open_private, private_folder, write_private
from kube.values.durations import SECOND, format_duration
from scheduler.core.arrays import Amounts
from scheduler.core.fairshare.usage import decayed_usage
from scheduler.load.queues import UsageByQueue
from scheduler.metrics import METRICS
from scheduler.settings.usage import UsageParams, WindowType

#: A queue takes about 200 bytes in an answer of Prometheus.
MAX_ANSWER = 16 * 1024 * 1024
READ_BYTES = 64 * 1024
RESOURCE_KEYS = ("cpu", "memory", NVIDIA_GPU)


class UsageError(RuntimeError):
    """The source could not answer; the next fetch may. The previous answer stays in use."""


class UsageSource(Protocol):
    """A source of past usage."""

    def fetch(self, now_s: float) -> UsageByQueue:
        """Return the usage of the window that `now_s` lies in; raise UsageError if it cannot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSample:
    """What queues held and the cluster had at one moment (cpu, memory, GPUs in any one unit)."""

    time_s: float
    #: Queue -> amounts.
    allocated: Mapping[str, Amounts]
    capacity: Amounts


@dataclass(slots=True)
class UsageHistory:
    """Our own store of samples: in memory, and in a file of JSON lines if a path is given."""

    params: UsageParams
    path: Path | None = None
    samples: deque[UsageSample] = field(default_factory=deque)

    def __post_init__(self) -> None:
        """Read the samples of an earlier process."""
        if self.path is not None and self.path.exists():
            for line in self.path.read_text().splitlines():
                self.samples.append(_read_sample(line))

    def record(self, sample: UsageSample) -> None:
        """Add a sample and drop those before the window.

        A sample that follows the last one sooner than the fetch interval is ignored. When the clock has stepped back, the earlier samples move back
        with it: their ages count, not their dates.
        """
        if self.samples:
            age = sample.time_s - self.samples[-1].time_s
            if age < 0:
                self._move(age)
                return
            if age < self.params.fetch_interval_s:
                return
        self.samples.append(sample)
        start = self.params.window_start_s(sample.time_s)
        dropped = False
        while self.samples and self.samples[0].time_s < start:
            self.samples.popleft()
            dropped = True
        if self.path is not None:
            self._write(sample, rewrite=dropped)

    def fetch(self, now_s: float) -> UsageByQueue:
        """Weigh the samples of the current window."""
        queues = sorted({name for sample in self.samples for name in sample.allocated})
        if not queues:
            return {}
        nothing = (0.0, 0.0, 0.0)
        usage = decayed_usage(
            np.array([sample.time_s for sample in self.samples]),
            np.array(
                [[s.allocated.get(name, nothing) for name in queues] for s in self.samples]
            ).transpose(0, 2, 1),
            np.array([sample.capacity for sample in self.samples]),
            since_s=self.params.window_start_s(now_s),
            now_s=now_s,
            half_life_s=self.params.half_life_s,
        )
        return {
            name: (float(usage[0, i]), float(usage[1, i]), float(usage[2, i]))
            for i, name in enumerate(queues)
        }

    def _move(self, step_s: float) -> None:
        moved = [replace(sample, time_s=sample.time_s + step_s) for sample in self.samples]
        self.samples = deque(moved)
        self._write(moved[-1], rewrite=True)

    def _write(self, sample: UsageSample, *, rewrite: bool) -> None:
        if self.path is None:
            return
        private_folder(self.path.parent)
        if rewrite:
            write_private(self.path, "".join(_print_sample(sample) for sample in self.samples))
            return
        with os.fdopen(open_private(self.path), "a") as lines:
            lines.write(_print_sample(sample))


HttpGet = Callable[[str, float], bytes]
"""(address, timeout in seconds) -> body; raises OSError when it cannot."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, so that the address of Prometheus cannot lead to other servers."""

    def redirect_request(self, *_args: Any) -> None:
        """Return nothing, which makes the redirect an HTTPError."""


def http_get(
    address: str,
    timeout_s: float,
    headers: Mapping[str, str] | None = None,
    max_bytes: int | None = None,
) -> bytes:
    """Read one address; only http and https, no redirects, no more than `max_bytes` (`MAX_ANSWER`).

    The timeout holds for each wait and for the whole.
    """
    limit = max_bytes or MAX_ANSWER
    if not address.startswith(("http://", "https://")):
        raise UsageError(f"expected an http(s) address of Prometheus, got {address!r}")
    deadline = time.monotonic() + timeout_s
    body = bytearray()
    # Our own director, because that of urlopen also opens ftp, file and data addresses.
    opener = urllib.request.OpenerDirector()
    for handler in _HANDLERS:
        opener.add_handler(handler())
    request = urllib.request.Request(address, headers=dict(headers or {}))
    with opener.open(request, timeout=timeout_s) as answer:
        while part := answer.read1(READ_BYTES):
            body += part
            if len(body) > limit:
                raise OSError(f"expected an answer of at most {limit} bytes, got more")
            if time.monotonic() > deadline:
                raise TimeoutError(f"the answer was not complete after {timeout_s:g} s")
    return bytes(body)


_HANDLERS = (
    urllib.request.ProxyHandler,
    urllib.request.HTTPHandler,
    urllib.request.HTTPSHandler,
    urllib.request.HTTPErrorProcessor,
    urllib.request.HTTPDefaultErrorHandler,
    _NoRedirect,
)


@dataclass(slots=True)
class PrometheusUsage:
    """Asks Prometheus for sums over the window, of allocation and of capacity.

    Notes
    -----
    A sliding window is one instant query over a subquery. For tumbling and cron windows the
    window simply begins at the last reset; KAI sends a range query there whose answer its own
    client cannot read, so those two window types never worked.
    """

    address: str
    params: UsageParams
    get: HttpGet = http_get

    def fetch(self, now_s: float) -> UsageByQueue:
        """Query all capacities, then all allocations; any failure fails the whole fetch."""
        capacity = {}
        for key in RESOURCE_KEYS:
            series = self._query(self.params.metrics.capacity[key], now_s)
            if not series:
                raise UsageError(f"no capacity data for {key} from {self.address}")
            capacity[key] = series[0][1]
        usage: dict[str, list[float]] = {}
        for position, key in enumerate(RESOURCE_KEYS):
            for labels, value in self._query(self.params.metrics.allocation[key], now_s):
                queue = labels.get("queue_name")
                if queue and capacity[key] > 0:
                    usage.setdefault(queue, [0.0, 0.0, 0.0])[position] = value / capacity[key]
        return {queue: (row[0], row[1], row[2]) for queue, row in usage.items()}

    def expression(self, metric: str, now_s: float) -> str:
        """Write the query for one series."""
        half_life = self.params.half_life_s
        if half_life is not None:
            metric = f"(({metric}) * (0.5^(({int(now_s)} - time()) / {half_life:.6f})))"
        else:
            metric = f"({metric})"
        if self.params.window_type is WindowType.SLIDING:
            window = _go_duration(self.params.window_s)
        else:
            length = max(now_s - self.params.window_start_s(now_s), 0.0)
            window = _go_duration(max(float(int(length)), self.params.query_resolution_s))
        resolution = _go_duration(self.params.query_resolution_s)
        return f"sum_over_time({metric}[{window}:{resolution}])"

    def _query(self, metric: str, now_s: float) -> list[tuple[Mapping[str, str], float]]:
        expression = self.expression(metric, now_s)
        query = urllib.parse.urlencode({"query": expression, "time": f"{now_s:.3f}"})
        address = f"{self.address.rstrip('/')}/api/v1/query?{query}"
        started = time.perf_counter()
        try:
            answer = json.loads(self.get(address, self.params.query_timeout_s))
        except (OSError, ValueError) as error:
            raise UsageError(f"query to {self.address} failed: {error}") from error
        METRICS.usage_query.observe((time.perf_counter() - started) * 1000)
        return _read_vector(answer, expression)


@dataclass(slots=True)
class UsageReader:
    """Keeps the last good answer of a source and knows how old it is."""

    source: UsageSource
    params: UsageParams
    usage: UsageByQueue = field(default_factory=dict)
    fetched_s: float | None = None
    tried_s: float | None = None
    error: str = ""

    def refresh(self, now_s: float) -> None:
        """Fetch if the interval is over; a failure keeps the previous data and its age."""
        # After a step back of the clock the last attempt lies in the future: then it is time as well.
        if self.tried_s is not None and 0 <= now_s - self.tried_s < self.params.fetch_interval_s:
            return
        self.tried_s = now_s
        try:
            self.usage = self.source.fetch(now_s)
        except UsageError as error:
            self.error = str(error)
            return
        self.fetched_s, self.error = now_s, ""

    def warning(self, now_s: float) -> str:
        """Return what is wrong with the data, or ""; waiting for the first answer is not a problem."""
        if self.fetched_s is None:
            return f"usage was never fetched: {self.error}" if self.error else ""
        age = now_s - self.fetched_s
        if age > self.params.staleness_s:
            return f"usage is {age:.0f} s old, expected at most {self.params.staleness_s:.0f} s"
        return ""


def _read_vector(answer: Any, expression: str) -> list[tuple[Mapping[str, str], float]]:
    if not isinstance(answer, dict) or answer.get("status") != "success":
        problem = answer.get("error") if isinstance(answer, dict) else answer
        raise UsageError(f"query {expression} was refused: {problem}")
    data = answer.get("data") or {}
    if data.get("resultType") != "vector":
        raise UsageError(f"query {expression}: expected a vector, got {data.get('resultType')}")
    return [(item["metric"], float(item["value"][1])) for item in data.get("result", ())]


def _print_sample(sample: UsageSample) -> str:
    line = {
        "t": sample.time_s,
        "a": {name: list(amounts) for name, amounts in sample.allocated.items()},
        "c": list(sample.capacity),
    }
    return json.dumps(line, separators=(",", ":")) + "\n"


def _read_sample(line: str) -> UsageSample:
    data = json.loads(line)
    return UsageSample(
        time_s=float(data["t"]),
        allocated={name: (row[0], row[1], row[2]) for name, row in data["a"].items()},
        capacity=(data["c"][0], data["c"][1], data["c"][2]),
    )


def _go_duration(seconds: float) -> str:
    return format_duration(round(seconds * SECOND))
