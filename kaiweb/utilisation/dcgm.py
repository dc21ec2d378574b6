"""Ask Prometheus for the series of the DCGM exporter and read its answer, whatever it is.

A series that cannot be read, or names no device, is left out. An answer that is no vector, too large or too late is
an error. Nothing of an answer is trusted beyond a number between 0 and 100 and labels that are compared with the
mirror.
"""

from __future__ import annotations

import json
import math
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scheduler.load.usage import UsageError, http_get

#: Metric -> what its values are multiplied by to be a percentage. MIG instances have the second one only.
METRICS: Mapping[str, float] = {"DCGM_FI_DEV_GPU_UTIL": 1.0, "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 100.0}
#: How many seconds of a series are averaged: at least one value of exporters that are scraped once a minute.
WINDOW_S = 120
TIMEOUT_S = 8.0
MAX_BYTES = 32 * 1024 * 1024
MAX_SERIES = 100_000
MAX_LABEL = 253
#: The labels that the query keeps; `exported_` ones are those of the device where the scrape has labels of its own.
LABELS = (
    "Hostname", "node", "instance", "gpu", "UUID", "GPU_I_ID",
    "exported_namespace", "exported_pod", "namespace", "pod",
)  # fmt: skip
NODE_LABELS = ("Hostname", "node", "instance")
POD_LABELS = (("exported_namespace", "exported_pod"), ("namespace", "pod"))


class ReadError(RuntimeError):
    """Prometheus did not answer, or not as expected; the message names no address and no secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSample:
    """The utilisation of one device.

    Attributes
    ----------
    hosts : the names that its node may have, the most likely first
    device : its number on the node, for a MIG instance `number:instance`
    pods : keys of pods that may hold it, the most likely first; the last may be the exporter itself
    percent : 0 to 100
    """

    hosts: tuple[str, ...]
    device: str
    uuid: str
    pods: tuple[str, ...]
    percent: float


def read_samples(address: str, token: str = "") -> list[DeviceSample]:
    """Return the samples of all devices; where a device has both metrics, its sample has the greater value.

    Parameters
    ----------
    address : of the Prometheus API, http or https
    token : bearer token; empty for none

    Raises
    ------
    ReadError : no answer in `TIMEOUT_S`, an answer that cannot be read, or one above a limit
    """
    deadline = time.monotonic() + TIMEOUT_S
    samples: dict[tuple[Any, ...], DeviceSample] = {}
    for metric, factor in METRICS.items():
        series = _query(address, token, metric, max(0.1, deadline - time.monotonic()))
        for sample in _samples(series, factor):
            key = (sample.hosts, sample.device, sample.pods)
            known = samples.get(key)
            if known is None or sample.percent > known.percent:
                samples[key] = sample
    return list(samples.values())


def expression(metric: str) -> str:
    """Return the query for one metric: without the labels that nobody reads, which make up most of an answer."""
    return f"max by ({', '.join(LABELS)}) (avg_over_time({metric}[{WINDOW_S}s]))"


def _query(address: str, token: str, metric: str, timeout_s: float) -> list[Any]:
    query = urllib.parse.urlencode({"query": expression(metric)})
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    url = f"{address.rstrip('/')}/api/v1/query?{query}"
    try:
        answer = json.loads(http_get(url, timeout_s, headers, MAX_BYTES))
    except UsageError as error:
        raise ReadError("expected an http(s) address of Prometheus") from error
    # ValueError: no JSON, or an address that cannot be one; RecursionError: JSON that is nested too deeply.
    except (OSError, ValueError, RecursionError) as error:
        raise ReadError(f"{metric}: {type(error).__name__}: {str(error)[:200]}") from error
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, dict) or answer.get("status") != "success":
        raise ReadError(f"{metric}: the answer is no result of a query")
    series = data.get("result")
    if data.get("resultType") != "vector" or not isinstance(series, list):
        raise ReadError(f"{metric}: expected a vector, got {str(data.get('resultType'))[:40]!r}")
    if len(series) > MAX_SERIES:
        raise ReadError(f"{metric}: expected at most {MAX_SERIES} series, got {len(series)}")
    return series


def _samples(series: list[Any], factor: float) -> Iterator[DeviceSample]:
    for item in series:
        labels = item.get("metric") if isinstance(item, dict) else None
        if not isinstance(labels, dict):
            continue
        percent = _percent(item.get("value"), factor)
        sample = None if percent is None else _sample(labels, percent)
        if sample is not None:
            yield sample


def _percent(value: Any, factor: float) -> float | None:
    """Return the value of a series as a percentage; None for what cannot be one, as DCGM's signs for "not available"."""
    if not isinstance(value, list) or len(value) != 2:
        return None
    try:
        percent = float(value[1]) * factor
    except (TypeError, ValueError):
        return None
    return percent if math.isfinite(percent) and 0 <= percent <= 100 else None


def _sample(labels: Mapping[str, Any], percent: float) -> DeviceSample | None:
    hosts = tuple(_host(name, _label(labels, name)) for name in NODE_LABELS if _label(labels, name))
    gpu, instance = _label(labels, "gpu"), _label(labels, "GPU_I_ID")
    if not hosts or not gpu.isdecimal() or len(gpu) > 4 or len(instance) > 8:
        return None
    pods = [
        f"{_label(labels, namespace)}/{_label(labels, pod)}"
        for namespace, pod in POD_LABELS
        if _label(labels, namespace) and _label(labels, pod)
    ]
    return DeviceSample(
        hosts=hosts,
        device=f"{int(gpu)}:{instance}" if instance else str(int(gpu)),
        uuid=_label(labels, "UUID"),
        pods=tuple(pods),
        percent=percent,
    )


def _label(labels: Mapping[str, Any], name: str) -> str:
    """Return a label, empty if it is missing, no text, or too long to be one of ours."""
    value = labels.get(name)
    if not isinstance(value, str) or len(value) > MAX_LABEL or "\0" in value:
        return ""
    return value


def _host(name: str, value: str) -> str:
    return value.rpartition(":")[0] or value if name == "instance" else value
