"""Ask a webhook as the API server does, and read its answer."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jsonpatch

from queues.admission.routes import Routes
from queues.admission.settings import AdmissionSettings
from queues.tree.hierarchy import Tree


@dataclass(frozen=True)
class Answer:
    allowed: bool
    message: str
    warnings: list[str]
    object: dict[str, Any]
    has_patch: bool


def accepted(obj: dict[str, Any] | None, *, warnings: Sequence[str] = ()) -> Answer:
    """Return the answer that lets an object pass unchanged."""
    return Answer(
        allowed=True, message="", warnings=list(warnings), object=obj or {}, has_patch=False
    )


def ask(
    path: str,
    obj: dict[str, Any] | None,
    *,
    old: dict[str, Any] | None = None,
    operation: str = "",
    tree: Tree | None = None,
    compares_quotas: bool = False,
    **settings: Any,
) -> Answer:
    """Post one review and return the answer; the object comes back with the patch applied."""
    request = {
        "uid": "r1",
        "operation": operation or ("CREATE" if old is None else "UPDATE" if obj else "DELETE"),
        "namespace": "lab",
        "object": obj,
        "oldObject": old,
    }
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    options = {"gpu_sharing": True, "suffix": lambda: "rndrndx", **settings}
    routes = Routes(
        tree=lambda: tree or {},
        settings=AdmissionSettings(**options),
        compares_quotas=compares_quotas,
    )
    raw = routes.answer(path, json.dumps(body).encode())
    assert raw is not None
    review = json.loads(raw)
    assert (review["apiVersion"], review["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response = review["response"]
    assert response["uid"] == "r1"
    patched = obj or {}
    if "patch" in response:
        assert response["patchType"] == "JSONPatch"
        patched = jsonpatch.apply_patch(patched, json.loads(base64.b64decode(response["patch"])))
    return Answer(
        allowed=response["allowed"],
        message=response.get("status", {}).get("message", ""),
        warnings=response.get("warnings", []),
        object=patched,
        has_patch="patch" in response,
    )
