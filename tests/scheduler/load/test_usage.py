"""Usage from our own history and from Prometheus, over every kind of window."""

from __future__ import annotations

import json
import urllib.parse

import pytest

from scheduler.load.usage import PrometheusUsage, UsageError, UsageHistory, UsageReader, UsageSample
from scheduler.settings.usage import (
    Source,
    UsageConfigError,
    UsageParams,
    WindowType,
    read_seconds,
    read_usage_config,
    read_usage_params,
)

HOUR = 3600.0


def sample(time_s: float, **gpus: float) -> UsageSample:
    allocated = {name: (0.0, 0.0, amount) for name, amount in gpus.items()}
    return UsageSample(time_s=time_s, allocated=allocated, capacity=(100.0, 1000.0, 10.0))


def history(params: UsageParams, samples: list[UsageSample]) -> UsageHistory:
    store = UsageHistory(params)
    for sample_ in samples:
        store.record(sample_)
    return store


def test_usage_is_the_share_of_the_cluster_over_the_window() -> None:
    params = UsageParams(window_s=10 * HOUR, fetch_interval_s=HOUR)
    samples = [sample(hour * HOUR, a=8.0 if hour <= 3 else 0.0) for hour in range(1, 11)]
    assert history(params, samples).fetch(10 * HOUR)["a"] == pytest.approx((0.0, 0.0, 0.24))


def test_samples_before_a_sliding_window_do_not_count() -> None:
    params = UsageParams(window_s=2 * HOUR, fetch_interval_s=HOUR)
    store = history(
        params, [sample(HOUR, a=10.0), sample(2 * HOUR, a=0.0), sample(3 * HOUR, a=5.0)]
    )
    assert store.fetch(3 * HOUR)["a"][2] == pytest.approx(0.25)


def test_a_queue_that_holds_the_whole_cluster_has_usage_one_at_any_half_life() -> None:
    params = UsageParams(window_s=10 * HOUR, half_life_s=HOUR, fetch_interval_s=HOUR)
    store = history(params, [sample(hour * HOUR, a=10.0, b=0.0) for hour in range(1, 10)])
    assert store.fetch(9 * HOUR)["a"][2] == pytest.approx(1.0)
    assert store.fetch(9 * HOUR)["b"][2] == 0.0


def test_an_old_sample_counts_half_after_a_half_life() -> None:
    params = UsageParams(window_s=10 * HOUR, half_life_s=HOUR, fetch_interval_s=HOUR)
    store = history(params, [sample(HOUR, a=10.0), sample(2 * HOUR, a=0.0)])
    assert store.fetch(2 * HOUR)["a"][2] == pytest.approx(0.5 / 1.5)


def test_a_tumbling_window_begins_anew_at_each_reset() -> None:
    params = UsageParams(
        window_s=4 * HOUR,
        window_type=WindowType.TUMBLING,
        tumbling_start_s=0.0,
        fetch_interval_s=HOUR,
    )
    store = history(params, [sample(hour * HOUR, a=10.0) for hour in range(1, 5)])
    assert store.fetch(4 * HOUR)["a"][2] == 1.0
    assert params.window_start_s(4.5 * HOUR) == 4 * HOUR
    assert params.window_start_s(4 * HOUR) == 0.0
    assert store.fetch(4.5 * HOUR)["a"][2] == 0.0


def test_an_anchor_in_the_future_means_reset_now() -> None:
    params = UsageParams(window_type=WindowType.TUMBLING, tumbling_start_s=100.0, window_s=10.0)
    assert params.window_start_s(50.0) == 50.0


def test_a_cron_window_begins_at_the_last_occurrence() -> None:
    params = UsageParams(window_type=WindowType.CRON, cron="0 6 * * *")
    assert params.window_start_s(30 * HOUR + 1) == 30 * HOUR
    assert params.window_start_s(30 * HOUR) == 6 * HOUR


def test_samples_closer_than_the_fetch_interval_are_passed_over() -> None:
    store = history(UsageParams(fetch_interval_s=60.0), [sample(0.0, a=1.0), sample(30.0, a=9.0)])
    assert [sample.time_s for sample in store.samples] == [0.0]


