"""What a RuntimeClass adds to the pods that name it: overhead, a node selector and tolerations."""

from __future__ import annotations

from typing import Any

from sandbox.apiserver.model import errors
from sandbox.apiserver.model.entry import Obj
from sandbox.apiserver.storage.store import Store

_RUNTIME_CLASSES = "runtimeclasses.node.k8s.io"
_DIFFERENT = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_UNFOUNDED = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


def apply_runtime_class(pod: Obj, store: Store) -> None:
    """Add to a new pod what its RuntimeClass says.

    Raises
    ------
    ApiError : 403 if there is no such class, or the pod contradicts it
    """
    spec = pod["spec"]
    runtime_class = _class_of(pod, store)
    overhead = (runtime_class.get("overhead") or {}).get("podFixed") or {}
    stated = spec.get("overhead") or {}
    if stated and stated != overhead:
        raise _refusal(pod, _DIFFERENT if overhead else _UNFOUNDED)
    if overhead:
        spec["overhead"] = dict(overhead)
    scheduling = runtime_class.get("scheduling") or {}
    _add_selector(pod, scheduling.get("nodeSelector") or {})
    tolerations = spec.get("tolerations") or []
    added = [item for item in scheduling.get("tolerations") or () if item not in tolerations]
    if added:
        spec["tolerations"] = [*tolerations, *added]


def _class_of(pod: Obj, store: Store) -> dict[str, Any]:
    """Return the RuntimeClass of a pod; empty if it names none."""
    name = pod["spec"].get("runtimeClassName")
    if not name:
        return {}
    entry = store.get(_RUNTIME_CLASSES, "", name)
    if entry is None:
        raise _refusal(pod, f'pod rejected: RuntimeClass "{name}" not found')
    return entry.load()


def _add_selector(pod: Obj, added: dict[str, str]) -> None:
    selector = pod["spec"].get("nodeSelector") or {}
    for key, value in added.items():
        if selector.get(key, value) != value:
            raise _refusal(
                pod,
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {selector[key]}",
            )
    if added:
        pod["spec"]["nodeSelector"] = {**selector, **added}


def _refusal(pod: Obj, why: str) -> errors.ApiError:
    return errors.forbidden("", "pods", pod["metadata"].get("name", ""), why)
