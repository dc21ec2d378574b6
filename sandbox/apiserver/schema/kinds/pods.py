"""Pods and pod templates: defaults, quality of service, required fields, what may change later."""

from __future__ import annotations

import copy
import re
from decimal import Decimal
from typing import Any

from sandbox.apiserver.model import errors
from sandbox.apiserver.model.errors import Cause
from sandbox.apiserver.model.quantities import value_of
from sandbox.apiserver.schema.kinds.base import Obj, setdefaults

DNS_LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
_TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_UPDATABLE = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"


def default_pod(pod: Obj) -> None:
    spec = pod.setdefault("spec", {})
    default_pod_spec(spec)
    setdefaults(spec, preemptionPolicy="PreemptLowerPriority", enableServiceLinks=True)
    for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
        _default_requests(container["resources"])
    tolerations = spec.setdefault("tolerations", [])
    present = {toleration.get("key") for toleration in tolerations}
    if not any(not t.get("key") and t.get("operator") == "Exists" for t in tolerations):
        tolerations.extend(
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for key in _TOLERATED
            if key not in present
        )


def default_pod_spec(spec: Obj) -> None:
    """Set the defaults that the real server sets in pods and in templates."""
    setdefaults(
        spec,
        restartPolicy="Always",
        terminationGracePeriodSeconds=30,
        dnsPolicy="ClusterFirst",
        securityContext={},
        schedulerName="default-scheduler",
    )
    if "serviceAccountName" in spec:
        spec.setdefault("serviceAccount", spec["serviceAccountName"])
    for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
        _default_container(container)
    for volume in spec.get("volumes") or ():
        _default_volume(volume)


def _default_container(container: Obj) -> None:
    image = container.get("image", "")
    latest = ":" not in image.rpartition("/")[2] or image.endswith(":latest")
    setdefaults(
        container,
        resources={},
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
        imagePullPolicy="Always" if latest and "@" not in image else "IfNotPresent",
    )
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference is not None:
            reference.setdefault("apiVersion", "v1")
    for field in ("livenessProbe", "readinessProbe", "startupProbe"):
        if field in container:
            _default_probe(container[field])


def _default_requests(resources: Obj) -> None:
    """Set each missing request to the limit; the real server does this for pods, not for templates."""
    for name, limit in (resources.get("limits") or {}).items():
        resources.setdefault("requests", {}).setdefault(name, limit)


def _default_probe(probe: Obj) -> None:
    setdefaults(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
    if "httpGet" in probe:
        setdefaults(probe["httpGet"], path="/", scheme="HTTP")


def _default_volume(volume: Obj) -> None:
    for source in ("configMap", "secret", "projected", "downwardAPI"):
        if source in volume:
            volume[source].setdefault("defaultMode", 420)
    if len(volume) == 1:
        volume["emptyDir"] = {}


def prepare_pod(pod: Obj) -> None:
    pod["status"] = {"phase": "Pending", "qosClass": quality_of_service(pod["spec"])}
    if pod["spec"].get("schedulingGates"):
        pod["status"]["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastProbeTime": None,
                "lastTransitionTime": None,
            }
        ]


def quality_of_service(spec: Obj) -> str:
    """Return the QoS class: Guaranteed if all limits of CPU and memory are set and equal the requests."""
    is_guaranteed, is_constrained = True, False
    for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
        resources = container.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for name in ("cpu", "memory"):
            request, limit = _amount(requests, name), _amount(limits, name)
            is_constrained = is_constrained or bool(request) or bool(limit)
            is_guaranteed = is_guaranteed and bool(limit) and request == limit
    if not is_constrained:
        return "BestEffort"
    return "Guaranteed" if is_guaranteed else "Burstable"


def _amount(resources: Obj, name: str) -> Decimal:
    return value_of(str(resources.get(name, "0")))


def validate_pod(pod: Obj) -> list[Cause]:
    return validate_pod_spec(pod["spec"], "spec")


