"""Discovery of the gang API: one question where it is not served, and the best known version where it is."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kube.errors import ServerError
from kube.objects.gang import UpstreamPodGroup
from kube.resources import UPSTREAM_PODGROUPS, WORKLOADS, Resource
from kube.store import Store
from queues.controllers.gang_watch import ASK_AGAIN_S, GangWatch, GroupDocument, served_gangs
from queues.grouping.engine.kinds import DiscoveryDocument
from tests.fakes.gateway import FakeGateway
from tests.queues.live_cluster.waiting import eventually

GROUP = "scheduling.k8s.io"


class AskedGateway(FakeGateway):
    """Remembers the paths that were read."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def get(self, resource: Resource, name: str, *, as_type: type, namespace: str = "") -> Any:
        self.asked.append(resource.path())
        return super().get(resource, name, as_type=as_type, namespace=namespace)


def cluster(**kinds: str) -> AskedGateway:
    """Return a cluster that serves these plurals by version, and the priority classes of v1."""
    gateway = AskedGateway()
    versions = {"v1": "priorityclasses", **kinds}
    document = GroupDocument(group=GROUP, version="", plural="", kind="APIGroup", namespaced=False)
    gateway.seed(
        document,
        {"metadata": {"name": GROUP}, "versions": [{"version": name} for name in versions]},
    )
    for version, plural in versions.items():
        resource = DiscoveryDocument(
            group=GROUP, version=version, plural="", kind="APIResourceList", namespaced=False
        )
        gateway.seed(
            resource,
            {"metadata": {"name": f"{GROUP}/{version}"}, "resources": [{"name": plural}]},
        )
    return gateway


@pytest.fixture
def stop() -> Any:
    event = threading.Event()
    yield event
    event.set()


def watch_on(gateway: FakeGateway, stop: threading.Event) -> GangWatch:
    watch = GangWatch(gateway, Store(), stop, on_fatal=lambda error: None)
    watch.declare()
    return watch


def test_a_cluster_without_gangs_is_asked_once_and_counts_as_complete(stop) -> None:
    gateway = cluster()
    watch = watch_on(gateway, stop)
    assert watch.look() == ASK_AGAIN_S == 600.0
    assert gateway.asked == ["/apis/scheduling.k8s.io"]
    assert gateway.calls == []
    assert watch.store.is_synced()
    assert not watch.store.is_served(WORKLOADS)
    assert not watch.store.is_served(UPSTREAM_PODGROUPS)


def test_kubernetes_1_35_serves_workloads_only(stop) -> None:
    gateway = cluster(v1alpha1="workloads")
    body = {"metadata": {"name": "training", "namespace": "lab"}, "spec": {"podGroups": []}}
    gateway.seed(WORKLOADS, body)
    watch = watch_on(gateway, stop)
    watch.look()
    eventually(watch.store.is_synced, "the Workloads are listed")
    assert watch.store.is_served(WORKLOADS)
    assert not watch.store.is_served(UPSTREAM_PODGROUPS)
    stored = watch.store.get(WORKLOADS, "lab/training")
    assert (stored.api_version, stored.kind) == ("scheduling.k8s.io/v1alpha1", "Workload")


def test_the_best_known_version_of_a_pod_group_is_followed_under_its_own_name(stop) -> None:
    gateway = cluster(v1alpha2="podgroups", v1beta1="podgroups", v9="podgroups")
    served = served_gangs(gateway)[UPSTREAM_PODGROUPS]
    assert served.path("lab", "g") == "/apis/scheduling.k8s.io/v1beta1/namespaces/lab/podgroups/g"
    gateway.seed(
        served,
        {
            "metadata": {"name": "g", "namespace": "lab"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
        },
    )
    watch = watch_on(gateway, stop)
    watch.look()
    eventually(watch.store.is_synced, "the PodGroups are listed")
    stored: UpstreamPodGroup = watch.store.get(UPSTREAM_PODGROUPS, "lab/g")
    assert stored.api_version == "scheduling.k8s.io/v1beta1"
    assert stored.spec.scheduling_policy.gang is not None
    assert stored.spec.scheduling_policy.gang.min_count == 3


def test_a_server_that_does_not_answer_is_asked_again_soon_and_nothing_counts_as_absent(
    stop,
) -> None:
    class Silent(FakeGateway):
        def get(self, resource: Resource, name: str, *, as_type: type, namespace: str = "") -> Any:
            raise ServerError("no answer")

    watch = watch_on(Silent(), stop)
    assert watch.look() < 10
    assert not watch.store.is_synced()


def test_an_upgraded_server_is_noticed_at_the_next_look(stop) -> None:
    watch = watch_on(cluster(), stop)
    watch.look()
    watch.gateway = cluster(v1alpha1="workloads")
    watch.look()
    eventually(lambda: watch.store.is_served(WORKLOADS), "the Workloads are listed")
