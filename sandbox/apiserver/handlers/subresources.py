"""Subresources with an effect of their own: binding, scale, token, finalize."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from sandbox.apiserver.access.authn import API_AUDIENCE
from sandbox.apiserver.handlers.mutations import (
    patched,
    read_object,
)
from sandbox.apiserver.handlers.parts import ServerParts
from sandbox.apiserver.handlers.reads import find
from sandbox.apiserver.lifecycle.namespaces import finalize
from sandbox.apiserver.lifecycle.writes import WriteOptions
from sandbox.apiserver.model import clock, errors
from sandbox.apiserver.model.conditions import set_condition
from sandbox.apiserver.model.entry import Entry, Obj
from sandbox.apiserver.model.resources import ServedResource
from sandbox.apiserver.schema import jsonpath
from sandbox.apiserver.wire.request import (
    Reply,
    Request,
    Target,
    json_reply,
    parse_body,
    success_reply,
)

_TOKEN_LIFETIME_S = 3600


async def bind_pod(parts: ServerParts, request: Request, target: Target) -> Reply:
    """Assign a pod to a node, which is possible once per pod."""
    options = WriteOptions.of(request)
    binding = await read_object(request)
    node = (binding.get("target") or {}).get("name", "")
    if not node:
        raise errors.unclassified("target.name: Required value")
    kind = binding["target"].get("kind") or "Node"
    if kind not in ("Node", "Minion"):
        cause = errors.unsupported("target.kind", kind, ("Node", "<empty>"))
        raise errors.invalid("", "Binding", target.name, [cause])
    call = options.call("CREATE", target)
    await parts.writer.admit(call, binding)
    entry = find(parts, target)
    pod = entry.load()
    _check_bindable(target, entry, pod, binding)
    pod["spec"]["nodeName"] = node
    meta = pod["metadata"]
    annotations = (binding.get("metadata") or {}).get("annotations")
    if annotations:
        meta["annotations"] = {**(meta.get("annotations") or {}), **annotations}
    set_condition(pod, {"type": "PodScheduled", "status": "True"})
    if not options.dry_run:
        parts.store.update(entry, pod)
    return success_reply()


async def bind_by_collection(parts: ServerParts, request: Request, target: Target) -> Reply:
    """Answer `POST .../bindings`, the older path of a binding: the body names the pod."""
    binding = parse_body(await request.read(), request.content_type)
    pods = parts.registry.find("", "v1", "pods")
    assert pods is not None, "pods are built in"
    name = (binding.get("metadata") or {}).get("name", "")
    request.receive = _replay(request.body)
    pod_target = Target(resource=pods, namespace=target.namespace, name=name, sub="binding")
    return await bind_pod(parts, request, pod_target)


def _replay(body: bytes) -> Any:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    return receive


def _check_bindable(target: Target, entry: Entry, pod: Obj, binding: Obj) -> None:
    def refused(message: str) -> errors.ApiError:
        return errors.conflict("", "pods/binding", entry.name, message)

    expected_uid = (binding.get("metadata") or {}).get("uid")
    if expected_uid and expected_uid != entry.uid:
        message = f"Precondition failed: UID in precondition: {expected_uid}, UID in object meta: {entry.uid}"
        raise errors.conflict("", "pods", entry.name, message)
    version = (binding.get("metadata") or {}).get("resourceVersion")
    if version and version != str(pod["metadata"]["resourceVersion"]):
        message = (
            f"Precondition failed: ResourceVersion in precondition: {version}, "
            f"ResourceVersion in object meta: {pod['metadata']['resourceVersion']}"
        )
        raise errors.conflict("", "pods", entry.name, message)
    if entry.terminating:
        raise refused(f"pod {entry.name} is being deleted, cannot be assigned to a host")
    current = pod["spec"].get("nodeName")
    if current:
        raise refused(f'pod {entry.name} is already assigned to node "{current}"')
    gates = pod["spec"].get("schedulingGates")
    if gates:
        raise refused(f"pod {entry.name} has non-empty .spec.schedulingGates")


async def create_token(parts: ServerParts, request: Request, target: Target) -> Reply:
    """Issue a token for a ServiceAccount (`kubectl create token`)."""
    body = await read_object(request)
    entry = find(parts, target)
    spec = body.setdefault("spec", {})
    lifetime_s = int(spec.setdefault("expirationSeconds", _TOKEN_LIFETIME_S))
    expires_at = time.time() + lifetime_s
    audiences = spec.setdefault("audiences", [API_AUDIENCE])
    token = parts.authenticator.issue(entry.namespace, entry.name, entry.uid, expires_at, audiences)
    body.update(apiVersion="authentication.k8s.io/v1", kind="TokenRequest")
    body["metadata"] = {
        "name": entry.name,
        "namespace": entry.namespace,
        "creationTimestamp": clock.stamp(),
    }
    until = clock.now() + clock.seconds(lifetime_s)
    body["status"] = {"token": token, "expirationTimestamp": clock.stamp(until)}
    return json_reply(body, 201)


async def finalize_namespace(parts: ServerParts, request: Request, target: Target) -> Reply:
    """Answer `PUT /namespaces/<name>/finalize`: replace the finalizers in the namespace's spec."""
    body = await read_object(request)
    entry = find(parts, target)
    if entry.terminating and not (body.get("spec") or {}).get("finalizers"):
        finalize(parts.store, entry)
        return json_reply(body)
    namespace = entry.load()
    namespace["spec"] = body.get("spec") or {}
    return Reply(parts.store.update(entry, namespace).raw)


