"""A cluster changes from KAI to kaiweb by the commands of the guide, works under faults, and changes back.

The chart is installed by helm into a real kube-apiserver; its processes are started from the Deployments, beside a real
PostgreSQL and a real broker. The tests run in order on one cluster, because each continues where the last one ended.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.chart import DEPLOY, Manifest
from tests.deploy.installed import (
    PROGRAMS,
    Installed,
    machine_values,
    running_broker,
    simulated_nodes,
)
from tests.deploy.kai_state import LATE, OTHER_NODE, RUNNING, TEAM, kai_objects
from tests.integration.postgres import postgres_or_skip
from tests.integration.stack import wait_until
from tests.real_cluster.cluster import RealCluster
from tests.real_cluster.fixture import running_or_skip
from tests.real_cluster.installation import run_kubectl

pytestmark = [pytest.mark.e2e, pytest.mark.integration, pytest.mark.timeout(300)]

CHECKOUT = DEPLOY.parent
GUIDE = (CHECKOUT / "docs" / "guides" / "migrate-from-kai.md").read_text()
JOB_PODS = 6
#: One of each kind; of processes with two replicas one is ended.
VICTIMS = (
    "web-0", "mirror-0", "beat-0", "controllers-0", "scheduling-default-0", "scheduling-default-1",
    "binding-0",
)  # fmt: skip


@dataclass(slots=True)
class Migration:
    """One cluster on its way."""

    cluster: RealCluster
    installed: Installed
    programs: Path
    values: Path

    def run_guide(self, heading: str) -> None:
        """Run the commands of one section of the guide, as an administrator types them."""
        section = GUIDE.split(f"## {heading}\n")[1].split("\n## ")[0]
        (script,) = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
        script = script.replace("my-values.yaml", str(self.values))
        environment = {
            **os.environ,
            "PATH": f"{self.programs}:{PROGRAMS}:{os.environ['PATH']}",
            "KUBECONFIG": str(self.cluster.kubeconfig),
            "HOME": str(self.cluster.folder),
        }
        result = subprocess.run(
            ["bash", "-ec", script],
            env=environment,
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert result.returncode == 0, result.stderr + result.stdout

    def team_pods(self) -> dict[str, Manifest]:
        """Return the pods of the team; those of a burst may be on their way out."""
        pods = self.installed.objects("pods", "-n", TEAM, "-l", "!batch.kubernetes.io/job-name")
        pods += self.installed.objects("pods", "-n", TEAM, "-l", "job-name in (first, half)")
        return {item["metadata"]["name"]: item for item in pods}

    def doctor(self) -> dict[str, list[Any]]:
        """Return the faults by check."""
        done = self.installed.kaiweb("doctor", "--cluster", "--output", "json")
        return {
            result["check"]: [
                finding["text"] for finding in result["findings"] if finding["severity"] == "fault"
            ]
            for result in json.loads(done.stdout)
        }


@pytest.fixture(scope="module")
def migration(helm: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Migration]:
    """A cluster as KAI leaves it, and what is needed to change it over."""
    folder = tmp_path_factory.mktemp("migration")
    with (
        running_or_skip(folder / "cluster") as cluster,
        postgres_or_skip() as database,
        running_broker(folder / "broker") as broker,
    ):
        run_kubectl(cluster, "apply", "--server-side", "-f", str(DEPLOY / "crds"))
        run_kubectl(cluster, "apply", "-f", str(DEPLOY / "defaults" / "namespaces.yaml"))
        with simulated_nodes(cluster, "4x8"):
            _await_nodes(cluster)
            state = folder / "kai.yaml"
            state.write_text(yaml.safe_dump_all(kai_objects()))
            wait_until(lambda: _is_applied(cluster, state), what="KAI's objects")
            programs = folder / "bin"
            programs.mkdir()
            (programs / "helm").symlink_to(helm)
            installed = Installed(cluster, folder / "pods", database, broker.url)
            yield Migration(cluster, installed, programs, _values(folder, database, broker.url))
            installed.stop()


def test_the_doctor_names_kais_schedulers_before_the_change(migration: Migration) -> None:
    faults = migration.doctor()
    assert len(faults["other schedulers"]) == 3
    assert faults["queues"] == faults["definitions"] == []


def test_kai_is_taken_over_by_the_commands_of_the_guide(migration: Migration) -> None:
    before = migration.team_pods()
    migration.run_guide("Take over")
    installed = migration.installed
    installed.start()
    seconds = installed.await_that(installed.is_ready, "an installation that is ready", 120)
    print(f"ready after {seconds:.0f} s")
    after = migration.team_pods()
    for name in RUNNING:
        assert after[name]["metadata"]["uid"] == before[name]["metadata"]["uid"]
        assert after[name]["spec"] == before[name]["spec"]
        assert "deletionTimestamp" not in after[name]["metadata"]
    # Their strategy was not that of the chart.
    (shard,) = installed.objects("schedulingshards.kai.scheduler", "default")
    assert shard["spec"]["placementStrategy"] == {"gpu": "spread", "cpu": "spread"}


def test_what_kai_had_placed_is_bound_where_it_was_placed(migration: Migration) -> None:
    migration.installed.await_that(
        lambda: migration.team_pods()[LATE]["spec"].get("nodeName") == OTHER_NODE, "the bind of KAI"
    )


def test_new_workloads_run_beside_those_of_kai(migration: Migration) -> None:
    _submit(migration, "first", gpus=1)
    _submit(migration, "half", gpus=0, annotations={"gpu-fraction": "0.5"})
    migration.installed.await_that(lambda: _all_run(migration, "first"), "the first job")
    migration.installed.await_that(lambda: _all_run(migration, "half"), "pods with half a GPU")


def test_a_shard_gets_a_scheduler_without_the_chart_and_conditions(migration: Migration) -> None:
    installed = migration.installed
    shard = {
        "apiVersion": "kai.scheduler/v1",
        "kind": "SchedulingShard",
        "metadata": {"name": "h100"},
        "spec": {"partitionLabelValue": "h100"},
    }
    file = migration.cluster.folder / "shard.json"
    file.write_text(json.dumps(shard))
    run_kubectl(migration.cluster, "apply", "-f", str(file))
    installed.await_that(
        lambda: "kai-scheduler-h100" in _names(installed.objects("deployments")), "a Deployment"
    )
    installed.await_that(lambda: _condition(installed, "h100", "Deployed") == "True", "Deployed")
    assert _condition(installed, "default", "Deployed") == "True"
    run_kubectl(migration.cluster, "delete", "schedulingshard", "h100")
    installed.await_that(
        lambda: "kai-scheduler-h100" not in _names(installed.objects("deployments")), "its end"
    )


def test_the_doctor_finds_no_fault_after_the_change(migration: Migration) -> None:
    assert {check: faults for check, faults in migration.doctor().items() if faults} == {}
    verdict = migration.installed.kaiweb("check_cluster")
    assert verdict.returncode == 0, verdict.stdout


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_killed_process_of_the_installed_chart_loses_no_work(
    migration: Migration, victim: str
) -> None:
    installed = migration.installed
    name = f"burst-{victim}"
    _submit(migration, name, gpus=1)
    installed.replica(victim).kill()
    seconds = installed.await_that(lambda: _all_run(migration, name), f"the burst at {victim}", 90)
    print(f"{victim}: all {JOB_PODS} pods run {seconds:.1f} s after the kill")
    verdict = installed.kaiweb("check_cluster")
    assert verdict.returncode == 0, verdict.stdout
    run_kubectl(migration.cluster, "delete", "job", name, "-n", TEAM, "--wait=false")
    run_kubectl(
        migration.cluster, "delete", "pods", "-n", TEAM, "-l", f"job-name={name}", "--wait=false"
    )


def test_the_cluster_goes_back_by_the_commands_of_the_guide(migration: Migration) -> None:
    installed = migration.installed
    installed.await_that(installed.is_ready, "an installation that is ready again")
    before = migration.team_pods()
    installed.stop()
    migration.run_guide("Go back")
    assert installed.objects("deployments") == []
    assert installed.objects("validatingwebhookconfigurations") == []
    assert {item["metadata"]["name"] for item in installed.objects("queues.scheduling.run.ai")} == {
        "research",
        "vision",
    }
    after = migration.team_pods()
    assert {name: pod["metadata"]["uid"] for name, pod in after.items()} == {
        name: pod["metadata"]["uid"] for name, pod in before.items()
    }
    groups = {item["metadata"]["name"] for item in installed.objects("podgroups", "-n", TEAM)}
    assert {"gang", "notebook", "late"} <= groups


def _values(folder: Path, database: str, broker: str) -> Path:
    """Write the values of the guide, with the stores of this test and two replicas where there may be two."""
    (of_guide,) = re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
    values = {**yaml.safe_load(of_guide), **machine_values(database, broker)}
    file = folder / "my-values.yaml"
    file.write_text(yaml.safe_dump(values))
    return file


def _await_nodes(cluster: RealCluster) -> None:
    wait_until(
        lambda: len(run_kubectl(cluster, "get", "nodes", "-o", "name").split()) == 4, what="4 nodes"
    )


def _is_applied(cluster: RealCluster, file: Path) -> bool:
    try:
        run_kubectl(cluster, "apply", "-f", str(file))
    except AssertionError:
        return False  # the custom kinds are not served yet
    return True


def _names(objects: list[Manifest]) -> set[str]:
    return {item["metadata"]["name"] for item in objects}


def _condition(installed: Installed, shard: str, kind: str) -> str:
    (item,) = installed.objects("schedulingshards.kai.scheduler", shard)
    conditions = {entry["type"]: entry for entry in item.get("status", {}).get("conditions", ())}
    return str(conditions.get(kind, {}).get("status", ""))


def _submit(
    migration: Migration, name: str, *, gpus: int, annotations: dict[str, str] | None = None
) -> None:
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    container = {"name": "main", "image": "example.test/x:1", "resources": {"limits": limits}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": TEAM, "labels": {"kai.scheduler/queue": "vision"}},
        "spec": {
            "parallelism": JOB_PODS,
            "completions": JOB_PODS,
            "template": {
                "metadata": {
                    "labels": {"kai.scheduler/queue": "vision"},
                    "annotations": {"sandbox.kaiweb/duration": "1h", **(annotations or {})},
                },
                "spec": {
                    "schedulerName": "kai-scheduler",
                    "restartPolicy": "Never",
                    "containers": [container],
                },
            },
        },
    }
    file = migration.cluster.folder / f"{name}.json"
    file.write_text(json.dumps(job))
    run_kubectl(migration.cluster, "apply", "-f", str(file))


def _all_run(migration: Migration, job: str) -> bool:
    pods = migration.installed.objects("pods", "-n", TEAM, "-l", f"job-name={job}")
    return len(pods) == JOB_PODS and all(pod["status"].get("phase") == "Running" for pod in pods)
