"""The functions that build the pods of a workload, by kind; for other kinds the files must contain the pods."""

from __future__ import annotations

from collections.abc import Callable

from queues.grouping.base import Json, kind_of
from queues.grouping.offline.synthesis.builtin import (
    cron_job_objects,
    deployment_objects,
    job_pods,
    replica_set_pods,
    stateful_set_pods,
)
from queues.grouping.offline.synthesis.serving import (
    app_wrapper_objects,
    dev_workspace_objects,
    dynamo_objects,
    inference_service_objects,
    knative_objects,
    machine_pods,
    pipeline_run_objects,
    scheduled_workflow_objects,
    seldon_objects,
    spot_request_pods,
    task_run_pods,
    unknown_kind_pods,
    virtual_machine_objects,
    workflow_pods,
)
from queues.grouping.offline.synthesis.suspended import suspension_of
from queues.grouping.offline.synthesis.training import (
    aml_job_pods,
    job_set_objects,
    kubeflow_pods,
    leader_worker_set_objects,
    mpi_objects,
    notebook_objects,
    ray_cluster_pods,
    ray_job_objects,
    ray_service_objects,
    runai_job_pods,
    spark_application_pods,
    train_job_objects,
    volcano_job_pods,
)

Maker = Callable[[Json], list[Json]]
# Kinds built elsewhere: an AppWrapper calls `children_of` again, a PodCliqueSet needs the PodGangs of the files.
BUILT_ELSEWHERE = {("workload.codeflare.dev", "AppWrapper"), ("grove.io", "PodCliqueSet")}

#: By API group and kind.
TABLE: dict[tuple[str, str], Maker] = {
    ("batch", "Job"): job_pods,
    ("batch", "CronJob"): cron_job_objects,
    ("apps", "Deployment"): deployment_objects,
    ("apps", "ReplicaSet"): replica_set_pods,
    ("apps", "StatefulSet"): stateful_set_pods,
    ("kubeflow.org", "TFJob"): kubeflow_pods,
    ("kubeflow.org", "PyTorchJob"): kubeflow_pods,
    ("kubeflow.org", "XGBoostJob"): kubeflow_pods,
    ("kubeflow.org", "JAXJob"): kubeflow_pods,
    ("kubeflow.org", "PaddleJob"): kubeflow_pods,
    ("kubeflow.org", "MPIJob"): mpi_objects,
    ("kubeflow.org", "Notebook"): notebook_objects,
    ("kubeflow.org", "ScheduledWorkflow"): scheduled_workflow_objects,
    ("trainer.kubeflow.org", "TrainJob"): train_job_objects,
    ("ray.io", "RayCluster"): ray_cluster_pods,
    ("ray.io", "RayJob"): ray_job_objects,
    ("ray.io", "RayService"): ray_service_objects,
    ("jobset.x-k8s.io", "JobSet"): job_set_objects,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): leader_worker_set_objects,
    ("serving.knative.dev", "Service"): knative_objects,
    ("argoproj.io", "Workflow"): workflow_pods,
    ("tekton.dev", "TaskRun"): task_run_pods,
    ("tekton.dev", "PipelineRun"): pipeline_run_objects,
    ("machinelearning.seldon.io", "SeldonDeployment"): seldon_objects,
    ("kubevirt.io", "VirtualMachine"): virtual_machine_objects,
    ("kubevirt.io", "VirtualMachineInstance"): machine_pods,
    ("workspace.devfile.io", "DevWorkspace"): dev_workspace_objects,
    ("amlarc.azureml.com", "AmlJob"): aml_job_pods,
    ("egx.nvidia.io", "SPOTRequest"): spot_request_pods,
    ("nvidia.com", "DynamoGraphDeployment"): dynamo_objects,
    ("run.ai", "RunaiJob"): runai_job_pods,
    ("sparkoperator.k8s.io", "SparkApplication"): spark_application_pods,
    ("serving.kserve.io", "InferenceService"): inference_service_objects,
    ("batch.volcano.sh", "Job"): volcano_job_pods,
}


def has_synthesis(group: str, kind: str) -> bool:
    """Return whether the pods of this kind can be built."""
    return (group, kind) in TABLE or (group, kind) in BUILT_ELSEWHERE


def children_of(workload: Json) -> list[Json]:
    """Return what the controllers of a workload would create: pods and the owners between, each owner before what it owns."""
    if suspension_of(workload):
        return []
    kind = kind_of(workload)
    if (kind.group, kind.kind) == ("workload.codeflare.dev", "AppWrapper"):
        return app_wrapper_objects(workload, children_of)
    return TABLE.get((kind.group, kind.kind), unknown_kind_pods)(workload)