async def get_scale(parts: ServerParts, request: Request, target: Target) -> Reply:
    entry = find(parts, target)
    return json_reply(_scale_of(target.resource, entry.load()))


async def write_scale(parts: ServerParts, request: Request, target: Target) -> Reply:
    """Answer PUT and PATCH of /scale, which change the number of replicas only."""
    options = WriteOptions.of(request)
    entry = find(parts, target)
    obj = entry.load()
    scale = _scale_of(target.resource, obj)
    data = await request.read()
    body = parse_body(data, request.content_type)
    if request.method == "PATCH":
        body = patched(scale, request.content_type, body, target.resource)
    replicas = (body.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or replicas < 0:
        detail = "must be greater than or equal to 0"
        cause = errors.invalid_value("spec.replicas", replicas, detail)
        raise errors.invalid("autoscaling", "Scale", target.name, [cause])
    expected_version = (body.get("metadata") or {}).get("resourceVersion")
    if expected_version and expected_version != str(entry.version):
        raise errors.stale(target.resource.group, target.resource.plural, target.name)
    _set_path(obj, _scale_paths(target.resource)["specReplicasPath"], replicas)
    whole = Target(resource=target.resource, namespace=target.namespace, name=target.name)
    obj["metadata"]["resourceVersion"] = str(entry.version)
    updated = await parts.writer.update(whole, entry, obj, options)
    return json_reply(_scale_of(target.resource, updated.load()))


def _scale_of(resource: ServedResource, obj: Obj) -> Obj:
    paths = _scale_paths(resource)
    meta = obj["metadata"]
    shared = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    scale: Obj = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: meta[key] for key in shared if key in meta},
        "spec": {"replicas": _first(jsonpath.lookup(obj, paths["specReplicasPath"]), 0)},
        "status": {"replicas": _first(jsonpath.lookup(obj, paths["statusReplicasPath"]), 0)},
    }
    selector = _first(jsonpath.lookup(obj, paths.get("labelSelectorPath", ".spec.selector")), None)
    if isinstance(selector, str):
        scale["status"]["selector"] = selector
    elif isinstance(selector, dict):
        labels = selector.get("matchLabels") or {}
        scale["status"]["selector"] = ",".join(f"{k}={v}" for k, v in sorted(labels.items()))
    return scale


def _scale_paths(resource: ServedResource) -> dict[str, str]:
    built_in = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    return {**built_in, **resource.subresources["scale"].get("paths", {})}


def _first(values: Iterable[Any], default: Any) -> Any:
    return next(iter(values), default)


def _set_path(obj: Obj, path: str, value: Any) -> None:
    *parents, last = path.strip(".").split(".")
    for name in parents:
        obj = obj.setdefault(name, {})
    obj[last] = value


async def refuse_streaming(parts: ServerParts, request: Request, target: Target) -> Reply:
    """Refuse exec, attach, logs and port-forward, because the sandbox runs no containers."""
    find(parts, target)
    message = (
        f"pods/{target.sub} is not available: this is the kaiweb sandbox, which simulates pods and "
        "runs no containers"
    )
    details = {"name": target.name, "kind": "pods"}
    raise errors.ApiError(501, "NotImplemented", message, details=details)
