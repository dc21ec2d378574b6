"""A real kube-apiserver accepts every object of the chart (server-side dry run)."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
import yaml

from tests.deploy.chart import DEPLOY, Manifest, of_kind, rendered
from tests.integration.stack import kubectl_path
from tests.real_cluster.cluster import RealCluster
from tests.real_cluster.fixture import real_cluster  # noqa: F401 - a fixture
from tests.real_cluster.installation import run_kubectl

pytestmark = pytest.mark.e2e

MONITORING = ("ServiceMonitor", "PrometheusRule")
SETTINGS = {
    "own stores": (),
    "everything on": (
        "web.ingress.enabled=true",
        "web.ingress.tlsSecret=tls",
        "web.autoscaling.enabled=true",
        "binder.autoscaling.enabled=true",
        "podgrouper.replicas=2",
        "prometheus.enabled=true",
        "global.clusterAutoscaling=true",
        "scheduler.shards={default,h100}",
    ),
    "stores elsewhere": (
        "postgresql.enabled=false",
        "postgresql.url=postgresql://u:p@db/kaiweb",
        "redis.enabled=false",
        "redis.url=rediss://:p@cache/0",
    ),
}


@pytest.fixture(scope="module")
def cluster_with_kinds(real_cluster: RealCluster) -> RealCluster:  # noqa: F811 - asks for the fixture
    """A cluster with our kinds and namespaces, which a dry run does not create."""
    run_kubectl(real_cluster, "apply", "--server-side", "-f", str(DEPLOY / "crds"))
    run_kubectl(real_cluster, "apply", "-f", str(DEPLOY / "defaults" / "namespaces.yaml"))
    deadline = time.monotonic() + 30
    while not _serves_custom_kinds(real_cluster) and time.monotonic() < deadline:
        time.sleep(0.2)
    return real_cluster


@pytest.mark.parametrize("case", SETTINGS)
def test_a_real_server_accepts_every_object(
    cluster_with_kinds: RealCluster, helm: Path, tmp_path: Path, case: str
) -> None:
    objects = [item for item in rendered(helm, *SETTINGS[case]) if item["kind"] not in MONITORING]
    file = tmp_path / "objects.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    printed = run_kubectl(
        cluster_with_kinds,
        "apply",
        "--server-side",
        "--dry-run=server",
        "--validate=strict",
        "-f",
        str(file),
    )
    assert len(printed.splitlines()) == len(objects)


def test_the_roles_of_the_chart_grant_no_wildcard_verbs(helm: Path) -> None:
    objects: list[Manifest] = rendered(helm)
    for kind in ("Role", "ClusterRole"):
        for role in of_kind(objects, kind).values():
            for rule in role["rules"]:
                assert "*" not in rule["verbs"]
                assert "*" not in rule["resources"]
                assert "*" not in rule["apiGroups"]


def _serves_custom_kinds(cluster: RealCluster) -> bool:
    """Return whether the custom kinds are served already."""
    result = subprocess.run(
        [kubectl_path(), "--kubeconfig", str(cluster.kubeconfig), "get", "configs.kai.scheduler"],
        capture_output=True,
        check=False,
    )
    return result.returncode == 0
