"""Settings of the time-based term of fair share: the source of usage, its window, its half-life.

The written form is that of the shard object (`usageDBConfig`); durations are Prometheus-like
("1w", "90m", "1h30m") or seconds. Everything is checked when it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from croniter import croniter

from kube.errors import BadValueError
from kube.keys import NVIDIA_GPU
from kube.objects.config import Config
from kube.values.durations import LONG_UNITS, SECOND, parse_duration
from kube.values.numbers import parse_float
from kube.values.times import in_utc, parse_time
from scheduler.core.fairshare.usage import tumbling_start


class UsageConfigError(ValueError):
    """A usage configuration that cannot be used; the message names the field."""


class WindowType(StrEnum):
    """How the window of past usage is chosen."""

    SLIDING = "sliding"
    TUMBLING = "tumbling"
    CRON = "cron"


class Source(StrEnum):
    """Where samples of the past come from."""

    PROMETHEUS = "prometheus"
    HISTORY = "history"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricNames:
    """The series to query: the allocation of queues and the capacity of the cluster."""

    allocation: Mapping[str, str] = field(
        default_factory=lambda: {
            "cpu": "kai_queue_allocated_cpu_cores",
            "memory": "kai_queue_allocated_memory_bytes",
            NVIDIA_GPU: "kai_queue_allocated_gpus",
        }
    )
    capacity: Mapping[str, str] = field(
        default_factory=lambda: {
            "cpu": 'sum(kube_node_status_capacity{resource="cpu"})',
            "memory": 'sum(kube_node_status_capacity{resource="memory"})',
            NVIDIA_GPU: 'sum(kube_node_status_capacity{resource="nvidia_com_gpu"})',
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageParams:
    """Window, half-life and timing of usage.

    Attributes
    ----------
    half_life_s : None: all samples count alike
    window_s : length of a sliding or tumbling window
    tumbling_start_s : anchor of tumbling windows, seconds since the epoch
    staleness_s : after this age data is reported as stale (it is still used), >= fetch_interval_s
    """

    half_life_s: float | None = None
    window_s: float = 604800.0
    window_type: WindowType = WindowType.SLIDING
    tumbling_start_s: float | None = None
    cron: str = ""
    fetch_interval_s: float = 60.0
    staleness_s: float = 300.0
    wait_timeout_s: float = 60.0
    query_timeout_s: float = 10.0
    query_resolution_s: float = 60.0
    metrics: MetricNames = field(default_factory=MetricNames)

    def __post_init__(self) -> None:
        """Refuse a window without what it needs; drop a half-life of 0, raise staleness to the fetch interval."""
        if self.half_life_s is not None and self.half_life_s <= 0:
            object.__setattr__(self, "half_life_s", None)
        if self.window_s <= 0:
            raise UsageConfigError(f"windowSize: expected more than 0 s, got {self.window_s:g} s")
        if self.window_type is WindowType.TUMBLING and self.tumbling_start_s is None:
            raise UsageConfigError("tumblingWindowStartTime: expected a time for tumbling windows")
        if self.window_type is WindowType.CRON and not croniter.is_valid(self.cron):
            raise UsageConfigError(f"cronString: expected a cron expression, got {self.cron!r}")
        object.__setattr__(self, "staleness_s", max(self.staleness_s, self.fetch_interval_s))

    def window_start_s(self, now_s: float) -> float:
        """Return when the current window began (seconds since the epoch)."""
        if self.window_type is WindowType.SLIDING:
            return now_s - self.window_s
        if self.window_type is WindowType.TUMBLING:
            return tumbling_start(self.tumbling_start_s or 0.0, self.window_s, now_s)
        now = datetime.fromtimestamp(now_s, UTC)
        return float(croniter(self.cron, now).get_prev(float))


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageConfig:
    """Where usage comes from and how it is measured."""

    source: Source
    connection: str
    params: UsageParams = field(default_factory=UsageParams)


def prometheus_address(config: Config | None) -> str:
    """Return the address of the Prometheus that the installation's Config names, or that it asks for; "" without one."""
    spec = (config or Config()).spec
    if spec.prometheus.external_prometheus_url or not spec.prometheus.enabled:
        return spec.prometheus.external_prometheus_url
    return f"http://usage-prometheus.{spec.namespace}.svc.cluster.local:9090"


