"""Sample 65: fairness over time needs a Prometheus, finds it through the Config, and counts by kValue."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from kube.objects.config import Config, SchedulingShard
from kube.objects.meta import convert
from kube.resources import CONFIGS, SHARDS
from scheduler.core.plugins.proportion import ProportionArguments
from scheduler.settings.shard import settings_of
from scheduler.settings.usage import read_usage_config, with_connection
from tests.samples.cluster_config import CONFIG, config_restored, current_conditions, wait_for
from tests.samples.installations import MANIFESTS
from tests.samples.node_pool_pods import pod_yaml
from tests.samples.sample import Sample

pytestmark = pytest.mark.timeout(300)

MISSING = "prometheus connection string not configured: "
INSIDE = "http://usage-prometheus.kai-scheduler.svc.cluster.local:9090"
#: What the queues have had of the 100 units that every resource of the cluster has in all.
HELD = {"s65-greedy": 90.0, "s65-modest": 0.0}


class Prometheus:
    """Answers instant queries with what the queues have had; records the queries."""

    def __init__(self) -> None:
        self.queries: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                assert parts.path == "/api/v1/query"
                body = outer.answer(parse_qs(parts.query)["query"][0])
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def answer(self, query: str) -> bytes:
        self.queries.append(query)
        series: list[tuple[dict[str, str], float]] = [({}, 100.0)]
        if "kai_queue_allocated" in query:
            series = [({"queue_name": name}, value) for name, value in HELD.items()]
        result = [{"metric": labels, "value": [0, str(value)]} for labels, value in series]
        data = {"resultType": "vector", "result": result}
        return json.dumps({"status": "success", "data": data}).encode()


@pytest.fixture(scope="module")
def prometheus() -> Iterator[Prometheus]:
    prometheus = Prometheus()
    thread = threading.Thread(target=prometheus.server.serve_forever, daemon=True)
    thread.start()
    yield prometheus
    prometheus.server.shutdown()
    thread.join()
    prometheus.server.server_close()


def point_at(sample: Sample, **prometheus: Any) -> None:
    sample.installation.gateway.patch(CONFIGS, CONFIG, {"spec": {"prometheus": prometheus}})


def log_of(sample: Sample) -> str:
    file = sample.stack.home / "logs" / "scheduling-quartz.log"
    return file.read_text() if file.exists() else ""


def test_the_strength_reaches_the_plugin_and_the_address_follows_from_the_config() -> None:
    body = next(yaml.safe_load_all((MANIFESTS / "65-time-based.yaml").read_text()))
    shard = convert(body, SchedulingShard)
    config = convert({"spec": {"prometheus": {"enabled": True}}}, Config)
    plugins = settings_of("quartz", shard, config).core.plugins
    (arguments,) = [plugin.arguments for plugin in plugins if plugin.name == "proportion"]
    assert arguments == ProportionArguments(k_value=0.5)
    settings = with_connection(shard.spec.usage_db_config, config)
    assert settings is not None
    usage = read_usage_config(settings, {})
    assert usage.connection == INSIDE
    assert (usage.params.half_life_s, usage.params.window_s) == (12 * 3600, 2 * 86400)


@pytest.fixture(scope="module")
def pool(sample: Sample) -> Iterator[Sample]:
    with config_restored(sample.installation):
        sample.add_nodes("65-nodes.yaml")
        sample.apply("65-time-based.yaml")
        yield sample


def test_without_a_prometheus_the_shard_says_what_is_missing(pool: Sample) -> None:
    message = wait_for(pool.installation, SHARDS, "quartz", "Deployed", "False", MISSING)
    assert message.startswith(MISSING)
    assert current_conditions(pool.installation, SHARDS, "quartz")["Available"] == (
        "False",
        "available",
        "Scheduler: not available",
    )
    assert "scheduling-quartz" not in pool.stack.pids()


def test_a_prometheus_of_the_cluster_is_asked_for_under_its_usual_name(pool: Sample) -> None:
    point_at(pool, enabled=True)
    text = "\nKAI-prometheus is missing prometheus operator"
    assert wait_for(pool.installation, CONFIGS, CONFIG, "DependenciesFulfilled", "False") == text
    wait_for(pool.installation, SHARDS, "quartz", "Ready", "True")
    pool.wait(lambda: INSIDE in log_of(pool), f"{INSIDE} in the scheduler's log")


def test_a_queue_with_high_past_usage_gets_less(pool: Sample, prometheus: Prometheus) -> None:
    point_at(pool, externalPrometheusUrl=prometheus.url)
    pool.wait(
        lambda: any("kai_queue_allocated_memory" in query for query in prometheus.queries),
        "the last question of a round",
    )
    wait_for(pool.installation, CONFIGS, CONFIG, "DependenciesFulfilled", "True")
    for number in range(4):
        for queue in HELD:
            name = f"{queue.removeprefix('s65-')}-{number}"
            pool.apply_text(pod_yaml(name, queue=queue, pool="quartz"))

    def bound(prefix: str) -> int:
        return sum(body["metadata"]["name"].startswith(prefix) for body in pool.bound())

    # Equal weights would divide the four GPUs 2 : 2. With usages 0.9 and 0 and half strength
    # they count 0.5 + 0.5 * (0.5 - 0.9) = 0.3 against 0.5 + 0.5 * 0.5 = 0.75.
    pool.wait(lambda: (bound("greedy"), bound("modest")) == (1, 3), "one and three GPUs")


def test_the_question_has_the_window_and_the_half_life_of_the_shard(
    pool: Sample, prometheus: Prometheus
) -> None:
    assert pool.exists(SHARDS, "quartz")
    (question, *_) = [query for query in prometheus.queries if "kai_queue_allocated_gpus" in query]
    assert question.startswith("sum_over_time(((kai_queue_allocated_gpus) * (0.5^((")
    assert question.endswith(" - time()) / 43200.000000)))[48h0m0s:1m0s])")