def test_samples_move_with_a_clock_that_steps_back_and_recording_goes_on(tmp_path) -> None:
    params = UsageParams(window_s=10 * HOUR, fetch_interval_s=60.0)
    store = UsageHistory(params, tmp_path / "shard.jsonl")
    for time_s in (9000.0, 9060.0, 3060.0, 3090.0, 3120.0):
        store.record(sample(time_s, a=1.0))
    assert [sample.time_s for sample in store.samples] == [3000.0, 3060.0, 3120.0]
    assert list(UsageHistory(params, tmp_path / "shard.jsonl").samples) == list(store.samples)


def test_usage_is_fetched_again_after_a_step_back_of_the_clock() -> None:
    params = UsageParams(window_s=10 * HOUR, fetch_interval_s=60.0)
    reader = UsageReader(history(params, [sample(0.0, a=1.0)]), params)
    reader.refresh(9000.0)
    reader.source.record(sample(3000.0, b=1.0))
    reader.refresh(3000.0)
    assert (reader.fetched_s, set(reader.usage)) == (3000.0, {"a", "b"})


def test_history_survives_the_process(tmp_path) -> None:
    params = UsageParams(window_s=2 * HOUR, fetch_interval_s=HOUR)
    store = UsageHistory(params, tmp_path / "usage" / "shard.jsonl")
    for hour in range(1, 5):
        store.record(sample(hour * HOUR, a=float(hour)))
    again = UsageHistory(params, tmp_path / "usage" / "shard.jsonl")
    assert list(again.samples) == list(store.samples)
    assert len(again.samples) == 3
    assert again.fetch(4 * HOUR) == store.fetch(4 * HOUR)


def test_an_empty_history_knows_no_usage() -> None:
    assert UsageHistory(UsageParams()).fetch(0.0) == {}


class FakePrometheus:
    def __init__(self, answers: dict[str, list]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, str]] = []

    def __call__(self, address: str, timeout_s: float) -> bytes:
        parameters = urllib.parse.parse_qs(urllib.parse.urlparse(address).query)
        self.asked.append((parameters["query"][0], parameters["time"][0]))
        result = next(
            (rows for name, rows in self.answers.items() if name in parameters["query"][0]), []
        )
        return json.dumps(
            {"status": "success", "data": {"resultType": "vector", "result": result}}
        ).encode()


def row(value: float, queue: str | None = None) -> dict:
    return {"metric": {"queue_name": queue} if queue else {}, "value": [0, str(value)]}


CAPACITIES = {
    'resource="cpu"': [row(100)],
    'resource="memory"': [row(1000)],
    'resource="nvidia_com_gpu"': [row(600)],
}


def test_prometheus_is_asked_for_allocation_over_capacity() -> None:
    fake = FakePrometheus(CAPACITIES | {"kai_queue_allocated_gpus": [row(144, "a"), row(60, "b")]})
    usage = PrometheusUsage("http://prometheus/", UsageParams(), get=fake).fetch(1000.0)
    assert usage == {"a": (0.0, 0.0, 0.24), "b": (0.0, 0.0, 0.1)}
    assert fake.asked[0] == (
        'sum_over_time((sum(kube_node_status_capacity{resource="cpu"}))[168h0m0s:1m0s])',
        "1000.000",
    )


def test_a_half_life_fades_inside_the_query() -> None:
    params = UsageParams(half_life_s=600.0)
    query = PrometheusUsage("http://p", params).expression("m", 1000.0)
    assert query == "sum_over_time(((m) * (0.5^((1000 - time()) / 600.000000)))[168h0m0s:1m0s])"


def test_a_tumbling_window_is_asked_since_its_reset() -> None:
    params = UsageParams(window_type=WindowType.TUMBLING, tumbling_start_s=0.0, window_s=HOUR)
    query = PrometheusUsage("http://p", params).expression("m", HOUR + 600)
    assert query == "sum_over_time((m)[10m0s:1m0s])"


