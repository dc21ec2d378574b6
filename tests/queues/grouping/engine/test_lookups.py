"""What the controller's rules find in its store and behind its owner cache, against an API server in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kube.errors import ForbiddenError, ServerError
from kube.objects.podgroup import PodGroup
from kube.resources import JOBS, PODGROUPS, PODS, Resource
from queues.grouping.base import Kind
from queues.grouping.engine import lookups as lookups_module
from queues.grouping.engine.kinds import DiscoveryDocument
from queues.grouping.engine.lookups import KARTAS, Karta
from queues.grouping.errors import NotThereError, ReadError
from queues.grouping.offline.manifests import read_manifests
from tests.queues.grouping.engine.test_controller import World, job, pod

MPI_JOBS = Resource(group="kubeflow.org", version="v2beta1", plural="mpijobs", kind="MPIJob")
SOLVERS = Resource(group="example.test", version="v1", plural="solvers", kind="Solver")
MANIFESTS = Path(__file__).parents[2] / "manifests"
UID = "0b6c1b1e-0000-4000-8000-00000000000"


def spec_of(world: World, name: str) -> Any:
    return world.gateway.raw(PODGROUPS, name, "lab")["spec"]


def test_a_launcher_is_found_among_the_pods_of_the_store() -> None:
    world = World()
    ring = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "ring", "namespace": "lab", "uid": "u-r"},
        "spec": {
            "launcherCreationPolicy": "WaitForWorkersReady",
            "mpiReplicaSpecs": {"Launcher": {"replicas": 1}, "Worker": {"replicas": 2}},
        },
    }
    name, role = "training.kubeflow.org/job-name", "training.kubeflow.org/job-role"
    world.gateway.seed(MPI_JOBS, ring)
    world.pods(
        pod("w0", ring, labels={name: "ring", role: "worker"}),
        pod("other", labels={name: "other", role: "launcher"}, uid="u-o"),
    )
    world.settle()
    assert spec_of(world, "pg-ring-u-r")["minMember"] == 2
    world.pods(pod("l", ring, labels={name: "ring", role: "launcher"}))
    world.settle()
    assert spec_of(world, "pg-ring-u-r")["minMember"] == 3
    world.pods(pod("w1", ring, labels={name: "ring", role: "worker"}))
    world.settle()
    assert spec_of(world, "pg-ring-u-r")["minMember"] == 3


def test_a_karta_of_the_store_describes_its_kind_and_no_other() -> None:
    world = World()
    (body, solver) = read_manifests([MANIFESTS / "karta.yaml"])
    world.gateway.seed(KARTAS, body)
    world.gateway.seed(SOLVERS, solver)
    world.store.replace(KARTAS, world.gateway.list(KARTAS, as_type=Karta))
    world.pods(pod("s0", solver, labels={"example.test/role": "helper"}))
    world.settle()
    assert spec_of(world, "pg-u-sudoku-solver")["minSubGroup"] == 2
    labels = world.gateway.raw(PODS, "s0", "lab")["metadata"]["labels"]
    assert labels["kai.scheduler/subgroup-name"] == "helper"
    lookups = world.grouper.lookups
    assert lookups.kartas(Kind(group="example.test", version="v2", kind="Solver")) == []


def test_groups_of_one_workload_are_found_by_the_beginning_of_their_name() -> None:
    world = World()
    names = [f"pg-a-{UID}1", f"pg-a-{UID}1-left", f"pg-a-{UID}2"]
    world.gateway.seed(
        PODGROUPS,
        *({"metadata": {"name": name, "namespace": "lab"}, "spec": {}} for name in names),
        {"metadata": {"name": names[0], "namespace": "elsewhere"}, "spec": {}},
    )
    world.store.replace(PODGROUPS, world.gateway.list(PODGROUPS, as_type=PodGroup))
    pod_groups = world.grouper.lookups.pod_groups_starting("lab", names[0])
    assert {(g["metadata"]["namespace"], g["metadata"]["name"]) for g in pod_groups} == {
        ("lab", names[0]),
        ("lab", names[1]),
    }


def test_an_owner_is_read_again_after_a_few_seconds_and_the_memory_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lookups_module, "MAX_OWNERS", 3)
    world = World()
    owners = world.grouper.lookups.owners
    world.gateway.seed(JOBS, *(job(f"j{index}") for index in range(5)))
    for index in range(5):
        owners.get("batch/v1", "Job", "lab", f"j{index}")
    assert len(owners._owners) == 3
    owners.get("batch/v1", "Job", "lab", "j4")
    assert world.verbs("get").count("jobs/j4") == 1
    owners.get("batch/v1", "Job", "lab", "j0")
    assert world.verbs("get").count("jobs/j0") == 2
    world.clock.now += 6
    owners.get("batch/v1", "Job", "lab", "j4")
    assert world.verbs("get").count("jobs/j4") == 2
    owners.clear()
    assert len(owners._owners) == 0


def test_a_missing_owner_and_a_failing_server_are_told_apart() -> None:
    world = World()
    owners = world.grouper.lookups.owners
    with pytest.raises(NotThereError):
        owners.get("batch/v1", "Job", "lab", "gone")
    world.gateway.fail_next("get", "jobs", ServerError("no answer"))
    with pytest.raises(ReadError, match="no answer"):
        owners.get("batch/v1", "Job", "lab", "j")


def test_an_owner_that_was_made_anew_is_read_at_once_with_what_belonged_to_the_old_one() -> None:
    world = World()
    world.gateway.seed(JOBS, job())
    owners = world.grouper.lookups.owners
    owners.get("batch/v1", "Job", "lab", "j", uid="u-j")
    child = job("child")
    child["metadata"]["ownerReferences"] = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u-j"}
    ]
    world.gateway.seed(JOBS, child)
    owners.get("batch/v1", "Job", "lab", "child")
    world.gateway.delete(JOBS, "j", namespace="lab")
    reborn = job()
    reborn["metadata"]["uid"] = "u-new"
    world.gateway.seed(JOBS, reborn, child)
    assert owners.get("batch/v1", "Job", "lab", "j", uid="u-new")["metadata"]["uid"] == "u-new"
    owners.get("batch/v1", "Job", "lab", "j", uid="u-new")
    owners.get("batch/v1", "Job", "lab", "child")
    assert world.verbs("get") == ["jobs/j", "jobs/child", "jobs/j", "jobs/child"]


def test_pods_of_a_recreated_owner_are_grouped_without_a_warning() -> None:
    world = World()
    world.gateway.seed(JOBS, job())
    world.pods(pod("p0", job()))
    world.settle()
    world.gateway.delete(JOBS, "j", namespace="lab")
    reborn = job()
    reborn["metadata"]["uid"] = "u-new"
    world.gateway.seed(JOBS, reborn)
    world.pods(pod("p1", reborn))
    world.settle()
    assert world.warnings.written_events == []
    assert world.gateway.names(PODGROUPS) == ["pg-j-u-new"]


def test_a_guessed_plural_that_the_role_does_not_cover_is_looked_up_too() -> None:
    world = World()
    mice = Resource(group="example.test", version="v1", plural="mice", kind="Mouse")
    document = DiscoveryDocument(
        group="example.test", version="v1", plural="", kind="APIResourceList", namespaced=False
    )
    entry = {"name": "mice", "kind": "Mouse", "namespaced": True}
    world.gateway.seed(document, {"metadata": {"name": "example.test/v1"}, "resources": [entry]})
    mouse = {
        "apiVersion": "example.test/v1",
        "kind": "Mouse",
        "metadata": {"name": "m", "namespace": "lab", "uid": "u-m"},
    }
    world.gateway.seed(mice, mouse)
    world.gateway.fail_next("get", "mouses", ForbiddenError("no"))
    world.pods(pod("p0", mouse))
    world.settle()
    assert world.gateway.names(PODGROUPS) == ["pg-m-u-m"]
