"""Labels that operators of workloads put on their pods, as far as more than one module reads them."""

from __future__ import annotations

KUBEFLOW_JOB_NAME = "training.kubeflow.org/job-name"
KUBEFLOW_JOB_ROLE = "training.kubeflow.org/job-role"
KNATIVE_REVISION = "serving.knative.dev/revision"