def validate_pod_spec(spec: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    containers = spec.get("containers")
    if not containers:
        causes.append(errors.required(f"{path}.containers"))
    names: set[str] = set()
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or ()):
            causes += _validate_container(container, f"{path}.{field}[{index}]", names)
    if spec["restartPolicy"] not in ("Always", "OnFailure", "Never"):
        allowed = ("Always", "OnFailure", "Never")
        causes.append(errors.unsupported(f"{path}.restartPolicy", spec["restartPolicy"], allowed))
    gates = [gate.get("name", "") for gate in spec.get("schedulingGates") or ()]
    if gates and spec.get("nodeName"):
        detail = "cannot be set until all schedulingGates have been cleared"
        causes.append(errors.field_forbidden(f"{path}.nodeName", detail))
    return causes


def _validate_container(container: Obj, path: str, names: set[str]) -> list[Cause]:
    causes: list[Cause] = []
    name = container.get("name", "")
    if not name:
        causes.append(errors.required(f"{path}.name"))
    elif len(name) > 63 or not DNS_LABEL.match(name):
        causes.append(errors.invalid_value(f"{path}.name", name, LABEL_MESSAGE))
    elif name in names:
        causes.append(errors.duplicate(f"{path}.name", name))
    names.add(name)
    if not container.get("image"):
        causes.append(errors.required(f"{path}.image"))
    causes += _validate_resources(container.get("resources") or {}, f"{path}.resources")
    return causes


def _validate_resources(resources: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, text in amounts.items():
            causes += _validate_amount(name, text, f"{path}.{field}[{name}]")
    for name, text in requests.items():
        causes += _validate_request(name, text, limits, path)
    return causes


def _validate_amount(name: str, text: object, path: str) -> list[Cause]:
    amount = value_of(str(text))
    if amount < 0:
        return [errors.invalid_value(path, text, "must be greater than or equal to 0")]
    if _is_extended(name) and amount != amount.to_integral_value():
        return [errors.invalid_value(path, text, "must be an integer")]
    return []


def _validate_request(name: str, text: object, limits: Obj, path: str) -> list[Cause]:
    """Compare the request of one resource with its limit; extended resources need equal ones."""
    if name not in limits:
        detail = "Limit must be set for non overcommitable resources"
        return [errors.required(f"{path}.limits", detail)] if _is_extended(name) else []
    request, limit = value_of(str(text)), value_of(str(limits[name]))
    if _is_extended(name) and request != limit:
        detail = f"must be equal to {name} limit of {limits[name]}"
    elif request > limit:
        detail = f"must be less than or equal to {name} limit of {limits[name]}"
    else:
        return []
    return [errors.invalid_value(f"{path}.requests", text, detail)]


def _is_extended(name: str) -> bool:
    return "/" in name and not name.partition("/")[0].endswith("kubernetes.io")


LABEL_MESSAGE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must "
    "start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for "
    "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


def validate_pod_update(old: Obj, new: Obj) -> list[Cause]:
    """Refuse changes of a pod's spec, except the few that Kubernetes allows in a running pod."""
    causes: list[Cause] = []
    old_gates = {gate["name"] for gate in old["spec"].get("schedulingGates") or ()}
    for index, gate in enumerate(new["spec"].get("schedulingGates") or ()):
        if gate["name"] not in old_gates:
            detail = "only deletion is allowed, but found new scheduling gate"
            path = f"spec.schedulingGates[{index}].name"
            causes.append(errors.field_forbidden(path, f"{detail} '{gate['name']}'"))
    before = _frozen_part(old["spec"], gated=bool(old_gates))
    after = _frozen_part(new["spec"], gated=bool(old_gates))
    tolerations = new["spec"].get("tolerations") or ()
    if any(toleration not in tolerations for toleration in old["spec"].get("tolerations") or ()):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        causes.append(errors.field_forbidden("spec.tolerations", detail))
    if before != after:
        changed = sorted(k for k in {*before, *after} if before.get(k) != after.get(k))
        detail = f"pod updates may not change fields other than {_UPDATABLE}\n changed: {', '.join(changed)}"
        causes.append(errors.field_forbidden("spec", detail))
    return causes


def _frozen_part(spec: Obj, *, gated: bool) -> Obj:
    frozen: dict[str, Any] = copy.deepcopy(spec)
    for field in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        frozen.pop(field, None)
    if gated:
        frozen.pop("nodeSelector", None)
        frozen.pop("affinity", None)
    for field in ("containers", "initContainers"):
        for container in frozen.get(field) or ():
            container.pop("image", None)
    return frozen
