"""The pod grouper when objects change under its hands, and what it reads anew when it tries again."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kube.errors import AlreadyExistsError, ConflictError, ForbiddenError, NotFoundError
from kube.resources import CONFIGMAPS, JOBS, PODGROUPS, PODS, Resource
from tests.queues.grouping.engine.test_controller import World, job, pod

RAY_JOBS = Resource(group="ray.io", version="v1", plural="rayjobs", kind="RayJob")
RAY_CLUSTERS = Resource(group="ray.io", version="v1", plural="rayclusters", kind="RayCluster")


def grouped(world: World, name: str) -> str:
    metadata = world.gateway.raw(PODS, name, "lab")["metadata"]
    return str(metadata.get("annotations", {}).get("pod-group-name", ""))


def test_a_group_deleted_before_its_change_is_written_is_made_anew_without_an_event() -> None:
    world = World()
    world.gateway.seed(JOBS, job())
    world.pods(pod("p0", job()))
    stored = {
        "metadata": {"name": "pg-j-u-j", "namespace": "lab"},
        "spec": {"queue": "q", "minMember": 9},
    }
    world.gateway.seed(PODGROUPS, stored)
    world.gateway.fail_next("patch", "podgroups", NotFoundError("gone"))
    world.settle()
    assert (world.warnings.written_events, grouped(world, "p0")) == ([], "")
    world.gateway.delete(PODGROUPS, "pg-j-u-j", namespace="lab")
    world.clock.now += 1
    world.settle()
    assert grouped(world, "p0") == "pg-j-u-j"
    assert world.gateway.raw(PODGROUPS, "pg-j-u-j", "lab")["spec"]["minMember"] == 1
    assert world.warnings.written_events == []


def test_a_group_made_and_deleted_by_somebody_else_is_tried_again_without_an_event() -> None:
    world = World()
    world.pods(pod("p0", uid="u0"))
    world.gateway.fail_next("create", "podgroups", AlreadyExistsError("exists"))
    world.settle()
    assert (world.warnings.written_events, grouped(world, "p0")) == ([], "")
    world.clock.now += 1
    world.settle()
    assert grouped(world, "p0") == "pg-p0-u0"


def test_a_conflict_on_the_group_is_tried_again_without_an_event() -> None:
    world = World()
    world.gateway.seed(JOBS, job())
    world.pods(pod("p0", job()))
    stored = {"metadata": {"name": "pg-j-u-j", "namespace": "lab"}, "spec": {"minMember": 9}}
    world.gateway.seed(PODGROUPS, stored)
    world.gateway.fail_next("patch", "podgroups", ConflictError("conflict"))
    world.settle()
    assert (world.warnings.written_events, grouped(world, "p0")) == ([], "")
    world.clock.now += 1
    world.settle()
    assert grouped(world, "p0") == "pg-j-u-j"


def test_a_cluster_without_pod_groups_is_an_event_on_the_pod() -> None:
    world = World()
    world.pods(pod("p0", uid="u0"))
    missing = "the server could not find the requested resource"
    world.gateway.fail_next("create", "podgroups", NotFoundError(missing))
    world.settle()
    assert world.warnings.written_events == [("lab/p0", "PodGrouperWarning", missing)]
    world.clock.now += 1
    world.settle()
    assert grouped(world, "p0") == "pg-p0-u0"


def test_a_refused_write_is_an_event_on_the_pod() -> None:
    world = World()
    world.pods(pod("p0", uid="u0"))
    world.gateway.fail_next("patch", "pods", ForbiddenError("may not patch pods"))
    world.settle()
    assert world.warnings.written_events == [("lab/p0", "PodGrouperWarning", "may not patch pods")]


def test_a_retry_reads_every_owner_up_the_chain_anew() -> None:
    """A RayJob's cluster gets its name a moment later; an answer remembered for seconds would hide it."""
    world = World()
    ray_job = {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "s", "namespace": "lab", "uid": "u-s"},
        "spec": {},
    }
    cluster: dict[str, Any] = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {
            "name": "s-1",
            "namespace": "lab",
            "uid": "u-c",
            "ownerReferences": pod("x", ray_job)["metadata"]["ownerReferences"],
        },
        "spec": {},
    }
    world.gateway.seed(RAY_JOBS, ray_job)
    world.gateway.seed(RAY_CLUSTERS, cluster)
    world.pods(pod("p0", cluster))
    world.settle()
    assert len(world.warnings.written_events) == 1
    status = {"status": {"rayClusterName": "s-1"}}
    world.gateway.patch(RAY_JOBS, "s", status, namespace="lab", sub="status")
    world.clock.now += 1
    world.settle()
    assert grouped(world, "p0") == "pg-s-u-s"


def test_a_recreated_owner_is_an_error_but_not_for_a_terminating_pod() -> None:
    world = World()
    world.gateway.seed(JOBS, job())
    old = job()
    old["metadata"]["uid"] = "u-old"
    world.pods(pod("p0", old), pod("p1", old, deletionTimestamp="2026-01-01T00:00:00Z"))
    world.settle()
    assert world.warnings.written_events == [
        (
            "lab/p0",
            "PodGrouperWarning",
            "failed to find Job: <lab/j>, uid: <u-old>: Owner resource with uid u-old not found",
        )
    ]


@pytest.mark.parametrize(
    ("config_map", "reason"),
    [
        (None, 'configmaps "defaults" not found'),
        ({}, "default priorities configmap is empty, cannot parse default priorities"),
        ({"types": "{"}, "default priorities configmap key types is not a JSON list: "),
        ({"types": "{}"}, "default priorities configmap key types is not a JSON list"),
    ],
)
def test_defaults_that_cannot_be_read_are_as_if_empty_and_logged_once(
    config_map: dict[str, str] | None, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(defaults_config_map=("kai", "defaults"))
    if config_map is not None:
        body = {"metadata": {"name": "defaults", "namespace": "kai"}, "data": config_map}
        world.gateway.seed(CONFIGMAPS, body)
    world.pods(pod("p0", uid="u0"))
    with caplog.at_level(logging.WARNING, logger="queues.grouping.engine.lookups"):
        world.settle()
        world.clock.now += 11
        world.pods(pod("p1", uid="u1"))
        world.settle()
    spec = world.gateway.raw(PODGROUPS, "pg-p1-u1", "lab")["spec"]
    assert spec["priorityClassName"] == "train"
    assert world.warnings.written_events == []
    (record,) = caplog.records
    assert record.getMessage().startswith("cannot read defaults from ConfigMap kai/defaults: ")
    assert reason in record.getMessage()
