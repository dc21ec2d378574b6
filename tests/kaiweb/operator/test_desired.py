"""Config and SchedulingShards become shards to run, flags and variables, or a problem that names the field."""

from __future__ import annotations

from typing import Any

from kaiweb.operator.desired import desired_processes
from kaiweb.supervisor.desired import DesiredProcesses
from kube.objects.config import Config, SchedulingShard
from kube.objects.meta import convert

FULL = {
    "namespace": "kai-scheduler",
    "global": {
        "schedulerName": "kai-scheduler",
        "queueLabelKey": "kai.scheduler/queue",
        "nodePoolLabelKey": "kai.scheduler/node-pool",
        "replicaCount": 1,
    },
    "admission": {"gpuSharing": True},
    "nodeScaleAdjuster": {"service": {"enabled": False}},
}


def _config(**spec: Any) -> Config:
    return convert({"metadata": {"name": "kai-config"}, "spec": spec}, Config)


def _shards(**specs: dict[str, Any]) -> dict[str, SchedulingShard]:
    return {
        name: convert({"metadata": {"name": name}, "spec": spec}, SchedulingShard)
        for name, spec in specs.items()
    }


def _wanted(
    config: Config | None = None,
    shards: dict[str, SchedulingShard] | None = None,
    before: DesiredProcesses | None = None,
    **environment: str,
) -> tuple[DesiredProcesses, dict[str, str]]:
    return desired_processes(config, shards or {}, before or DesiredProcesses(), environment)


def test_without_objects_the_default_shard_runs() -> None:
    assert _wanted() == (DesiredProcesses(shards=("default",)), {})


def test_a_config_that_says_the_defaults_changes_no_process() -> None:
    desired, _ = _wanted(_config(**FULL))
    assert desired == DesiredProcesses()
    # Unless the installation's own environment says otherwise.
    desired, _ = _wanted(_config(**FULL), KAIWEB_GPU_SHARING="0")
    assert desired.environment == {"web": {"KAIWEB_GPU_SHARING": "1"}}


def test_every_shard_on_record_runs_beside_default() -> None:
    desired, problems = _wanted(None, _shards(amber={"partitionLabelValue": "amber"}, birch={}))
    assert (desired.shards, problems) == (("amber", "birch", "default"), {})


def test_a_shard_that_was_never_fine_does_not_start_and_one_that_was_goes_on() -> None:
    shards = _shards(amber={"placementStrategy": {"gpu": "pile"}}, birch={"actions": {"nap": {}}})
    desired, problems = _wanted(None, shards, DesiredProcesses(shards=("amber", "default")))
    assert desired.shards == ("amber", "default")
    assert problems == {
        "amber": "placementStrategy.gpu: expected one of binpack, spread, fragmentation, got 'pile'",
        "birch": "actions: unknown action 'nap'",
    }


def test_a_name_that_cannot_be_a_process_never_runs() -> None:
    shards = _shards(**{"pool.eu": {}})
    desired, problems = _wanted(None, shards, DesiredProcesses(shards=("pool.eu", "default")))
    assert desired.shards == ("default",)
    assert problems["pool.eu"].startswith("metadata.name: expected a DNS label")
    assert "got 'pool.eu'" in problems["pool.eu"]


def test_a_deleted_shard_is_wanted_no_longer() -> None:
    desired, _ = _wanted(None, {}, DesiredProcesses(shards=("amber", "default")))
    assert desired.shards == ("default",)


def test_time_based_fairness_needs_to_know_a_prometheus() -> None:
    shards = _shards(default={"kValue": 0.5, "usageDBConfig": {"clientType": "prometheus"}})
    _, problems = _wanted(_config(), shards)
    assert problems["default"].startswith("prometheus connection string not configured: ")
    assert _wanted(_config(prometheus={"enabled": True}), shards)[1] == {}
    outside = _config(prometheus={"externalPrometheusUrl": "http://metrics.test:9090"})
    assert _wanted(outside, shards)[1] == {}
    named = _shards(
        default={"usageDBConfig": {"clientType": "prometheus", "connectionStringEnvVar": "USAGE"}}
    )
    assert _wanted(None, named)[1] == {"default": "connectionStringEnvVar: USAGE is not set"}
    assert _wanted(None, named, USAGE="http://metrics.test:9090")[1] == {}


def test_the_config_sets_flags_of_the_controllers() -> None:
    config = _config(
        **{"global": {"schedulerName": "ours", "podLabelSelector": {"b": "2", "a": "1"}}},
        podGrouper={
            "args": {
                "gangScheduleKnative": False,
                "defaultPrioritiesConfigMapName": "kinds",
                "defaultPrioritiesConfigMapNamespace": "kai-scheduler",
            },
            "maxConcurrentReconciles": 4,
        },
        queueController={"metricsNamespace": "gpus"},
        nodeScaleAdjuster={
            "service": {"enabled": True},
            "args": {"gpuMemoryToFractionRatio": 0.25},
        },
    )
    desired, _ = _wanted(config)
    assert desired.arguments == {
        "controllers": (
            "--scheduler-name=ours",
            "--pod-label-selector=a=1,b=2",
            "--knative-gang-schedule=false",
            "--default-priorities-configmap-name=kinds",
            "--default-priorities-configmap-namespace=kai-scheduler",
            "--max-concurrent-reconciles=4",
            "--metrics-namespace=gpus",
            "--gpu-memory-to-fraction-ratio=0.25",
            "--node-scale-adjuster",
        )
    }
    assert desired.environment == {
        "web": {"KAIWEB_SCHEDULER_NAME": "ours"},
        "scheduling-default": {"KAIWEB_METRICS_NAMESPACE": "gpus"},
    }


def test_the_config_sets_switches_of_the_webhooks_and_switches_components_off() -> None:
    config = _config(
        admission={
            "service": {"enabled": False},
            "gpuSharing": False,
            "blockNvidiaVisibleDevices": True,
        },
        binder={"service": {"enabled": False}, "plugins": {"hamicore": {"enabled": True}}},
        podGrouper={"service": {"enabled": False}},
        queueController={"service": {"enabled": False}},
        podGroupController={"service": {"enabled": False}},
        scheduler={"service": {"enabled": False}},
    )
    desired, _ = _wanted(config)
    assert desired.environment == {
        "web": {
            "KAIWEB_GPU_SHARING": "0",
            "KAIWEB_BLOCK_NVIDIA_VISIBLE_DEVICES": "1",
            "KAIWEB_HAMI_CORE": "1",
            "KAIWEB_ADMIT_PODS": "0",
            "KAIWEB_ADMIT_QUEUES": "0",
            "KAIWEB_ADMIT_POD_GROUPS": "0",
        },
        "binding": {"KAIWEB_BINDER": '{"plugins":{"hamicore":{"enabled":true}}}'},
    }
    assert desired.off == ("binding", "scheduling-default")
    assert desired.arguments == {
        "controllers": ("--group-pods=false", "--podgroup-status=false", "--queue-status=false")
    }