def with_connection(
    body: Mapping[str, Any] | None, config: Config | None
) -> Mapping[str, Any] | None:
    """Return a shard's `usageDBConfig`; a Prometheus without address gets that of the installation's Config.

    Raises
    ------
    UsageConfigError : Prometheus is asked for, and neither the shard nor the Config knows one
    """
    if not body or body.get("clientType") != Source.PROMETHEUS:
        return body
    if body.get("connectionString") or body.get("connectionStringEnvVar"):
        return body
    address = prometheus_address(config)
    if not address:
        raise UsageConfigError(
            "prometheus connection string not configured: usageDBConfig has neither connectionString "
            "nor connectionStringEnvVar, and Config kai-config neither enables prometheus nor names an "
            "externalPrometheusUrl"
        )
    return {**body, "connectionString": address}


def read_usage_config(body: Mapping[str, Any], environment: Mapping[str, str]) -> UsageConfig:
    """Read the `usageDBConfig` of a shard.

    Parameters
    ----------
    body : clientType, connectionString or connectionStringEnvVar, usageParams
    environment : where a connection named by variable is looked up

    Raises
    ------
    UsageConfigError : unknown client type, no or two connections, a bad value
    """
    kind = body.get("clientType") or ""
    if kind not in tuple(Source):
        raise UsageConfigError(f"clientType: expected {', '.join(Source)}, got {kind!r}")
    direct, variable = body.get("connectionString"), body.get("connectionStringEnvVar")
    if bool(direct) == bool(variable):
        raise UsageConfigError(
            "expected exactly one of connectionString and connectionStringEnvVar, "
            f"got {direct!r} and {variable!r}"
        )
    connection = direct or environment.get(str(variable), "")
    if not connection:
        raise UsageConfigError(f"connectionStringEnvVar: {variable} is not set")
    return UsageConfig(
        source=Source(kind),
        connection=str(connection),
        params=read_usage_params(body.get("usageParams") or {}),
    )


def read_usage_params(body: Mapping[str, Any]) -> UsageParams:
    """Read `usageParams`; what is missing has its default."""
    extra = body.get("extraParams") or {}
    start = body.get("tumblingWindowStartTime")
    try:
        window_type = WindowType(body.get("windowType") or WindowType.SLIDING)
    except ValueError as error:
        raise UsageConfigError(
            f"windowType: expected {', '.join(WindowType)}, got {body.get('windowType')!r}"
        ) from error
    half_life = body.get("halfLifePeriod")
    return UsageParams(
        half_life_s=None if half_life is None else read_seconds(half_life, "halfLifePeriod"),
        window_s=read_seconds(body.get("windowSize") or "1w", "windowSize"),
        window_type=window_type,
        tumbling_start_s=None if start is None else _parse_time(start),
        cron=str(body.get("cronString") or ""),
        fetch_interval_s=read_seconds(body.get("fetchInterval") or "1m", "fetchInterval"),
        staleness_s=read_seconds(body.get("stalenessPeriod") or "5m", "stalenessPeriod"),
        wait_timeout_s=read_seconds(body.get("waitTimeout") or "1m", "waitTimeout"),
        query_timeout_s=read_seconds(extra.get("usageQueryTimeout") or "10s", "usageQueryTimeout"),
        query_resolution_s=read_seconds(extra.get("queryResolution") or "1m", "queryResolution"),
        metrics=_read_metrics(extra),
    )


def read_seconds(text: str | float, name: str = "duration") -> float:
    """Read seconds from "1h30m", "1w", a number of seconds, or "0".

    Raises
    ------
    UsageConfigError : any other text
    """
    try:
        seconds = _seconds(text)
    except BadValueError as error:
        raise UsageConfigError(
            f"{name}: expected a duration such as 1h30m, got {str(text)[:40]!r}"
        ) from error
    return seconds


def _seconds(text: object) -> float:
    if isinstance(text, (int, float)):
        return parse_float(repr(text))
    if not isinstance(text, str):
        raise BadValueError(f"expected text or a number, got {type(text).__name__}")
    try:
        return parse_float(text)
    except BadValueError:
        return parse_duration(text, units=LONG_UNITS) / SECOND


def _parse_time(text: Any) -> float:
    if isinstance(text, datetime):
        moment = text
    else:
        try:
            moment = parse_time(str(text))
        except BadValueError as error:
            raise UsageConfigError(
                f"tumblingWindowStartTime: expected an RFC 3339 time, got {text!r}"
            ) from error
    return in_utc(moment).timestamp()


def _read_metrics(extra: Mapping[str, Any]) -> MetricNames:
    defaults = MetricNames()
    short_names = {"cpu": "cpu", "memory": "memory", NVIDIA_GPU: "gpu"}
    return MetricNames(
        allocation={
            key: extra.get(f"{short}AllocationMetric") or defaults.allocation[key]
            for key, short in short_names.items()
        },
        capacity={
            key: extra.get(f"{short}CapacityMetric") or defaults.capacity[key]
            for key, short in short_names.items()
        },
    )
