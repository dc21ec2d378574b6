"""The Workload of Kubernetes' gang API (`scheduling.k8s.io/v1alpha1`): up to eight pod groups, each with one policy."""

from __future__ import annotations

from sandbox.apiserver.model import errors
from sandbox.apiserver.model.errors import Cause
from sandbox.apiserver.schema.kinds.base import Obj
from sandbox.apiserver.schema.kinds.pods import DNS_LABEL, LABEL_MESSAGE

MAX_POD_GROUPS = 8


def validate_workload(obj: Obj) -> list[Cause]:
    groups = obj["spec"].get("podGroups") or []
    path = "spec.podGroups"
    if not groups:
        return [errors.required(path, "must have at least one item")]
    if len(groups) > MAX_POD_GROUPS:
        return [errors.too_many_items(path, len(groups), MAX_POD_GROUPS)]
    causes: list[Cause] = []
    names: set[str] = set()
    for index, group in enumerate(groups):
        causes += _validate_pod_group(group, f"{path}[{index}]")
        if group["name"] in names:
            causes.append(errors.duplicate(f"{path}[{index}].name", group["name"]))
        names.add(group["name"])
    return causes


def _validate_pod_group(group: Obj, path: str) -> list[Cause]:
    causes = []
    if not DNS_LABEL.fullmatch(group["name"]):
        causes.append(errors.invalid_value(f"{path}.name", group["name"], LABEL_MESSAGE))
    policy = group.get("policy") or {}
    stated = sorted(name for name in ("basic", "gang") if policy.get(name) is not None)
    path += ".policy"
    if not stated:
        causes.append(errors.required(path, "exactly one of `basic`, `gang` is required"))
    elif len(stated) > 1:
        detail = "exactly one of `basic`, `gang` is required, but multiple fields are set"
        causes.append(errors.invalid_value(path, "{`basic`, `gang`}", detail))
    elif "gang" in stated and policy["gang"].get("minCount", 0) <= 0:
        count = policy["gang"].get("minCount", 0)
        causes.append(
            errors.invalid_value(f"{path}.gang.minCount", count, "must be greater than zero")
        )
    return causes


def validate_workload_update(old: Obj, new: Obj) -> list[Cause]:
    """Refuse any change of the pod groups, and of a controller reference once it is set."""
    causes = []
    if old["spec"].get("podGroups") != new["spec"].get("podGroups"):
        causes.append(
            errors.invalid_value("podGroups", new["spec"].get("podGroups"), "field is immutable")
        )
    reference = old["spec"].get("controllerRef")
    if reference and reference != new["spec"].get("controllerRef"):
        causes.append(
            errors.invalid_value(
                "controllerRef", new["spec"].get("controllerRef"), "field is immutable"
            )
        )
    return causes
