"""Edit the options of a queue, which are annotations of its object (`queues/tree/options.py`). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kube.keys import GPU_MODELS, MAX_RUN_TIME, REQUEUE_DELAY, USER_FAIRNESS
from queues.tree.findings import Finding, duration_fault, shown
from queues.tree.options import (
    DURATIONS,
    REST_NAMES,
    annotation_of_models,
    option_annotations,
    read_models,
    read_options,
    rest_models,
)

#: Name of the option in REST -> annotation.
ANNOTATIONS = {name: key for key, name in REST_NAMES.items()}
OPTION_FIELDS = tuple(ANNOTATIONS)


def set_option(body: dict[str, Any], field: str, value: object) -> Iterator[Finding]:
    """Set an option of a Queue body, null removes it; yield what is wrong with the value."""
    key = ANNOTATIONS[field]
    text, faults = _annotation(key, value)
    yield from faults
    annotations = body.setdefault("metadata", {}).setdefault("annotations", {})
    if text:
        annotations[key] = text
    else:
        annotations.pop(key, None)


def _annotation(key: str, value: object) -> tuple[str, tuple[Finding, ...]]:
    """Return an option as its annotation, empty for an option that is off."""
    if value is None:
        return "", ()
    if key == GPU_MODELS:
        models, faults = read_models(value)
        return (annotation_of_models(models) if models else ""), faults
    pointer = f"/{REST_NAMES[key]}"
    if key in DURATIONS and isinstance(value, str):
        fault = duration_fault(pointer, value) if value else None
        return ("", (fault,)) if fault else (value, ())
    if key == USER_FAIRNESS and isinstance(value, bool):
        return ("true" if value else ""), ()
    expected = "a duration" if key in DURATIONS else "true or false"
    return "", (
        Finding(
            pointer=pointer,
            code="type",
            message=f"{pointer[1:]}: expected {expected}, got {shown(value)}",
            given=shown(value),
            allowed="string" if key in DURATIONS else "boolean",
        ),
    )


def flat_options(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return JSON pointer -> value of the options that are set, as REST writes them."""
    options, _ = read_options((body.get("metadata") or {}).get("annotations"))
    fields: dict[str, Any] = {}
    if options.user_fairness:
        fields[f"/{REST_NAMES[USER_FAIRNESS]}"] = True
    if options.gpu_models:
        fields[f"/{REST_NAMES[GPU_MODELS]}"] = rest_models(options.gpu_models)
    if options.max_run_time:
        fields[f"/{REST_NAMES[MAX_RUN_TIME]}"] = options.max_run_time
    if options.requeue_delay:
        fields[f"/{REST_NAMES[REQUEUE_DELAY]}"] = options.requeue_delay
    return fields


def without_options(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a queue without the annotations that are options."""
    annotations = metadata.get("annotations")
    if not option_annotations(annotations):
        return dict(metadata)
    assert isinstance(annotations, Mapping)
    remaining = {key: text for key, text in annotations.items() if key not in REST_NAMES}
    return {**metadata, "annotations": remaining}


def option_path(field: str) -> list[str]:
    """Return where the managed fields of an object record who owns an option."""
    return ["f:metadata", "f:annotations", f"f:{ANNOTATIONS[field]}"]
