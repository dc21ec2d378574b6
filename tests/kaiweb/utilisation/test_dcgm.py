"""What is read from an answer of Prometheus, and that no answer does harm."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kaiweb.utilisation import dcgm
from kaiweb.utilisation.dcgm import ReadError, read_samples
from tests.kaiweb.utilisation.conftest import ENGINE, UTIL, Prometheus, series


def read(prometheus: Prometheus) -> dict[str, float]:
    return {sample.device: sample.percent for sample in read_samples(prometheus.address)}


def test_both_metrics_are_read_and_the_greater_value_counts(prometheus: Prometheus) -> None:
    prometheus.answers = {
        UTIL: [series(40, 0), series(0, 1)],
        ENGINE: [series(0.35, 0), series(0.02, 1), series(0.5, 2, GPU_I_ID="7")],
    }
    assert read(prometheus) == {"0": 40, "1": 2, "2:7": 50}
    assert [UTIL in prometheus.queries[0], ENGINE in prometheus.queries[1]] == [True, True]


def test_the_labels_of_the_device_come_before_those_of_the_scrape(prometheus: Prometheus) -> None:
    labels = {
        "exported_namespace": "ns", "exported_pod": "train-0", "namespace": "gpu-operator",
        "pod": "dcgm-exporter-x", "instance": "10.0.0.7:9400", "UUID": "GPU-1",
    }  # fmt: skip
    prometheus.answers = {UTIL: [series(40, 3, **labels)]}
    [sample] = read_samples(prometheus.address)
    assert sample.hosts == ("n1", "10.0.0.7")
    assert sample.pods == ("ns/train-0", "gpu-operator/dcgm-exporter-x")
    assert (sample.device, sample.uuid) == ("3", "GPU-1")


@pytest.mark.parametrize(
    "broken",
    [
        series("NaN"),
        series("+Inf"),
        series(-1),
        series(101),
        series(9223372036854775794),  # DCGM's sign for "not available"
        series("many"),
        series(40, "first"),
        series(40, ""),
        series(40, "9" * 400),
        series(40, node=""),
        series(40, node="n" * 300),
        {"metric": {"Hostname": 7, "gpu": 0}, "value": [1, "40"]},
        {"metric": {"Hostname": "n1"}, "value": [1, "40"]},
        {"metric": {"Hostname": "n1", "gpu": "0"}},
        {"metric": {"Hostname": "n1", "gpu": "0"}, "value": "40"},
        {"metric": {"Hostname": "n1", "gpu": "0"}, "value": [1, {}]},
        {"metric": ["Hostname"], "value": [1, "40"]},
        {"value": [1, "40"]},
        None,
        "text",
        [],
    ],
)
def test_a_series_that_cannot_be_read_is_left_out(prometheus: Prometheus, broken: Any) -> None:
    prometheus.answers = {UTIL: [broken, series(40, 1)]}
    assert read(prometheus) == {"1": 40}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 200_000,
        b'{"status": "error", "error": "too many samples"}',
        b'{"status": "success"}',
        b'{"status": "success", "data": []}',
        b'{"status": "success", "data": {"resultType": "matrix", "result": []}}',
        b'{"status": "success", "data": {"resultType": "vector", "result": {}}}',
    ],
)
def test_an_answer_that_is_no_result_is_a_read_error(prometheus: Prometheus, body: bytes) -> None:
    prometheus.body = body
    with pytest.raises(ReadError, match=UTIL):
        read(prometheus)


def test_a_refusal_is_a_read_error(prometheus: Prometheus) -> None:
    prometheus.status = 503
    with pytest.raises(ReadError, match="503"):
        read(prometheus)


def test_a_million_series_are_refused(
    prometheus: Prometheus, monkeypatch: pytest.MonkeyPatch
) -> None:
    prometheus.answers = {UTIL: [series(1, gpu) for gpu in range(20)]}
    monkeypatch.setattr(dcgm, "MAX_SERIES", 19)
    with pytest.raises(ReadError, match="expected at most 19 series, got 20"):
        read(prometheus)
    monkeypatch.setattr(dcgm, "MAX_BYTES", len(json.dumps(prometheus.answers[UTIL])))
    with pytest.raises(ReadError, match="expected an answer of at most"):
        read(prometheus)


def test_nobody_there_is_a_read_error() -> None:
    with pytest.raises(ReadError, match=UTIL):
        read_samples("http://127.0.0.1:1")
    with pytest.raises(ReadError, match="expected an http"):
        read_samples("ftp://127.0.0.1/")
