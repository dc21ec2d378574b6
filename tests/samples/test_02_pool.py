"""Sample 02: a SchedulingShard is a scheduler of its own, which sees its pool and nothing else."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest
import redis
import yaml

from kube.objects.config import SchedulingShard
from kube.objects.meta import convert
from kube.resources import BINDREQUESTS, NODES, PODGROUPS, SHARDS
from scheduler.core.decisions import ActionName
from scheduler.core.plugins.min_runtime import MinRuntimeArguments
from scheduler.settings.shard import ShardSettings, settings_of
from tests.samples.cluster_config import READY, current_conditions, replace, wait_for
from tests.samples.installations import MANIFESTS
from tests.samples.node_pool_pods import POOL, pod_yaml
from tests.samples.sample import Sample

pytestmark = pytest.mark.timeout(300)


def pod(
    name: str, *, queue: str = "s02-guild", pool: str = "opal", gpus: int = 1, **spec: Any
) -> str:
    return pod_yaml(name, queue=queue, pool=pool, limits={"nvidia.com/gpu": str(gpus)}, **spec)


def reasons_of(sample: Sample, name: str) -> str:
    """Return all conditions of the pod groups that wait."""
    groups = sample.pod_groups_of(name)
    condition_message = [
        str((group.get("status") or {}).get("schedulingConditions")) for group in groups
    ]
    events = [
        message
        for group in groups
        for _, _, message in sample.events_of("PodGroup", group["metadata"]["name"])
    ]
    return " ".join([*condition_message, *events])


def patch(sample: Sample, **spec: Any) -> None:
    sample.installation.gateway.patch(SHARDS, "opal", {"spec": spec})


def free_the_pool(sample: Sample) -> None:
    """Delete every pod and wait until none is left."""
    sample.kubectl("delete", "pods", "--all", "--wait=false", "--grace-period=0", "--force")
    sample.wait(lambda: not sample.kubectl("get", "pods", "-o", "name"), "an empty namespace")


@pytest.fixture
def settings() -> ShardSettings:
    """The settings that the manifest gives the scheduler."""
    body = next(yaml.safe_load_all((MANIFESTS / "02-pool.yaml").read_text()))
    return settings_of("opal", convert(body, SchedulingShard), None)


def test_spread_turns_plugins_and_consolidation_over(settings: ShardSettings) -> None:
    names = {plugin.name for plugin in settings.core.plugins}
    assert {"gpuspread", "reflectjoborder"} <= names
    assert not {"gpupack", "gpusharingorder"} & names
    assert settings.core.actions == (
        ActionName.ALLOCATE,
        ActionName.RECLAIM,
        ActionName.PREEMPT,
        ActionName.STALE_GANG_EVICTION,
    )


def test_the_rest_of_the_spec_reaches_the_scheduler(settings: ShardSettings) -> None:
    arguments = {plugin.name: plugin.arguments for plugin in settings.core.plugins}
    assert arguments["minruntime"] == MinRuntimeArguments(
        default_preempt_s=180, default_reclaim_s=240
    )
    assert settings.core.depth_of(ActionName.ALLOCATE) == 50
    assert settings.core.depth_of(ActionName.RECLAIM) == 5
    assert settings.core.staleness_grace_s == 75
    assert settings.params.pool_labels() == {POOL: "opal"}


@pytest.fixture(scope="module")
def pool(sample: Sample) -> Sample:
    """The pool with its machines, its scheduler and one bound pod."""
    sample.add_nodes("02-nodes.yaml")
    sample.apply("02-pool.yaml")
    sample.wait_bound("cutter", count=1)
    return sample


def test_the_shard_has_a_scheduler_and_says_so(pool: Sample) -> None:
    assert "scheduling-opal" in pool.stack.pids()
    wait_for(pool.installation, SHARDS, "opal", "Ready", "True")
    assert current_conditions(pool.installation, SHARDS, "opal") == READY
    assert current_conditions(pool.installation, SHARDS, "default") == READY


def test_the_pool_label_travels_from_the_pod_to_its_group_and_its_bind_request(
    pool: Sample,
) -> None:
    requests = pool.installation.gateway.list(BINDREQUESTS, as_type=dict, namespace=pool.namespace)
    pool.apply_text(pod("polisher"))
    pool.wait_bound("polisher", count=1)
    uid = pool.pod("polisher")["metadata"]["uid"]
    group = pool.get(PODGROUPS, f"pg-polisher-{uid}")
    assert (group["metadata"]["labels"][POOL], group["spec"]["queue"]) == ("opal", "s02-guild")
    # The request may be gone already; what was written is in the history.
    (request, *_) = [
        event.object
        for event in pool.installation.gateway.watch(
            BINDREQUESTS,
            as_type=dict,
            resource_version=requests.resource_version,
            namespace=pool.namespace,
            timeout_s=1,
        )
        if event.object["metadata"].get("name") == "polisher"
    ]
    assert request["metadata"]["labels"][POOL] == "opal"


def test_pods_are_spread_over_the_machines_of_the_pool(pool: Sample) -> None:
    free_the_pool(pool)
    for name in ("left", "right"):
        pool.apply_text(pod(name))
        pool.wait_bound(name, count=1)
    assert {pool.pod(name)["spec"]["nodeName"] for name in ("left", "right")} == {
        "opal-1",
        "opal-2",
    }


def test_machines_outside_of_the_pool_do_not_exist_for_it(pool: Sample) -> None:
    free_the_pool(pool)
    pool.apply_text(pod("broad", gpus=5))
    text = "Max GPU resources available in a single node in the opal node-pool is topped at 4."
    pool.wait(lambda: text in reasons_of(pool, "broad"), text)
    assert pool.bound("broad") == []


def test_the_default_pool_keeps_away_from_its_machines_and_queues(pool: Sample) -> None:
    selector = {"kubernetes.io/hostname": "opal-1"}
    pool.apply_text(pod("stray", queue="default-queue", pool="", nodeSelector=selector))
    pool.apply_text(pod("lost", pool=""))
    message = "Queue 's02-guild' does not exist"
    pool.wait(lambda: message in reasons_of(pool, "lost"), message)
    pool.wait(lambda: reasons_of(pool, "stray").strip("[] None"), "a reason of stray")
    pool.stays(lambda: not pool.bound("stray", "lost"), "no pod crosses into the pool")


def test_the_pool_does_not_know_queues_without_its_label(pool: Sample) -> None:
    pool.apply_text(pod("guest", queue="default-queue"))
    message = "Queue 'default-queue' does not exist"
    pool.wait(lambda: message in reasons_of(pool, "guest"), message)
    assert pool.bound("guest") == []


def test_its_metrics_and_its_plugins_pages_have_a_port_of_their_own(pool: Sample) -> None:
    token = (pool.installation.stack.home / "debug-token").read_text()

    def page(port: str, path: str = "metrics") -> str:
        request = urllib.request.Request(
            f"http://127.0.0.1:{pool.installation.port(port)}/{path}",
            headers={"Authorization": f"Bearer {token}"},
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return str(answer.read().decode())

    mine = 'queue_name="s02-guild"'
    pool.wait(lambda: mine in page("scheduler-metrics-opal"), "the fair share of the pool's queue")
    assert 'queue_name="default-queue"' not in page("scheduler-metrics-opal")
    assert mine not in page("scheduler-metrics")
    # Plugin reflectjoborder, which only this shard has.
    assert isinstance(json.loads(page("scheduler-metrics-opal", "get-job-order")), dict)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        page("scheduler-metrics", "get-job-order")


def test_an_edit_is_followed_while_it_runs(pool: Sample) -> None:
    free_the_pool(pool)
    pid = pool.stack.pids()["scheduling-opal"]
    patch(pool, placementStrategy={"gpu": "binpack"})
    wait_for(pool.installation, SHARDS, "opal", "Ready", "True")
    for name in ("one", "two", "three"):
        pool.apply_text(pod(name))
        pool.wait_bound(name, count=1)
    places = {pool.pod(name)["spec"]["nodeName"] for name in ("one", "two", "three")}
    assert len(places) == 1
    assert pool.stack.pids()["scheduling-opal"] == pid


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            {"placementStrategy": {"gpu": "scatter"}},
            "placementStrategy.gpu: expected one of binpack, spread, fragmentation, got 'scatter'",
        ),
        (
            {"queueDepthPerAction": {"consolidate": 3}},
            "consolidate isn't one of them, making the queueDepthPerAction invalid",
        ),
        (
            {"args": {"schedule-csi-storage": "perhaps"}},
            "schedule-csi-storage: expected true or false, got 'perhaps'",
        ),
    ],
)
def test_an_invalid_edit_is_reported_and_the_old_settings_stay(
    pool: Sample, spec: dict[str, Any], problem: str
) -> None:
    before = pool.get(SHARDS, "opal")["spec"]
    patch(pool, **spec)
    condition_message = wait_for(pool.installation, SHARDS, "opal", "Deployed", "False", problem)
    assert problem in condition_message
    assert current_conditions(pool.installation, SHARDS, "opal")["Ready"] == (
        "False",
        "not_ready",
        "System not ready",
    )
    name = f"undeterred-{next(iter(spec)).lower()}"
    pool.apply_text(pod(name))
    pool.wait_bound(name, count=1)
    replace(pool.installation, SHARDS, "opal", lambda body: {**body, "spec": before})
    wait_for(pool.installation, SHARDS, "opal", "Ready", "True")


def test_a_killed_scheduler_is_reported_and_restarted(pool: Sample) -> None:
    free_the_pool(pool)
    before = pool.stack.kill("scheduling-opal")
    wait_for(pool.installation, SHARDS, "opal", "Available", "False", "Scheduler: not available")
    assert current_conditions(pool.installation, SHARDS, "default")["Ready"] == READY["Ready"]
    wait_for(pool.installation, SHARDS, "opal", "Ready", "True")
    assert pool.stack.pids()["scheduling-opal"] != before
    pool.apply_text(pod("phoenix"))
    pool.wait_bound("phoenix", count=1)


def test_schedulers_keep_running_when_the_operator_is_killed(pool: Sample) -> None:
    scheduler = pool.stack.pids()["scheduling-opal"]
    before = pool.stack.kill("operator")
    pool.wait(lambda: pool.stack.pids().get("operator", before) != before, "a new operator")
    patch(pool, placementStrategy={"cpu": "pile"})
    wait_for(pool.installation, SHARDS, "opal", "Deployed", "False", "placementStrategy.cpu")
    patch(pool, placementStrategy={"cpu": "binpack"})
    wait_for(pool.installation, SHARDS, "opal", "Ready", "True")
    assert pool.stack.pids()["scheduling-opal"] == scheduler


def test_a_shard_whose_name_cannot_be_a_process_says_so(pool: Sample) -> None:
    pool.apply_text(
        "{apiVersion: kai.scheduler/v1, kind: SchedulingShard, metadata: {name: opal.south}}"
    )
    text = "metadata.name: expected a DNS label"
    condition_message = wait_for(pool.installation, SHARDS, "opal.south", "Deployed", "False", text)
    assert "got 'opal.south'" in condition_message
    assert "scheduling-opal.south" not in pool.stack.pids()


def test_a_deleted_shard_ends_its_scheduler(pool: Sample) -> None:
    free_the_pool(pool)
    pool.kubectl("delete", "schedulingshard", "opal")
    pool.wait(lambda: "scheduling-opal" not in pool.stack.pids(), "the end of scheduling-opal")
    with redis.Redis.from_url(pool.installation.broker_url()) as broker:
        pool.wait(lambda: not broker.exists("kaiweb:lock:opal"), "the lock given back")
    pool.apply_text(pod("orphan"))
    pool.stays(lambda: not pool.bound("orphan"), "nobody schedules the pool")
    assert {"opal-1", "opal-2"} <= set(pool.all(NODES))
    pool.apply("02-pool.yaml")
    pool.wait_bound("orphan", count=1)
