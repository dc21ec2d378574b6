"""Options of a queue that KAI does not have: annotations of the Queue, read here and nowhere else.

Without the annotation a queue is treated as KAI treats it. Reading never raises: an annotation that cannot be read
becomes a finding and is then treated as absent. Pure: no Django, no cluster.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kube.keys import GPU_MODELS, MAX_RUN_TIME, REQUEUE_DELAY, USER_FAIRNESS
from kube.values.pointers import pointer_part
from queues.tree.findings import Finding, duration_fault, is_clean, shown
from queues.tree.unlimited import UNLIMITED, UNLIMITED_WORD

#: Annotation -> name of the option in REST.
REST_NAMES = {
    USER_FAIRNESS: "userFairness",
    GPU_MODELS: "gpuModels",
    MAX_RUN_TIME: "maxRunTime",
    REQUEUE_DELAY: "requeueDelay",
}
#: Those that are durations, written as Go does.
DURATIONS = (MAX_RUN_TIME, REQUEUE_DELAY)
MAX_MODELS = 64
MAX_MODEL_LENGTH = 253
MAX_AMOUNT = 1e9
BOUNDS = ("quota", "limit")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelBounds:
    """Quota and limit of one GPU model, in GPUs; None is no bound, -1 is unlimited."""

    quota: float | None = None
    limit: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """The options of a queue.

    Attributes
    ----------
    user_fairness : users who hold less of the queue go first in it
    gpu_models : GPU model, as the label of nodes names it -> its bounds
    max_run_time, requeue_delay : durations, inherited by the queues below; empty if it states none
    """

    user_fairness: bool = False
    gpu_models: Mapping[str, ModelBounds] = field(default_factory=dict)
    max_run_time: str = ""
    requeue_delay: str = ""


NO_OPTIONS = QueueOptions()


def option_annotations(annotations: object) -> dict[str, str]:
    """Return those annotations of a queue that are options."""
    if not isinstance(annotations, Mapping):
        return {}
    return {
        key: text for key in REST_NAMES if isinstance(text := annotations.get(key), str) and text
    }


def read_options(annotations: object) -> tuple[QueueOptions, tuple[Finding, ...]]:
    """Return the options in the annotations of a queue, and what is wrong with them."""
    texts = option_annotations(annotations)
    if not texts:
        return NO_OPTIONS, ()
    findings: list[Finding] = []
    return (
        QueueOptions(
            user_fairness=_flag(texts.get(USER_FAIRNESS, "false"), findings),
            gpu_models=_models(texts.get(GPU_MODELS, "{}"), findings),
            max_run_time=_duration(MAX_RUN_TIME, texts, findings),
            requeue_delay=_duration(REQUEUE_DELAY, texts, findings),
        ),
        tuple(findings),
    )


def _flag(text: str, findings: list[Finding]) -> bool:
    if text not in ("true", "false"):
        findings.append(
            Finding(
                pointer="/userFairness",
                code="type",
                message=f"userFairness: expected true or false, got '{shown(text)}'",
                given=shown(text),
                allowed="boolean",
            )
        )
    return text == "true"


def _duration(key: str, texts: Mapping[str, str], findings: list[Finding]) -> str:
    text = texts.get(key, "")
    fault = duration_fault(f"/{REST_NAMES[key]}", text) if text else None
    if fault is None:
        return text
    findings.append(fault)
    return ""


def _models(text: str, findings: list[Finding]) -> dict[str, ModelBounds]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    bounds, faults = read_models(value)
    findings.extend(faults)
    return bounds


def read_models(value: object) -> tuple[dict[str, ModelBounds], tuple[Finding, ...]]:
    """Read bounds per GPU model from JSON, as the annotation and REST write them."""
    if not isinstance(value, Mapping):
        return {}, (_model_fault("", value, "an object: model -> quota and limit"),)
    if len(value) > MAX_MODELS:
        return {}, (_model_fault("", len(value), f"at most {MAX_MODELS} models"),)
    faults = tuple(fault for model, bounds in value.items() for fault in _faults(model, bounds))
    if faults:
        return {}, faults
    return {model: _bounds(bounds) for model, bounds in sorted(value.items())}, ()


def _faults(model: object, bounds: object) -> Iterator[Finding]:
    if not isinstance(model, str) or not is_clean(model) or not 0 < len(model) <= MAX_MODEL_LENGTH:
        yield _model_fault("", model, "the name of a GPU model")
        return
    pointer = f"/{pointer_part(shown(model))}"
    if not isinstance(bounds, Mapping):
        yield _model_fault(pointer, bounds, "an object with quota and limit")
        return
    for name, amount in bounds.items():
        if name not in BOUNDS:
            yield _model_fault(pointer, name, "quota or limit")
        elif amount is not None and _amount(amount) is None:
            yield _model_fault(f"{pointer}/{name}", amount, 'a number >= 0 or "unlimited"')


def _bounds(bounds: Mapping[str, Any]) -> ModelBounds:
    return ModelBounds(quota=_amount(bounds.get("quota")), limit=_amount(bounds.get("limit")))


def _amount(value: object) -> float | None:
    """Return a number of GPUs, -1 for unlimited; None for anything else."""
    if value in (UNLIMITED_WORD, UNLIMITED):
        return UNLIMITED
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and 0 <= value <= MAX_AMOUNT else None


def _model_fault(model_pointer: str, value: object, expected: str) -> Finding:
    pointer = f"/gpuModels{model_pointer}"
    return Finding(
        pointer=pointer,
        code="type",
        message=f"{pointer[1:]}: expected {expected}, got '{shown(value)}'",
        given=shown(value),
        allowed=expected,
    )


def annotation_of_models(models: Mapping[str, ModelBounds]) -> str:
    """Return bounds per GPU model as the annotation writes them."""
    return json.dumps(
        _written(models, lambda amount: int(amount) if amount.is_integer() else amount)
    )


def rest_models(models: Mapping[str, ModelBounds]) -> dict[str, dict[str, Any]]:
    """Return bounds per GPU model as REST writes them; only the bounds that are set."""
    return _written(models, lambda amount: UNLIMITED_WORD if amount == UNLIMITED else amount)


def _written(
    models: Mapping[str, ModelBounds], write: Callable[[float], float | str]
) -> dict[str, dict[str, Any]]:
    return {
        model: {
            name: write(amount) for name in BOUNDS if (amount := getattr(bounds, name)) is not None
        }
        for model, bounds in sorted(models.items())
    }
