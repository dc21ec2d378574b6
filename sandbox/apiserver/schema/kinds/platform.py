"""The small kinds: Namespace, Service, Secret, storage, priority, RBAC, webhooks, device claims."""

from __future__ import annotations

from base64 import b64encode

from sandbox.apiserver.model import errors
from sandbox.apiserver.model.errors import Cause
from sandbox.apiserver.schema.kinds.base import Obj, setdefaults

_RBAC = "rbac.authorization.k8s.io"
_SERVICE_NETWORK = (10, 96)


def prepare_namespace(obj: Obj) -> None:
    obj["spec"] = {"finalizers": ["kubernetes"]}
    obj["status"] = {"phase": "Active"}


def default_namespace(obj: Obj) -> None:
    labels = obj["metadata"].setdefault("labels", {})
    labels["kubernetes.io/metadata.name"] = obj["metadata"].get("name", "")


def default_service(obj: Obj) -> None:
    spec = obj.setdefault("spec", {})
    setdefaults(spec, type="ClusterIP", sessionAffinity="None", internalTrafficPolicy="Cluster")
    for port in spec.get("ports") or ():
        setdefaults(port, protocol="TCP", targetPort=port.get("port"))


def prepare_service(obj: Obj) -> None:
    obj["status"] = {"loadBalancer": {}}
    spec = obj["spec"]
    if spec["type"] == "ExternalName":
        return
    if not spec.get("clusterIP"):
        # No traffic flows, so an address derived from the uid only has to be unlikely to occur twice.
        number = int(obj["metadata"]["uid"][:4], 16)
        spec["clusterIP"] = ".".join(map(str, (*_SERVICE_NETWORK, number >> 8, number & 255 or 1)))
    setdefaults(
        spec,
        clusterIPs=[spec["clusterIP"]],
        ipFamilies=["IPv4"],
        ipFamilyPolicy="SingleStack",
    )


def validate_service(obj: Obj) -> list[Cause]:
    spec = obj["spec"]
    causes: list[Cause] = []
    if not spec.get("ports") and spec.get("clusterIP") != "None" and spec["type"] != "ExternalName":
        causes.append(errors.required("spec.ports"))
    for index, port in enumerate(spec.get("ports") or ()):
        if not 0 < port.get("port", 0) < 65536:
            detail = "must be between 1 and 65535, inclusive"
            path = f"spec.ports[{index}].port"
            causes.append(errors.invalid_value(path, port.get("port", 0), detail))
    return causes


def default_secret(obj: Obj) -> None:
    setdefaults(obj, type="Opaque")
    for key, text in (obj.pop("stringData", None) or {}).items():
        obj.setdefault("data", {})[key] = b64encode(text.encode()).decode()


def validate_immutable_data(old: Obj, new: Obj) -> list[Cause]:
    if not old.get("immutable"):
        return []
    fields = ("data", "binaryData", "immutable")
    return [
        errors.field_forbidden(field, "field is immutable when `immutable` is set")
        for field in fields
        if old.get(field) != new.get(field)
    ]


def default_priority_class(obj: Obj) -> None:
    setdefaults(obj, preemptionPolicy="PreemptLowerPriority")


def validate_priority_class(obj: Obj) -> list[Cause]:
    value = obj.get("value", 0)
    if value > 1_000_000_000 and not obj["metadata"]["name"].startswith("system-"):
        detail = "maximum allowed value of a user defined priority is 1000000000"
        return [errors.field_forbidden("value", detail)]
    return []


def validate_priority_class_update(old: Obj, new: Obj) -> list[Cause]:
    causes = []
    if old.get("value", 0) != new.get("value", 0):
        causes.append(errors.field_forbidden("value", "may not be changed in an update."))
    if old.get("preemptionPolicy") != new.get("preemptionPolicy"):
        causes.append(
            errors.invalid_value(
                "preemptionPolicy", new.get("preemptionPolicy"), "field is immutable"
            )
        )
    return causes


def default_volume_claim(obj: Obj) -> None:
    setdefaults(obj.setdefault("spec", {}), volumeMode="Filesystem")


