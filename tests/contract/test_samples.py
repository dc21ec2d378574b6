"""The sample manifests beside the checkout: every object of a kind that both servers know is valid."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.contract.api import Api
from tests.contract.test_deploy import PATHS, shipped  # noqa: F401 - a fixture
from tests.shared import shared_path

pytestmark = pytest.mark.shared
KINDS = {
    ("v1", "Pod"): "/api/v1/namespaces/{ns}/pods",
    ("v1", "ConfigMap"): "/api/v1/namespaces/{ns}/configmaps",
    ("v1", "PersistentVolumeClaim"): "/api/v1/namespaces/{ns}/persistentvolumeclaims",
    ("v1", "Node"): "/api/v1/nodes",
    ("batch/v1", "Job"): "/apis/batch/v1/namespaces/{ns}/jobs",
    ("batch/v1", "CronJob"): "/apis/batch/v1/namespaces/{ns}/cronjobs",
    ("apps/v1", "Deployment"): "/apis/apps/v1/namespaces/{ns}/deployments",
    ("apps/v1", "ReplicaSet"): "/apis/apps/v1/namespaces/{ns}/replicasets",
    ("apps/v1", "StatefulSet"): "/apis/apps/v1/namespaces/{ns}/statefulsets",
    ("scheduling.run.ai/v2", "Queue"): PATHS["Queue"],
    (
        "scheduling.run.ai/v2alpha2",
        "PodGroup",
    ): "/apis/scheduling.run.ai/v2alpha2/namespaces/{ns}/podgroups",
    (
        "scheduling.run.ai/v1alpha2",
        "BindRequest",
    ): "/apis/scheduling.run.ai/v1alpha2/namespaces/{ns}/bindrequests",
    ("kai.scheduler/v1", "Config"): PATHS["Config"],
    ("kai.scheduler/v1", "SchedulingShard"): PATHS["SchedulingShard"],
    ("kai.scheduler/v1alpha1", "Topology"): "/apis/kai.scheduler/v1alpha1/topologies",
}
# Refused by the rules in our CRDs; all other refusals in the samples are the webhooks' business.
BY_RULE = {"host-on-top", "twice"}


def test_samples_are_valid_and_the_wrong_ones_refused(
    api: Api,
    shipped: Api,  # noqa: F811 - asks for the fixture: priority classes must exist
) -> None:
    checked, refused = 0, set()
    for file in sorted(shared_path("spec", "sample-manifests").glob("*.yaml")):
        for body in yaml.safe_load_all(file.read_text()):
            path = KINDS.get((body["apiVersion"], body["kind"]))
            if path is None:
                continue
            checked += 1
            answer = api.post(path, _renamed(body), dryRun="All", fieldValidation="Strict")
            name = body["metadata"]["name"]
            if answer.status == 422 and name in BY_RULE:
                expected = body["metadata"]["annotations"]["example.test/expect"]
                assert expected in answer.body["message"]
                refused.add(name)
                continue
            assert answer.status == 201, f"{file.name} {name}: {answer.body}"
    assert refused == BY_RULE
    assert checked >= 70


def _renamed(body: dict[str, Any]) -> dict[str, Any]:
    """Move an object into the test's namespace, under a name that is free."""
    metadata = {key: value for key, value in body["metadata"].items() if key != "namespace"}
    return {**body, "metadata": {**metadata, "name": f"sample-{metadata['name']}"}}
