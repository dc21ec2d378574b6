"""The workload kinds: Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, CronJob."""

from __future__ import annotations

from croniter import croniter

from sandbox.apiserver.model import errors
from sandbox.apiserver.model.errors import Cause
from sandbox.apiserver.model.selectors import object_selector
from sandbox.apiserver.schema.kinds.base import Obj, setdefaults
from sandbox.apiserver.schema.kinds.pods import default_pod_spec, validate_pod_spec

_CONTROLLER_LABELS = ("batch.kubernetes.io/controller-uid", "controller-uid")
_NAME_LABELS = ("batch.kubernetes.io/job-name", "job-name")


def default_deployment(obj: Obj) -> None:
    spec = _default_replicated(obj)
    setdefaults(spec, progressDeadlineSeconds=600, revisionHistoryLimit=10)
    strategy = spec.setdefault("strategy", {})
    setdefaults(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        setdefaults(strategy.setdefault("rollingUpdate", {}), maxSurge="25%", maxUnavailable="25%")


def default_replica_set(obj: Obj) -> None:
    _default_replicated(obj)


def default_stateful_set(obj: Obj) -> None:
    spec = _default_replicated(obj)
    setdefaults(spec, podManagementPolicy="OrderedReady", revisionHistoryLimit=10)
    strategy = spec.setdefault("updateStrategy", {"type": "RollingUpdate"})
    if strategy.get("type") == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    policy = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    setdefaults(policy, whenDeleted="Retain", whenScaled="Retain")


def default_daemon_set(obj: Obj) -> None:
    spec = obj.setdefault("spec", {})
    setdefaults(spec, revisionHistoryLimit=10)
    strategy = spec.setdefault("updateStrategy", {"type": "RollingUpdate"})
    if strategy.get("type") == "RollingUpdate":
        setdefaults(strategy.setdefault("rollingUpdate", {}), maxSurge=0, maxUnavailable=1)
    _default_template(spec)


def default_job(obj: Obj) -> None:
    _default_job_spec(obj.setdefault("spec", {}))


def _default_job_spec(spec: Obj) -> None:
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    setdefaults(
        spec,
        parallelism=1,
        backoffLimit=6 if "backoffLimitPerIndex" not in spec else 2147483647,
        completionMode="NonIndexed",
        suspend=False,
        manualSelector=False,
        podReplacementPolicy="TerminatingOrFailed" if "podFailurePolicy" not in spec else "Failed",
    )
    _default_template(spec)


def default_cron_job(obj: Obj) -> None:
    spec = obj.setdefault("spec", {})
    setdefaults(
        spec,
        concurrencyPolicy="Allow",
        suspend=False,
        successfulJobsHistoryLimit=3,
        failedJobsHistoryLimit=1,
    )
    job = spec.setdefault("jobTemplate", {})
    job.setdefault("metadata", {})
    _default_template(job.setdefault("spec", {}))


def prepare_job(obj: Obj) -> None:
    """Set the selector of a job, and the labels of its pods that the selector matches."""
    obj["status"] = {}
    spec = obj["spec"]
    if spec["manualSelector"]:
        return
    uid, name = obj["metadata"]["uid"], obj["metadata"]["name"]
    labels = spec.setdefault("template", {}).setdefault("metadata", {}).setdefault("labels", {})
    labels.update(dict.fromkeys(_CONTROLLER_LABELS, uid) | dict.fromkeys(_NAME_LABELS, name))
    spec["selector"] = {"matchLabels": {_CONTROLLER_LABELS[0]: uid}}
    if not obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = dict(labels)


def prepare_daemon_set(obj: Obj) -> None:
    annotations = obj["metadata"].setdefault("annotations", {})
    annotations["deprecated.daemonset.template.generation"] = "1"


def validate_selector_and_template(obj: Obj) -> list[Cause]:
    spec = obj["spec"]
    selector = spec.get("selector")
    labels = (spec.get("template", {}).get("metadata") or {}).get("labels") or {}
    matches = object_selector(selector)
    causes = [] if selector else [errors.required("spec.selector")]
    causes += _validate_template(spec)
    if matches is None or not matches(labels):
        detail = "`selector` does not match template `labels`"
        causes.append(errors.invalid_value("spec.template.metadata.labels", labels, detail))
    if spec.get("replicas", 0) < 0:
        detail = "must be greater than or equal to 0"
        causes.append(errors.invalid_value("spec.replicas", spec["replicas"], detail))
    return causes


def validate_job(obj: Obj) -> list[Cause]:
    causes = _validate_template(obj["spec"])
    causes += _validate_job_numbers(obj["spec"], "spec")
    policy = obj["spec"].get("template", {}).get("spec", {}).get("restartPolicy")
    if policy == "Always":
        path = "spec.template.spec.restartPolicy"
        causes.append(errors.required(path, 'valid values: "OnFailure", "Never"'))
    return causes


def _validate_job_numbers(spec: Obj, path: str) -> list[Cause]:
    return [
        errors.invalid_value(f"{path}.{field}", spec[field], "must be greater than or equal to 0")
        for field in ("parallelism", "completions", "backoffLimit")
        if spec.get(field, 0) < 0
    ]


def validate_cron_job(obj: Obj) -> list[Cause]:
    spec = obj["spec"]
    causes = _validate_schedule(spec.get("schedule", ""))
    template = spec["jobTemplate"].get("spec") or {}
    return causes + _validate_template(template, "spec.jobTemplate.spec.template")


def _validate_schedule(schedule: str) -> list[Cause]:
    if not schedule:
        return [errors.required("spec.schedule")]
    fields = schedule.split()
    if not schedule.startswith("@") and len(fields) != 5:
        detail = f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
        return [errors.invalid_value("spec.schedule", schedule, detail)]
    if not croniter.is_valid(schedule):
        detail = f"failed to parse the schedule {schedule!r}"
        return [errors.invalid_value("spec.schedule", schedule, detail)]
    return []


def validate_job_update(old: Obj, new: Obj) -> list[Cause]:
    causes = _immutable(old, new, "selector", "completionMode")
    # A suspended job may still change where its pods run.
    if not old["spec"].get("suspend"):
        causes += _immutable(old, new, "template")
    return causes


def validate_selector_update(old: Obj, new: Obj) -> list[Cause]:
    return _immutable(old, new, "selector")


def validate_stateful_set_update(old: Obj, new: Obj) -> list[Cause]:
    allowed = {
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    }
    fields = ({*old["spec"]} | {*new["spec"]}) - allowed
    if all(old["spec"].get(field) == new["spec"].get(field) for field in fields):
        return []
    detail = (
        "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
        "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
        "'minReadySeconds' are forbidden"
    )
    return [errors.field_forbidden("spec", detail)]


def _default_replicated(obj: Obj) -> Obj:
    spec: Obj = obj.setdefault("spec", {})
    setdefaults(spec, replicas=1)
    _default_template(spec)
    return spec


def _default_template(spec: Obj) -> None:
    template = spec.get("template")
    if template is not None and "spec" in template:
        template.setdefault("metadata", {})
        default_pod_spec(template["spec"])


def _validate_template(spec: Obj, path: str = "spec.template") -> list[Cause]:
    pod_spec = spec.get("template", {}).get("spec")
    if pod_spec is None:
        return [errors.required(f"{path}.spec.containers")]
    return validate_pod_spec(pod_spec, f"{path}.spec")


def _immutable(old: Obj, new: Obj, *fields: str) -> list[Cause]:
    return [
        errors.invalid_value(f"spec.{field}", new["spec"].get(field), "field is immutable")
        for field in fields
        if old["spec"].get(field) != new["spec"].get(field)
    ]
