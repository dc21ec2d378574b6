"""Sample 01: a tree of queues, its status and metrics, and what limits do to the work in it."""

from __future__ import annotations

import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kube.resources import PODGROUPS, QUEUES
from tests.samples.sample import Sample

pytestmark = pytest.mark.timeout(240)
QUOTAS = {
    "kai_queue_deserved_gpus": 2.0,
    "kai_queue_quota_cpu_cores": 40.0,
    "kai_queue_quota_memory_bytes": 2.5e11,
}


@pytest.fixture(scope="module")
def tree(sample: Sample) -> Sample:
    sample.apply("01-queues.yaml")
    return sample


def test_a_parent_lists_its_children(tree: Sample) -> None:
    def children(name: str) -> list[str]:
        status = tree.get(QUEUES, name).get("status") or {}
        return sorted(status.get("childQueues") or ())

    tree.wait(lambda: children("s01-college") == ["s01-genes", "s01-optics"], "two children")
    tree.wait(lambda: children("s01-works") == ["s01-lathe"], "one child")
    assert children("s01-optics") == []


def test_quotas_are_metrics_of_the_controllers(tree: Sample) -> None:
    def told() -> dict[str, float]:
        url = f"http://127.0.0.1:{tree.installation.port('controller-metrics')}/metrics"
        with urllib.request.urlopen(url, timeout=10) as answer:
            families = text_string_to_metric_families(answer.read().decode())
            return {
                sample.name: sample.value
                for family in families
                for sample in family.samples
                if sample.labels.get("queue_name") == "s01-optics"
            }

    tree.wait(lambda: told().items() >= QUOTAS.items(), f"the metrics {QUOTAS}")


def test_a_queue_stops_at_its_limit(tree: Sample) -> None:
    tree.wait_bound("capped", count=3)
    group = tree.pod_group_of("capped")["metadata"]["name"]
    text = "OverLimit: Optics quota has reached the allowable limit of GPUs. Limit is 3 GPUs"
    tree.wait(
        lambda: any(text in message for _, _, message in tree.events_of("PodGroup", group)),
        f"an event that says {text!r}",
    )
    assert len(tree.bound("capped")) == 3


def test_a_queue_without_a_limit_goes_beyond_its_quota(tree: Sample) -> None:
    tree.wait_bound("uncapped", count=6)


def test_work_in_a_department_is_accepted_but_only_leaves_run_it(tree: Sample) -> None:
    group = tree.pod_group_of("in-department")
    assert tree.get(PODGROUPS, group["metadata"]["name"])["spec"]["queue"] == "s01-college"
    tree.stays(lambda: not tree.bound("in-department"), "the pod of the department waits")
    text = "QueueOrphan: Queue 's01-college' has child queues; only leaf queues run work."
    tree.wait(
        lambda: ("Warning", "Unschedulable", text) in tree.events_of("Pod", "in-department"),
        f"the event {text!r}",
    )
