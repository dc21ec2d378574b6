"""The grouping rule of each kind. An exact version comes before `*`; other kinds use a Karta, else the base rules."""

from __future__ import annotations

from queues.grouping.base import Context, Grouper, Kind, Metadata, Settings
from queues.grouping.families.batch import (
    aml_job_grouper,
    cron_job_grouper,
    job_grouper,
    runai_job_grouper,
)
from queues.grouping.families.grove import grove_grouper
from queues.grouping.families.jobset import job_set_grouper
from queues.grouping.families.kubeflow import (
    jax_job_grouper,
    mpi_job_grouper,
    paddle_job_grouper,
    tf_job_grouper,
    xgboost_job_grouper,
)
from queues.grouping.families.launchers import inference_service_grouper, skip_top_owner_grouper
from queues.grouping.families.leaderworkerset import leader_worker_set_grouper
from queues.grouping.families.pytorch import pytorch_job_grouper
from queues.grouping.families.ray import ray_cluster_grouper, ray_job_grouper, ray_service_grouper
from queues.grouping.families.serving import knative_service_grouper
from queues.grouping.families.single_pod import (
    deployment_grouper,
    notebook_grouper,
    pod_grouper,
    spot_request_grouper,
)
from queues.grouping.families.spark import spark_application_grouper
from queues.grouping.families.volcano import volcano_job_grouper
from queues.grouping.karta.karta import karta_grouper
from queues.grouping.metadata import default_grouper

ANY_VERSION = "*"


def _default(ctx: Context) -> Metadata | None:
    return default_grouper(ctx)


KAI: dict[tuple[str, str, str], Grouper] = {
    ("", "v1", "Pod"): pod_grouper,
    ("apps", "v1", "Deployment"): deployment_grouper,
    ("apps", "v1", "ReplicaSet"): _default,
    ("apps", "v1", "StatefulSet"): _default,
    ("batch", "v1", "Job"): job_grouper,
    ("batch", "v1", "CronJob"): cron_job_grouper,
    ("kubeflow.org", "v1", "TFJob"): tf_job_grouper,
    ("kubeflow.org", "v1", "PyTorchJob"): pytorch_job_grouper,
    ("kubeflow.org", "v1", "XGBoostJob"): xgboost_job_grouper,
    ("kubeflow.org", "v1", "JAXJob"): jax_job_grouper,
    ("kubeflow.org", "v1", "MPIJob"): mpi_job_grouper,
    ("kubeflow.org", "v2beta1", "MPIJob"): mpi_job_grouper,
    ("kubeflow.org", "v1beta1", "Notebook"): notebook_grouper,
    ("kubeflow.org", "v1alpha1", "ScheduledWorkflow"): _default,
    ("trainer.kubeflow.org", "v1alpha1", "TrainJob"): skip_top_owner_grouper,
    ("ray.io", "v1", "RayCluster"): ray_cluster_grouper,
    ("ray.io", "v1alpha1", "RayCluster"): ray_cluster_grouper,
    ("ray.io", "v1", "RayJob"): ray_job_grouper,
    ("ray.io", "v1alpha1", "RayJob"): ray_job_grouper,
    ("ray.io", "v1", "RayService"): ray_service_grouper,
    ("ray.io", "v1alpha1", "RayService"): ray_service_grouper,
    ("jobset.x-k8s.io", "v1alpha2", "JobSet"): job_set_grouper,
    ("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet"): leader_worker_set_grouper,
    ("serving.knative.dev", "v1", "Service"): knative_service_grouper,
    ("argoproj.io", "v1alpha1", "Workflow"): skip_top_owner_grouper,
    ("tekton.dev", "v1", "PipelineRun"): _default,
    ("tekton.dev", "v1", "TaskRun"): _default,
    ("machinelearning.seldon.io", "v1", "SeldonDeployment"): _default,
    ("machinelearning.seldon.io", "v1alpha2", "SeldonDeployment"): _default,
    ("kubevirt.io", "v1", "VirtualMachineInstance"): _default,
    ("workspace.devfile.io", "v1alpha2", "DevWorkspace"): _default,
    ("amlarc.azureml.com", "v1alpha1", "AmlJob"): aml_job_grouper,
    ("egx.nvidia.io", "v1", "SPOTRequest"): spot_request_grouper,
    ("grove.io", "v1alpha1", "PodCliqueSet"): grove_grouper,
    ("grove.io", "v1alpha1", "PodGangSet"): grove_grouper,
    ("nvidia.com", ANY_VERSION, "DynamoGraphDeployment"): skip_top_owner_grouper,
    ("run.ai", "v1", "RunaiJob"): runai_job_grouper,
    ("run.ai", ANY_VERSION, "TrainingWorkload"): skip_top_owner_grouper,
    ("run.ai", ANY_VERSION, "InteractiveWorkload"): skip_top_owner_grouper,
    ("run.ai", ANY_VERSION, "DistributedWorkload"): skip_top_owner_grouper,
    ("run.ai", ANY_VERSION, "InferenceWorkload"): skip_top_owner_grouper,
    ("run.ai", ANY_VERSION, "DistributedInferenceWorkload"): skip_top_owner_grouper,
}
# Kinds that KAI has no rule for; docs/guides/workload-kinds.md gives the reason for each rule.
BEYOND_KAI: dict[tuple[str, str, str], Grouper] = {
    ("kubeflow.org", "v1", "PaddleJob"): paddle_job_grouper,
    ("sparkoperator.k8s.io", ANY_VERSION, "SparkApplication"): spark_application_grouper,
    ("serving.kserve.io", ANY_VERSION, "InferenceService"): inference_service_grouper,
    ("workload.codeflare.dev", ANY_VERSION, "AppWrapper"): skip_top_owner_grouper,
    ("batch.volcano.sh", ANY_VERSION, "Job"): volcano_job_grouper,
}
TABLE = {**KAI, **BEYOND_KAI}
# Kinds without a rule of their own: owners between pod and workload, and objects that rules look up.
WITHOUT_RULE = {
    ("kubevirt.io", "VirtualMachine"),
    ("serving.knative.dev", "Configuration"),
    ("serving.knative.dev", "Revision"),
    ("grove.io", "PodClique"),
    ("grove.io", "PodCliqueScalingGroup"),
    ("scheduler.grove.io", "PodGang"),
}
#: Group and kind of every owner that the pod grouper's role lets it read (deploy/rbac/pod-grouper.yaml).
READABLE = frozenset({(group, kind) for group, _, kind in TABLE} | WITHOUT_RULE)


def select_grouper(kind: Kind, settings: Settings) -> Grouper:
    """Return the rule for a top owner."""
    exact = TABLE.get((kind.group, kind.version, kind.kind))
    grouper = exact or TABLE.get((kind.group, ANY_VERSION, kind.kind))
    if grouper is not None:
        return grouper
    return karta_grouper if settings.karta_fallback else _default


def exact_grouper(kind: Kind) -> Grouper:
    """Return the rule registered for exactly this version, else the base rules (for skipped owners)."""
    return TABLE.get((kind.group, kind.version, kind.kind), _default)