def default_volume(obj: Obj) -> None:
    setdefaults(
        obj.setdefault("spec", {}), volumeMode="Filesystem", persistentVolumeReclaimPolicy="Retain"
    )


def default_storage_class(obj: Obj) -> None:
    setdefaults(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def validate_storage_class(obj: Obj) -> list[Cause]:
    return [] if obj.get("provisioner") else [errors.required("provisioner")]


def default_csi_driver(obj: Obj) -> None:
    spec = obj.setdefault("spec", {})
    setdefaults(
        spec,
        attachRequired=True,
        podInfoOnMount=False,
        storageCapacity=False,
        fsGroupPolicy="ReadWriteOnceWithFSType",
        volumeLifecycleModes=["Persistent"],
        requiresRepublish=False,
        seLinuxMount=False,
    )


def default_role_binding(obj: Obj) -> None:
    setdefaults(obj.setdefault("roleRef", {}), apiGroup=_RBAC)
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            setdefaults(subject, apiGroup=_RBAC)


def validate_role_binding_update(old: Obj, new: Obj) -> list[Cause]:
    if old["roleRef"] != new["roleRef"]:
        return [errors.invalid_value("roleRef", new["roleRef"], "cannot change roleRef")]
    return []


def default_webhooks(obj: Obj) -> None:
    mutating = obj["kind"].startswith("Mutating")
    for hook in obj.get("webhooks") or ():
        setdefaults(
            hook,
            failurePolicy="Fail",
            matchPolicy="Equivalent",
            namespaceSelector={},
            objectSelector={},
            timeoutSeconds=10,
        )
        if mutating:
            setdefaults(hook, reinvocationPolicy="Never")
        for rule in hook.get("rules") or ():
            setdefaults(rule, scope="*")
        if "service" in hook.get("clientConfig", {}):
            setdefaults(hook["clientConfig"]["service"], port=443)


def validate_webhooks(obj: Obj) -> list[Cause]:
    causes: list[Cause] = []
    for index, hook in enumerate(obj.get("webhooks") or ()):
        path = f"webhooks[{index}]"
        if not hook.get("sideEffects"):
            causes.append(
                errors.required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun")
            )
        if "v1" not in (hook.get("admissionReviewVersions") or ()):
            detail = "must specify one of v1, v1beta1"
            causes.append(errors.required(f"{path}.admissionReviewVersions", detail))
        config = hook.get("clientConfig") or {}
        if ("url" in config) == ("service" in config):
            detail = "exactly one of url or service is required"
            causes.append(errors.required(f"{path}.clientConfig", detail))
        elif "url" in config and not config["url"].startswith("https://"):
            detail = f"'https' is the only allowed URL scheme; desired format: https://host[/path], got {config['url']}"
            causes.append(errors.invalid_value(f"{path}.clientConfig.url", config["url"], detail))
    return causes


def default_resource_claim(obj: Obj) -> None:
    _default_device_requests(obj.get("spec") or {})


def default_resource_claim_template(obj: Obj) -> None:
    _default_device_requests((obj.get("spec") or {}).get("spec") or {})


def _default_device_requests(spec: Obj) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        choices = (
            [request["exactly"]] if "exactly" in request else request.get("firstAvailable") or []
        )
        for choice in choices:
            setdefaults(choice, allocationMode="ExactCount")
            if choice["allocationMode"] == "ExactCount":
                setdefaults(choice, count=1)


def validate_resource_claim_update(old: Obj, new: Obj) -> list[Cause]:
    if old.get("spec") != new.get("spec"):
        return [errors.invalid_value("spec", new.get("spec"), "field is immutable")]
    return []


def validate_resource_claim_status(old: Obj, new: Obj) -> list[Cause]:
    """Refuse another allocation; an allocation can only be removed."""
    before = (old.get("status") or {}).get("allocation")
    after = (new.get("status") or {}).get("allocation")
    if before and after and before != after:
        return [errors.invalid_value("status.allocation", after, "field is immutable")]
    return []
