"""Workloads that are switched off make no pods, and a note says which field or annotation does it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.queues.grouping.offline.test_rights import names, report_of

TEMPLATE = "template: {spec: {schedulerName: kai-scheduler, containers: [{name: c}]}}"


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "switch"),
    [
        ("batch/v1", "Job", f"{{suspend: true, {TEMPLATE}}}", "spec.suspend is true"),
        ("batch/v1", "CronJob", f"{{suspend: true, jobTemplate: {{spec: {{{TEMPLATE}}}}}}}", "spec.suspend is true"),
        ("jobset.x-k8s.io/v1alpha2", "JobSet", "{suspend: true, replicatedJobs: [{name: a}]}", "spec.suspend is true"),
        ("ray.io/v1", "RayJob", "{suspend: true, rayClusterSpec: {}}", "spec.suspend is true"),
        ("kubeflow.org/v1", "PyTorchJob",
         f"{{runPolicy: {{suspend: true}}, pytorchReplicaSpecs: {{Worker: {{replicas: 1, {TEMPLATE}}}}}}}",
         "spec.runPolicy.suspend is true"),
        ("kubeflow.org/v2beta1", "MPIJob",
         f"{{runPolicy: {{suspend: true}}, mpiReplicaSpecs: {{Launcher: {{replicas: 1, {TEMPLATE}}}, Worker: {{replicas: 1, {TEMPLATE}}}}}}}",
         "spec.runPolicy.suspend is true"),
        ("workspace.devfile.io/v1alpha2", "DevWorkspace", "{started: false}", "spec.started is false"),
        ("tekton.dev/v1", "PipelineRun", "{status: PipelineRunPending}", "spec.status is PipelineRunPending"),
    ],
)  # fmt: skip
def test_a_suspended_workload_makes_no_pods_until_it_is_resumed(
    api_version: str, kind: str, spec: str, switch: str
) -> None:
    text = f"{{apiVersion: {api_version}, kind: {kind}, metadata: {{name: w, uid: u-w}}, spec: {spec}}}"
    report = report_of(text)
    assert (names(report), dict(report.pods)) == ([], {})
    (note,) = report.notes.values()
    assert note.startswith(f"no pods are foretold: it is suspended ({switch})")
    resumed = text.replace("suspend: true", "suspend: false").replace(
        "started: false", "started: true"
    )
    assert report_of(resumed.replace("status: PipelineRunPending", "")).pods


def test_a_stopped_notebook_or_service_makes_no_pods() -> None:
    def report(api_version: str, kind: str, annotation: str) -> Any:
        return report_of(
            f"{{apiVersion: {api_version}, kind: {kind}, metadata: {{name: w, annotations: {{{annotation}}}}}, "
            f"spec: {{{TEMPLATE}, predictor: {{schedulerName: kai-scheduler}}}}}}"
        ).pods

    stopped = 'kubeflow-resource-stopped: "2026-01-01T00:00:00Z"'
    assert report("kubeflow.org/v1beta1", "Notebook", stopped) == {}
    assert list(report("kubeflow.org/v1beta1", "Notebook", "other: x")) == ["default/w-0"]
    stop = "serving.kserve.io/stop"
    service = ("serving.kserve.io/v1beta1", "InferenceService")
    assert report(*service, f'{stop}: "true"') == {}
    (name,) = report(*service, f'{stop}: "false"')
    assert name.startswith("default/w-predictor-")