def test_missing_capacity_fails_the_whole_fetch_and_keeps_the_previous_data() -> None:
    fake = FakePrometheus(CAPACITIES | {"kai_queue_allocated_gpus": [row(6, "a")]})
    reader = UsageReader(PrometheusUsage("http://p", UsageParams(), get=fake), UsageParams())
    assert reader.warning(0.0) == ""
    reader.refresh(0.0)
    assert reader.usage == {"a": (0.0, 0.0, 0.01)}
    fake.answers = {}
    reader.refresh(30.0)
    assert len(fake.asked) == 6
    reader.refresh(400.0)
    assert reader.usage == {"a": (0.0, 0.0, 0.01)}
    assert reader.error == "no capacity data for cpu from http://p"
    assert reader.warning(400.0) == "usage is 400 s old, expected at most 300 s"
    assert reader.warning(100.0) == ""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"status":"error","error":"bad"}', "was refused: bad"),
        (b'{"status":"success","data":{"resultType":"matrix"}}', "expected a vector, got matrix"),
        (b"nonsense", "failed"),
    ],
)
def test_an_answer_that_cannot_be_read_is_a_usage_error(body, message) -> None:
    source = PrometheusUsage("http://p", UsageParams(), get=lambda *_: body)
    with pytest.raises(UsageError, match=message):
        source.fetch(0.0)


def test_only_http_addresses_are_read() -> None:
    with pytest.raises(UsageError, match="expected an http"):
        PrometheusUsage("file:///etc", UsageParams()).fetch(0.0)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1w", 604800),
        ("1h30m", 5400),
        ("90", 90),
        (5, 5),
        ("1.5h", 5400),
        ("-5s", -5),
        ("100ms", 0.1),
    ],
)
def test_durations_are_read(text, seconds) -> None:
    assert read_seconds(text) == pytest.approx(seconds)


def test_a_configuration_is_read_in_full() -> None:
    config = read_usage_config(
        {
            "clientType": "prometheus",
            "connectionStringEnvVar": "USAGE_DB",
            "usageParams": {
                "halfLifePeriod": "12h",
                "windowType": "tumbling",
                "windowSize": "1d",
                "tumblingWindowStartTime": "1970-01-02T00:00:00Z",
                "stalenessPeriod": "10s",
                "extraParams": {"gpuAllocationMetric": "my_gpus"},
            },
        },
        {"USAGE_DB": "http://prometheus:9090"},
    )
    assert config.source is Source.PROMETHEUS
    assert config.connection == "http://prometheus:9090"
    assert config.params.half_life_s == 43200
    assert config.params.tumbling_start_s == 86400
    assert config.params.staleness_s == 60
    assert config.params.metrics.allocation["nvidia.com/gpu"] == "my_gpus"
    assert config.params.metrics.allocation["cpu"] == "kai_queue_allocated_cpu_cores"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "clientType: expected prometheus, history, got ''"),
        ({"clientType": "influx"}, "got 'influx'"),
        ({"clientType": "prometheus"}, "exactly one of"),
        (
            {"clientType": "prometheus", "connectionString": "a", "connectionStringEnvVar": "B"},
            "exactly one",
        ),
        ({"clientType": "prometheus", "connectionStringEnvVar": "B"}, "B is not set"),
    ],
)
def test_a_bad_source_is_refused(parameters, message) -> None:
    with pytest.raises(UsageConfigError, match=message):
        read_usage_config(parameters, {})


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"windowType": "tumbling"}, "tumblingWindowStartTime"),
        ({"windowType": "cron", "cronString": "nope"}, "cronString"),
        ({"windowType": "other"}, "windowType: expected sliding, tumbling, cron"),
        ({"windowSize": "0s"}, "windowSize"),
        ({"windowSize": "soon"}, "windowSize: expected a duration"),
        ({"tumblingWindowStartTime": "noon"}, "RFC 3339"),
    ],
)
def test_bad_parameters_are_refused(parameters, message) -> None:
    with pytest.raises(UsageConfigError, match=message):
        read_usage_params(parameters)


def test_a_half_life_of_nothing_means_no_fading() -> None:
    assert read_usage_params({"halfLifePeriod": "0s"}).half_life_s is None
