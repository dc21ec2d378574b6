"""Replace the names in a saved cycle, so that it can be shown to strangers and still decides the same.

Every text is replaced unless it is known to say nothing about its owner: amounts, times, words of the Kubernetes API, and
names of well-known domains. Equal texts get equal replacements, in the order of the originals, because the scheduler
settles ties by names. Free text, containers' commands and environment are removed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from kube import keys
from scheduler.load.archive import PAST

Json = Any
#: Values under these keys are words of the API, or rules that would break.
KEPT_FIELDS = frozenset(
    {
        "apiVersion", "kind", "phase", "type", "status", "operator", "effect", "restartPolicy", "volumeBindingMode",
        "expression", "qosClass", "condition", "strategy", "policy", "scope", "preemptionPolicy", "whenUnsatisfiable",
        "allocationMode", "accessModes", "volumeMode", "reclaimPolicy", "controller", "blockOwnerDeletion", "protocol",
        "priorityClassName", "schedulerName", "driver", "deviceClassName", "preemptibility", "receivedResourceType",
        "unhealthyPodEvictionPolicy", "namespaced", "reason", "received-resource-type",
    }
)  # fmt: skip
#: What no decision reads, or what may hold anything.
REMOVED_FIELDS = frozenset(
    {
        "managedFields", "message", "image", "imageID", "images", "command", "args", "env", "envFrom", "displayName",
        "description", "volumeMounts", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "hostIP", "hostIPs",
        "podIP", "podIPs", "addresses", "nodeInfo", "providerID", "podCIDR", "podCIDRs", "data", "binaryData", "selfLink",
        "imagePullSecrets", "securityContext", "workingDir", "terminationMessagePath", "daemonEndpoints",
        "imagePullPolicy", "terminationMessagePolicy", "dnsPolicy",
    }
)  # fmt: skip
#: Maps whose keys may be somebody's.
KEYED_FIELDS = frozenset({"labels", "annotations", "matchLabels", "nodeSelector", "nodeLabels"})
KNOWN_DOMAINS = (
    "kubernetes.io", "k8s.io", "x-k8s.io", "kubeflow.org", "ray.io", "nvidia.com", "amd.com", "intel.com",
    "kai.scheduler", "run.ai", "kaiweb.dev", "runai", "runai-gpu-group", "metadata.name",
)  # fmt: skip
KNOWN_WORDS = frozenset(
    {str(value) for name, value in vars(keys).items() if name.isupper()}
    | {"default", "kube-system", "system-node-critical", "system-cluster-critical", "Unschedulable", "", "main"}
)  # fmt: skip
PLAIN = re.compile(
    r"[+-]?[0-9.]+([eE][+-]?[0-9]+|[numkMGTPE]i?|[KMGTPE]i)?"  # amounts
    r"|([0-9.]+(h|m|s|ms|us|ns))+"  # durations
    r"|\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)"  # times
    r"|true|false"
)


def anonymise(body: Mapping[str, Json]) -> dict[str, Json]:
    """Return the snapshot under other names; settings of the scheduler stay as they are."""
    objects = _reduced(body["rawObjects"])
    unchanged = (
        KNOWN_WORDS | set(_texts(body.get("schedulerParams"))) | set(_texts(body.get("config")))
    )
    names = sorted(set(_names(objects)) - unchanged)
    width = len(str(len(names)))
    replacements = {name: f"x{number:0{width}d}" for number, name in enumerate(names)}
    return {
        **body,
        "discovery": {},
        "rawObjects": _renamed(objects, replacements),
        "kaiweb": _without_selections(body["kaiweb"]),
    }


def _without_selections(own_part: Mapping[str, Any]) -> dict[str, Any]:
    """Return our own part of the file; the labels that past requests selected nodes by are names."""
    past = [[{**request, "selection": None}, count] for request, count in own_part.get(PAST) or ()]
    return {**own_part, PAST: past}


def _reduced(value: Json) -> Json:
    """Return the value without what is removed, and without annotations of others."""
    if isinstance(value, dict):
        return {
            key: _own_annotations(item) if key == "annotations" else _reduced(item)
            for key, item in value.items()
            if key not in REMOVED_FIELDS
        }
    return [_reduced(item) for item in value] if isinstance(value, list) else value


def _own_annotations(annotations: Json) -> Json:
    return {
        key: value
        for key, value in (annotations or {}).items()
        if key in KNOWN_WORDS or (_is_known_key(key) and not key.startswith("kubectl."))
    }


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str):
        yield value


def _names(value: Json, field: str = "") -> Iterator[str]:
    """Yield every text that is replaced, by parts where it has some."""
    if isinstance(value, dict):
        for key, item in value.items():
            if field in KEYED_FIELDS and not _is_known_key(key):
                yield key
            yield from _names(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from _names(item, field)
    elif isinstance(value, str) and not _is_kept(value, field):
        inner = _inner(value)
        yield from _names(inner) if inner is not None else _parts(value)


def _renamed(value: Json, names: Mapping[str, str], field: str = "") -> Json:
    if isinstance(value, dict):
        return {
            names.get(key, key) if field in KEYED_FIELDS else key: _renamed(item, names, key)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_renamed(item, names, field) for item in value]
    if not isinstance(value, str) or _is_kept(value, field):
        return value
    inner = _inner(value)
    if inner is not None:
        return json.dumps(_renamed(inner, names))
    return "/".join(names.get(part, part) for part in _parts(value))


def _parts(text: str) -> list[str]:
    """Return the parts of `namespace/name`, or the whole text; a key of somebody's domain is one name."""
    return [text] if _is_key(text) else text.split("/")


def _inner(text: str) -> Json | None:
    """Return the JSON that an annotation holds as text; None if it holds none."""
    if text[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def _is_kept(text: str, field: str) -> bool:
    is_known = field in KEPT_FIELDS or text in KNOWN_WORDS or _is_known_key(text)
    return is_known or PLAIN.fullmatch(text) is not None or field == keys.NODE_GPU_PRODUCT


def _is_key(text: str) -> bool:
    domain, slash, _name = text.partition("/")
    return bool(slash) and "." in domain


def _is_known_key(text: str) -> bool:
    """Return whether a text is a key of a well-known domain, or such a domain."""
    domain = text.partition("/")[0]
    return text in KNOWN_WORDS or any(
        domain == known_domain or domain.endswith(f".{known_domain}")
        for known_domain in KNOWN_DOMAINS
    )
