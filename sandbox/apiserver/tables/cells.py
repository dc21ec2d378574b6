"""The cells that `kubectl get` prints for the common built-in kinds, by column name."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

from kube.values.times import time_or_none
from sandbox.apiserver.model import clock
from sandbox.apiserver.model.entry import Obj

Cells = dict[str, Any]

_NONE = "<none>"
_UNSET = "<unset>"


def age(text: str | None, now: dt.datetime | None = None) -> str:
    """Return how long ago a timestamp was, in kubectl's short form."""
    if not text:
        return "<unknown>"
    created_at = time_or_none(text)
    return human_duration((now or clock.now()) - created_at) if created_at else "<invalid>"


def human_duration(span: dt.timedelta) -> str:
    """Return a duration in kubectl's short form: 45s, 3m20s, 12m, 5h10m, 2d3h, 40d, 1y20d."""
    total = int(span.total_seconds())
    if total < 0:
        return "0s"
    minutes, hours, days = total // 60, total // 3600, total // 86400
    if total < 120:
        return f"{total}s"
    if minutes < 10:
        return _pair(minutes, "m", total % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _pair(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 2920:
        return _pair(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _pair(big: int, big_unit: str, small: int, small_unit: str) -> str:
    return f"{big}{big_unit}{small}{small_unit}" if small else f"{big}{big_unit}"


def _pod(pod: Obj) -> Cells:
    spec, status = pod["spec"], pod.get("status") or {}
    states = status.get("containerStatuses") or []
    ready = sum(bool(state.get("ready")) for state in states)
    restarts = sum(state.get("restartCount", 0) for state in states)
    return {
        "Ready": f"{ready}/{len(spec.get('containers') or ())}",
        "Status": _pod_reason(pod, states),
        "Restarts": str(restarts),
        "IP": status.get("podIP", _NONE),
        "Node": spec.get("nodeName", _NONE),
        "Nominated Node": status.get("nominatedNodeName", _NONE),
        "Readiness Gates": _NONE,
    }


def _pod_reason(pod: Obj, states: list[Obj]) -> str:
    status = pod.get("status") or {}
    reason: str = status.get("reason") or status.get("phase", "")
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    for state in states:
        detail = state.get("state") or {}
        for kind in ("waiting", "terminated"):
            if (detail.get(kind) or {}).get("reason"):
                reason = detail[kind]["reason"]
    if "deletionTimestamp" in pod["metadata"]:
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return reason


def _node(node: Obj) -> Cells:
    labels = node["metadata"].get("labels") or {}
    status = node.get("status") or {}
    info = status.get("nodeInfo") or {}
    conditions = {c["type"]: c["status"] for c in status.get("conditions") or ()}
    ready = {"True": "Ready", "False": "NotReady"}.get(conditions.get("Ready", ""), "Unknown")
    if node.get("spec", {}).get("unschedulable"):
        ready += ",SchedulingDisabled"
    prefix = "node-role.kubernetes.io/"
    roles = sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix))
    addresses = {a["type"]: a["address"] for a in status.get("addresses") or ()}
    return {
        "Status": ready,
        "Roles": ",".join(roles) or _NONE,
        "Version": info.get("kubeletVersion", ""),
        "Internal-IP": addresses.get("InternalIP", _NONE),
        "External-IP": addresses.get("ExternalIP", _NONE),
        "OS-Image": info.get("osImage") or "<unknown>",
        "Kernel-Version": info.get("kernelVersion") or "<unknown>",
        "Container-Runtime": info.get("containerRuntimeVersion") or "<unknown>",
    }


def _template_cells(spec: Obj) -> Cells:
    containers = spec.get("template", {}).get("spec", {}).get("containers") or ()
    return {
        "Containers": ",".join(container["name"] for container in containers),
        "Images": ",".join(container.get("image", "") for container in containers),
        "Selector": _selector(spec.get("selector")),
    }


def _selector(selector: Obj | None) -> str:
    labels = (selector or {}).get("matchLabels") or {}
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or _NONE


def _deployment(obj: Obj) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    return {
        "Ready": f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        "Up-to-date": status.get("updatedReplicas", 0),
        "Available": status.get("availableReplicas", 0),
        **_template_cells(spec),
    }


def _replica_set(obj: Obj) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    return {
        "Desired": spec.get("replicas", 0),
        "Current": status.get("replicas", 0),
        "Ready": status.get("readyReplicas", 0),
        **_template_cells(spec),
    }


def _daemon_set(obj: Obj) -> Cells:
    status = obj.get("status") or {}
    return {
        "Desired": status.get("desiredNumberScheduled", 0),
        "Current": status.get("currentNumberScheduled", 0),
        "Ready": status.get("numberReady", 0),
        "Up-to-date": status.get("updatedNumberScheduled", 0),
        "Available": status.get("numberAvailable", 0),
        "Node Selector": _selector(
            {"matchLabels": obj["spec"]["template"]["spec"].get("nodeSelector")}
        ),
        **_template_cells(obj["spec"]),
    }


def _job(job: Obj) -> Cells:
    spec, status = job["spec"], job.get("status") or {}
    conditions = {c["type"] for c in status.get("conditions") or () if c.get("status") == "True"}
    final = [kind for kind in ("Complete", "Failed", "Suspended") if kind in conditions]
    phase = final[0] if final else "Running"
    if "deletionTimestamp" in job["metadata"]:
        phase = "Terminating"
    completions = spec.get("completions")
    if completions is None:
        parallelism = spec.get("parallelism", 1)
        completions = f"1 of {parallelism}" if parallelism > 1 else "1"
    duration = ""
    started = time_or_none(status.get("startTime"))
    if started:
        end = time_or_none(status.get("completionTime")) or clock.now()
        duration = human_duration(end - started)
    return {
        "Status": phase,
        "Completions": f"{status.get('succeeded', 0)}/{completions}",
        "Duration": duration,
        **_template_cells(spec),
    }


def _cron_job(obj: Obj) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    last = status.get("lastScheduleTime")
    return {
        "Schedule": spec.get("schedule", ""),
        "Timezone": spec.get("timeZone", _NONE),
        "Suspend": "True" if spec.get("suspend") else "False",
        "Active": len(status.get("active") or ()),
        "Last Schedule": age(last) if last else _NONE,
        **_template_cells(spec.get("jobTemplate", {}).get("spec", {})),
    }


def _service(obj: Obj) -> Cells:
    spec = obj["spec"]
    ports = [f"{port['port']}/{port.get('protocol', 'TCP')}" for port in spec.get("ports") or ()]
    return {
        "Type": spec.get("type", ""),
        "Cluster-IP": spec.get("clusterIP") or _NONE,
        "External-IP": ",".join(spec.get("externalIPs") or ()) or _NONE,
        "Port(s)": ",".join(ports) or _NONE,
        "Selector": _selector({"matchLabels": spec.get("selector")}),
    }


def _event(event: Obj) -> Cells:
    involved = event.get("involvedObject") or {}
    series = event.get("series") or {}
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    first = event.get("firstTimestamp") or event.get("eventTime")
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent", "")
    return {
        "Last Seen": age(last or first),
        "Type": event.get("type", ""),
        "Reason": event.get("reason", ""),
        "Object": f"{involved.get('kind', '').lower()}/{involved.get('name', '')}",
        "Subobject": involved.get("fieldPath", ""),
        "Source": ", ".join(filter(None, (component, source.get("host", "")))),
        "Message": (event.get("message") or "").strip(),
        "First Seen": age(first or last),
        "Count": series.get("count") or event.get("count") or 1,
    }


def _volume_claim(obj: Obj) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    return {
        "Status": status.get("phase", ""),
        "Volume": spec.get("volumeName", ""),
        "Capacity": (status.get("capacity") or {}).get("storage", ""),
        "Access Modes": _modes(status.get("accessModes")),
        "StorageClass": spec.get("storageClassName", ""),
        "VolumeAttributesClass": spec.get("volumeAttributesClassName", _UNSET),
        "VolumeMode": spec.get("volumeMode", ""),
    }


def _volume(obj: Obj) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    claim = spec.get("claimRef") or {}
    return {
        "Capacity": (spec.get("capacity") or {}).get("storage", ""),
        "Access Modes": _modes(spec.get("accessModes")),
        "Reclaim Policy": spec.get("persistentVolumeReclaimPolicy", ""),
        "Status": status.get("phase", ""),
        "Claim": f"{claim['namespace']}/{claim['name']}" if claim else "",
        "StorageClass": spec.get("storageClassName", ""),
        "VolumeAttributesClass": spec.get("volumeAttributesClassName", _UNSET),
        "Reason": status.get("reason", ""),
        "VolumeMode": spec.get("volumeMode", ""),
    }


def _modes(modes: list[str] | None) -> str:
    short = {
        "ReadWriteOnce": "RWO",
        "ReadOnlyMany": "ROX",
        "ReadWriteMany": "RWX",
        "ReadWriteOncePod": "RWOP",
    }
    return ",".join(short.get(mode, mode) for mode in modes or ())


def _data(obj: Obj) -> Cells:
    count = len(obj.get("data") or ()) + len(obj.get("binaryData") or ())
    return {"Data": count, "Type": obj.get("type", "")}


def _namespace(obj: Obj) -> Cells:
    return {"Status": (obj.get("status") or {}).get("phase", "")}


def _lease(obj: Obj) -> Cells:
    return {"Holder": (obj.get("spec") or {}).get("holderIdentity", "")}


def _priority_class(obj: Obj) -> Cells:
    return {
        "Value": obj.get("value", 0),
        "Global-Default": bool(obj.get("globalDefault")),
        "PreemptionPolicy": obj.get("preemptionPolicy", ""),
    }


def _binding(obj: Obj) -> Cells:
    role, subjects = obj["roleRef"], obj.get("subjects") or ()
    names: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in subjects:
        home = f"{subject['namespace']}/" if subject.get("namespace") else ""
        names.setdefault(subject["kind"], []).append(home + subject["name"])
    return {
        "Role": f"{role['kind']}/{role['name']}",
        "Users": ", ".join(names["User"]),
        "Groups": ", ".join(names["Group"]),
        "ServiceAccounts": ", ".join(names["ServiceAccount"]),
    }


def _disruption_budget(obj: Obj) -> Cells:
    spec = obj.get("spec") or {}
    return {
        "Min Available": str(spec.get("minAvailable", "N/A")),
        "Max Unavailable": str(spec.get("maxUnavailable", "N/A")),
        "Allowed Disruptions": (obj.get("status") or {}).get("disruptionsAllowed", 0),
    }


def _webhooks(obj: Obj) -> Cells:
    return {"Webhooks": len(obj.get("webhooks") or ())}


def _resource_claim(obj: Obj) -> Cells:
    status = obj.get("status") or {}
    states = []
    if "deletionTimestamp" in obj["metadata"]:
        states.append("deleted")
    if "allocation" not in status:
        states.append("pending")
    else:
        states.append("allocated")
        if status.get("reservedFor"):
            states.append("reserved")
    return {"State": ",".join(states)}


def _resource_slice(obj: Obj) -> Cells:
    spec = obj["spec"]
    return {
        "Node": spec.get("nodeName", ""),
        "Driver": spec.get("driver", ""),
        "Pool": (spec.get("pool") or {}).get("name", ""),
    }


CELLS: dict[str, Callable[[Obj], Cells]] = {
    "pods": _pod,
    "nodes": _node,
    "namespaces": _namespace,
    "services": _service,
    "events": _event,
    "secrets": _data,
    "configmaps": _data,
    "persistentvolumeclaims": _volume_claim,
    "persistentvolumes": _volume,
    "deployments.apps": _deployment,
    "replicasets.apps": _replica_set,
    "statefulsets.apps": _deployment,
    "daemonsets.apps": _daemon_set,
    "jobs.batch": _job,
    "cronjobs.batch": _cron_job,
    "leases.coordination.k8s.io": _lease,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "rolebindings.rbac.authorization.k8s.io": _binding,
    "clusterrolebindings.rbac.authorization.k8s.io": _binding,
    "poddisruptionbudgets.policy": _disruption_budget,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _webhooks,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _webhooks,
    "resourceclaims.resource.k8s.io": _resource_claim,
    "resourceslices.resource.k8s.io": _resource_slice,
}
