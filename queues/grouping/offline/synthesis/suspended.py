"""Suspended workloads: their controllers create no pods until they are resumed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from queues.grouping.base import Json, annotations_of, dig, kind_of

Path = tuple[str, ...]
_SUSPEND: Path = ("spec", "suspend")
_RUN_POLICY: Path = ("spec", "runPolicy", "suspend")

#: API group and kind -> the fields that suspend a workload, each with the values that do.
SWITCHES: Mapping[tuple[str, str], tuple[tuple[Path, tuple[Any, ...]], ...]] = {
    **dict.fromkeys(
        (
            ("batch", "Job"),
            ("batch", "CronJob"),
            ("trainer.kubeflow.org", "TrainJob"),
            ("ray.io", "RayCluster"),
            ("ray.io", "RayJob"),
            ("ray.io", "RayService"),
            ("jobset.x-k8s.io", "JobSet"),
            ("argoproj.io", "Workflow"),
            ("sparkoperator.k8s.io", "SparkApplication"),
            ("workload.codeflare.dev", "AppWrapper"),
        ),
        ((_SUSPEND, (True,)),),
    ),
    **{
        ("kubeflow.org", kind): ((_RUN_POLICY, (True,)),)
        for kind in ("TFJob", "PyTorchJob", "XGBoostJob", "JAXJob", "PaddleJob", "MPIJob")
    },
    ("kubeflow.org", "ScheduledWorkflow"): ((("spec", "enabled"), (False,)),),
    ("workspace.devfile.io", "DevWorkspace"): ((("spec", "started"), (False,)),),
    ("tekton.dev", "TaskRun"): ((("spec", "status"), ("TaskRunCancelled",)),),
    ("tekton.dev", "PipelineRun"): (
        (
            ("spec", "status"),
            (
                "PipelineRunPending",
                "Cancelled",
                "CancelledRunFinally",
                "StoppedRunFinally",
            ),
        ),
    ),
    ("kubevirt.io", "VirtualMachine"): (
        (("spec", "running"), (False,)),
        (("spec", "runStrategy"), ("Halted", "Manual")),
    ),
}
#: API group and kind -> the annotation that suspends a workload, and its value; None for any value.
ANNOTATIONS: Mapping[tuple[str, str], tuple[str, str | None]] = {
    ("kubeflow.org", "Notebook"): ("kubeflow-resource-stopped", None),
    ("serving.kserve.io", "InferenceService"): ("serving.kserve.io/stop", "true"),
}


def suspension_of(workload: Json) -> str:
    """Return which field or annotation suspends a workload, with its value; "" if none does."""
    kind = kind_of(workload)
    for path, values in SWITCHES.get((kind.group, kind.kind), ()):
        value = dig(workload, *path)
        if any(value is stop or (value == stop and isinstance(stop, str)) for stop in values):
            shown = str(value).lower() if isinstance(value, bool) else value
            return f"{'.'.join(path)} is {shown}"
    key, stop = ANNOTATIONS.get((kind.group, kind.kind), ("", None))
    value = annotations_of(workload).get(key)
    if value is None or stop not in (None, value):
        return ""
    return f"annotation {key} is {value}"
