"""Build objects with generated uids, and pods from a template.

Nothing is random: the same manifest gives the same names and uids in every run.
"""

from __future__ import annotations

import copy
import uuid
from hashlib import sha256
from typing import Any

from kube.keys import ASSUMED_SCHEDULER
from queues.grouping.base import (
    Json,
    count_at,
    dig_map,
    dig_strings,
    name_of,
    namespace_of,
    owner_reference,
    uid_of,
)

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_UIDS = uuid.UUID("6f5d4f3e-5e5c-4f0e-9a52-6b6169776562")
MAX_PODS = 20_000


def stable_uid(*parts: str) -> str:
    return str(uuid.uuid5(_UIDS, "/".join(parts)))


def stable_suffix(length: int, *parts: str) -> str:
    """Return a suffix such as controllers append to names, the same for the same parts."""
    digest = sha256("/".join(parts).encode()).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:length])


def object_of(
    api_version: str,
    kind: str,
    name: str,
    owner: Json,
    *,
    labels: Json | None = None,
    annotations: Json | None = None,
    **body: Any,
) -> Json:
    """Return an object that `owner`'s controller would create."""
    namespace = namespace_of(owner)
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": stable_uid(api_version, kind, namespace, name, uid_of(owner)),
            "labels": dig_strings(labels),
            "annotations": dig_strings(annotations),
            "ownerReferences": [owner_reference(owner) | {"controller": True}],
        },
        **body,
    }


def pod_of(
    name: str,
    owner: Json,
    template: Json,
    *,
    labels: Json | None = None,
    annotations: Json | None = None,
) -> Json:
    """Return a pod of `owner` from a pod template."""
    spec = copy.deepcopy(dig_map(template, "spec"))
    metadata = dig_map(template, "metadata")
    pod = object_of(
        "v1",
        "Pod",
        name,
        owner,
        labels={**dig_map(metadata, "labels"), **(labels or {})},
        annotations={**dig_map(metadata, "annotations"), **(annotations or {})},
        spec=spec,
        status={"phase": "Pending"},
    )
    if not spec:
        pod[ASSUMED_SCHEDULER] = True
    return pod


def numbered_pods(owner: Json, template: Json, count: int) -> list[Json]:
    """Return pods with generated names, as a ReplicaSet or Job names them."""
    return [
        pod_of(f"{name_of(owner)}-{stable_suffix(5, uid_of(owner), str(index))}", owner, template)
        for index in range(capped(count))
    ]


def template_of(obj: Json, *path: str) -> Json:
    return dig_map(obj, *(path or ("spec", "template")))


def replicas_of(obj: Any, *path: str, default: int = 1, below: str = "") -> int:
    return count_at(obj, *path, default=default, below=below) or 0


def capped(count: int) -> int:
    """Limit the pods of a workload, so that a typo does not fill the memory."""
    return min(count, MAX_PODS)


def scheduler_template(name: str, spec: Json | None = None) -> Json:
    """Return a pod template with only the scheduler name."""
    return {"spec": {**(spec or {}), "schedulerName": name}} if name else {"spec": spec or {}}
