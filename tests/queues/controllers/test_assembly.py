"""The process of all controllers: starts on a store, works, elects, ends on refused credentials."""

from __future__ import annotations

import threading
import time
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from kube.errors import UnauthorizedError
from kube.resources import LEASES, PODGROUPS, PODS, QUEUES
from queues.controllers import assembly
from queues.controllers.arguments import add_common, add_pod_grouper, add_status, options_of
from queues.controllers.assembly import Controllers, Options
from tests.fakes.gateway import FakeGateway
from tests.queues.controllers.fake_cluster import queue


def eventually(condition: Callable[[], bool], timeout_s: float = 20.0) -> bool:
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def pod(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "lab", "labels": {"kai.scheduler/queue": "q"}},
        "spec": {
            "schedulerName": "kai-scheduler",
            "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
        },
        "status": {"phase": "Running"},
    }


def status(gateway: FakeGateway, name: str) -> dict[str, Any]:
    current_status: dict[str, Any] = gateway.raw(QUEUES, name).get("status", {})
    return current_status


@pytest.mark.parametrize("has_leases", [False, True])
def test_a_pod_is_grouped_counted_and_summed_up_to_the_root(has_leases: bool) -> None:
    gateway = FakeGateway(follow_s=0.5)
    gateway.seed(QUEUES, queue("root"), queue("q", "root"))
    gateway.seed(PODS, pod("before"))
    controllers = Controllers(gateway, Options(has_leader_election=has_leases, concurrency=2))
    code: list[int] = []
    runner = threading.Thread(target=lambda: code.append(controllers.run()))
    runner.start()
    try:
        gateway.seed(PODS, pod("after"))
        two_gpus = {"nvidia.com/gpu": "2"}
        assert eventually(lambda: status(gateway, "root").get("allocated") == two_gpus)
        assert len(gateway.names(PODGROUPS)) == 2
        assert sorted(gateway.names(LEASES)) == (
            ["54dff599.kai.scheduler", "o1x22tjj.kai.scheduler", "ov3xj497.kai.scheduler"]
            if has_leases
            else []
        )
    finally:
        controllers.stop.set()
        runner.join(20)
    assert code == [0]


def test_refused_credentials_end_the_process_with_an_error() -> None:
    gateway = FakeGateway()
    gateway.fail_next("list", "pods", UnauthorizedError("expired"))
    controllers = Controllers(gateway, Options(keeps_status=False))
    assert controllers.run() == 1
    assert controllers.failure == "expired"


def test_flags_become_options() -> None:
    flags = {
        "scheduler_name": "kai-scheduler", "namespace": "kai", "leader_elect": True, "metrics_bind_address": ":8080",
        "queue_label_key": "q", "nodepool_label_key": "", "max_concurrent_reconciles": 3, "search_legacy_pg": "false",
        "knative_gang_schedule": "false", "generic_karta_fallback": "false", "default_priorities_configmap_name": "n",
        "default_priorities_configmap_namespace": "ns", "pod_label_selector": " a = b ,junk", "namespace_label_selector": "c=d",
    }  # fmt: skip
    options = options_of(flags, keeps_status=False)
    assert options.metrics_address == ("0.0.0.0", 8080)
    assert (options.pod_selector, options.namespace_labels) == ("a=b", {"c": "d"})
    assert options.defaults_config_map == ("ns", "n")
    settings = options.settings
    assert (settings.search_legacy, settings.knative_gang, settings.karta_fallback) == (False,) * 3
    assert options.adjuster is None


def test_label_flags_reach_the_queue_metrics() -> None:
    gateway = FakeGateway(follow_s=0.5)
    body = queue("q")
    body["metadata"]["labels"] = {"site": "north"}
    gateway.seed(QUEUES, body)
    parser = ArgumentParser()
    add_common(parser)
    add_pod_grouper(parser)
    add_status(parser)
    flags = parser.parse_args(
        [
            "--metrics-namespace=mine",
            "--queue-label-to-metric-label=site=location,tier=class",
            "--queue-label-to-default-metric-value=tier=none",
        ]
    )
    controllers = Controllers(gateway, options_of(vars(flags), keeps_status=True))
    controllers.start()
    labels = {"queue_name": "q", "queue_metadata_name": "q", "queue_display_name": ""}
    labels |= {"location": "north", "class": "none"}
    try:
        name = "mine_queue_info"
        assert eventually(lambda: controllers.registry.get_sample_value(name, labels) == 1)
        # The metrics of the process itself have the usual names of the Prometheus client.
        assert controllers.registry.get_sample_value("process_resident_memory_bytes") > 0
    finally:
        controllers.close()


def test_bad_flags_are_refused_by_name() -> None:
    with pytest.raises(
        CommandError, match="--metrics-bind-address: expected host:port, got 'here'"
    ):
        call_command("run_controllers", "--metrics-bind-address", "here")


def test_the_commands_pass_their_flags_and_exit_with_the_code_of_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options_of_runs: list[Options] = []

    class EndsAtOnce(Controllers):
        def run(self) -> int:
            options_of_runs.append(self.options)
            return 3

    monkeypatch.setattr(assembly, "Controllers", EndsAtOnce)
    monkeypatch.setattr("queues.management.commands.run_controllers.Controllers", EndsAtOnce)
    monkeypatch.setattr("queues.cluster.gateway", FakeGateway)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    with pytest.raises(SystemExit) as exit_error:
        call_command("run_controllers", "--node-scale-adjuster", "--scale-adjust-namespace", "x")
    assert exit_error.value.code == 3
    assert options_of_runs[0].adjuster is not None
    assert options_of_runs[0].adjuster.namespace == "x"
    with pytest.raises(SystemExit):
        call_command("run_pod_grouper")
    assert not options_of_runs[1].keeps_status
