"""Apply an edit from REST to a Queue object, and compare two Queue objects field by field.

REST uses base units (GPUs, millicores, bytes), "unlimited" and null, where the custom resource uses -1 and
leaves the field out. An edit changes only the fields it names; all others stay, including unknown ones.

Pure: no Django, no cluster.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kube.resources import QUEUES
from kube.values.pointers import pointer_part
from queues.editing.option_edits import OPTION_FIELDS, flat_options, set_option, without_options
from queues.tree.shape import (
    BASE_UNITS,
    CR_FIELDS,
    LABEL_LENGTH,
    LIMIT,
    NAME_LENGTH,
    NAME_PATTERN,
    QUOTA,
    RESOURCES,
    REST_NAMES,
    WEIGHT,
    Finding,
    is_clean,
    shown,
)
from queues.tree.unlimited import UNLIMITED, UNLIMITED_WORD

# REST name -> name in the spec of the custom resource
TEXT_FIELDS = {
    "displayName": "displayName",
    "preemptMinRuntime": "preemptMinRuntime",
    "reclaimMinRuntime": "reclaimMinRuntime",
    "parent": "parentQueue",
}
EDITABLE = (*TEXT_FIELDS, "priority", QUOTA, LIMIT, WEIGHT, "labels", *OPTION_FIELDS)
NEW_LIMIT = UNLIMITED
# Kubernetes limits the length of labels but not their number; lists and live frames need a limit on that too.
MAX_LABELS = 64
LABEL_PATTERN = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
MAX_DISPLAY_NAME_LENGTH = 256

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """One field before and after, as REST writes it."""

    pointer: str
    before: Any
    after: Any

    def as_dict(self) -> dict[str, Any]:
        """Return the entry of an answer's `diff`."""
        return {"pointer": self.pointer, "before": self.before, "after": self.after}


def new_queue(name: object) -> Body:
    """Return the queue that a creation starts from: quota 0 and no limit.

    With an unset limit nothing could run, which is not what a user who leaves it out intends.
    """
    amounts = {"quota": 0, "limit": NEW_LIMIT, "overQuotaWeight": 1}
    return {
        "apiVersion": QUEUES.api_version,
        "kind": QUEUES.kind,
        "metadata": {"name": name},
        "spec": {"resources": {resource: dict(amounts) for resource in RESOURCES}},
    }


def bare_queue(name: object, metadata: Mapping[str, Any]) -> Body:
    """Return a queue without any field; a full replacement starts from it."""
    return {
        "apiVersion": QUEUES.api_version,
        "kind": QUEUES.kind,
        "metadata": {**without_options(metadata), "name": name, "labels": {}},
        "spec": {"resources": {}},
    }


def apply(base: Mapping[str, Any], edit: object) -> tuple[Body, tuple[Finding, ...]]:
    """Return an edited copy of the queue, and what is wrong with the edit itself.

    Parameters
    ----------
    base : a Queue body
    edit : the body of a REST call, any JSON
    """
    body: Body = copy.deepcopy(dict(base))
    if not isinstance(edit, Mapping):
        return body, (_type_finding("", edit, "object"),)
    findings: list[Finding] = []
    spec = body.setdefault("spec", {})
    for field, value in edit.items():
        if (
            field == "displayName"
            and isinstance(value, str)
            and len(value) > MAX_DISPLAY_NAME_LENGTH
        ):
            findings.append(_length_finding(value))
        elif field in TEXT_FIELDS:
            _set(spec, TEXT_FIELDS[field], None if value == "" else value)
        elif field == "priority":
            _set(spec, "priority", value)
        elif field == "labels":
            findings += _set_labels(body, value)
        elif field in CR_FIELDS:
            findings += _set_amounts(spec, field, value)
        elif field in OPTION_FIELDS:
            findings += set_option(body, field, value)
        else:
            findings.append(
                Finding(
                    pointer=f"/{shown(field)}",
                    code="unknown-field",
                    message=f"'{shown(field)}' is no field of a queue; expected one of {', '.join(EDITABLE)}",
                    given=shown(field),
                    allowed=list(EDITABLE),
                )
            )
    return body, tuple(findings)


def _length_finding(value: str) -> Finding:
    return Finding(
        pointer="/displayName",
        code="length",
        message=f"displayName: expected at most {MAX_DISPLAY_NAME_LENGTH} characters, got {len(value)}",
        given=shown(value),
        allowed=MAX_DISPLAY_NAME_LENGTH,
    )


def _set(target: Body, name: str, value: object) -> None:
    if value is None:
        target.pop(name, None)
    else:
        target[name] = value


def _type_finding(pointer: str, value: object, allowed: str) -> Finding:
    return Finding(
        pointer=pointer,
        code="type",
        message=f"{pointer or 'the body'}: expected {allowed}, got {shown(value)}",
        given=shown(value),
        allowed=allowed,
    )


def _set_labels(body: Body, value: object) -> Iterator[Finding]:
    """Merge labels into those of the queue, where null removes one; yield what is wrong with them."""
    if not isinstance(value, Mapping):
        yield _type_finding("/labels", value, "an object of strings")
        return
    labels = body.setdefault("metadata", {}).setdefault("labels", {})
    for key, text in value.items():
        finding = _check_label(key, text)
        if finding is not None:
            yield finding
            continue
        _set(labels, key, text)
    if len(labels) > MAX_LABELS:
        yield Finding(
            pointer="/labels",
            code="too-many",
            message=f"labels: expected at most {MAX_LABELS}, got {len(labels)}",
            given=len(labels),
            allowed=MAX_LABELS,
        )


def _check_label(key: object, text: object) -> Finding | None:
    """Return why Kubernetes would refuse a label, if it would; null removes one, whatever its key."""
    pointer = f"/labels/{pointer_part(shown(key))}"
    if not isinstance(key, str) or not is_clean(key):
        return _type_finding("/labels", key, "an object of strings")
    if text is None:
        return None
    if not isinstance(text, str) or not is_clean(text):
        return _type_finding(pointer, text, "a string or null")
    prefix, slash, name = key.rpartition("/")
    is_name_valid = len(name) <= LABEL_LENGTH and LABEL_PATTERN.fullmatch(name)
    is_prefix_valid = not slash or (len(prefix) <= NAME_LENGTH and NAME_PATTERN.fullmatch(prefix))
    if not is_name_valid or not is_prefix_valid:
        return _bad_label(pointer, "label-key", "a key such as team or example.com/team", key)
    if text and not (len(text) <= LABEL_LENGTH and LABEL_PATTERN.fullmatch(text)):
        return _bad_label(pointer, "label-value", "a value", text)
    return None


def _bad_label(pointer: str, code: str, expected: str, value: str) -> Finding:
    return Finding(
        pointer=pointer,
        code=code,
        message=f"{pointer[1:]}: expected {expected} of at most {LABEL_LENGTH} letters, digits, '-', '_' and '.',"
        f" beginning and ending with a letter or digit, got '{shown(value)}'",
        given=shown(value),
        allowed=LABEL_PATTERN.pattern,
    )


def _set_amounts(spec: Body, field: str, value: object) -> Iterator[Finding]:
    if not isinstance(value, Mapping):
        yield _type_finding(f"/{field}", value, "an object")
        return
    resources = spec.setdefault("resources", {})
    resource_by_name = {REST_NAMES[resource]: resource for resource in RESOURCES}
    for name, amount in value.items():
        pointer = f"/{field}/{shown(name)}"
        if name not in resource_by_name:
            yield Finding(
                pointer=pointer,
                code="unknown-field",
                message=f"{field}: expected {', '.join(resource_by_name)}, got '{shown(name)}'",
                given=shown(name),
                allowed=list(resource_by_name),
            )
            continue
        resource = resource_by_name[name]
        cr_amount, finding = _cr_amount(pointer, field, resource, amount)
        if finding is not None:
            yield finding
            continue
        amounts = resources.get(resource)
        if not isinstance(amounts, dict):
            amounts = resources[resource] = {}
        _set(amounts, CR_FIELDS[field], cr_amount)


def _cr_amount(
    pointer: str, field: str, resource: str, amount: object
) -> tuple[float | int | None, Finding | None]:
    """Return the amount in the unit of the custom resource, or what is wrong with it."""
    if amount is None:
        return None, None
    may_be_unlimited = field != WEIGHT
    if amount == UNLIMITED_WORD and may_be_unlimited:
        return int(UNLIMITED), None
    allowed = 'a number >= 0, "unlimited" or null' if may_be_unlimited else "a number >= 0 or null"
    is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
    if not is_number or not math.isfinite(_float(amount)) or _float(amount) < 0:
        code = "negative" if is_number and _float(amount) < 0 else "number"
        return None, Finding(
            pointer=pointer,
            code=code,
            message=f"{pointer[1:]}: expected {allowed}, got {shown(amount)}",
            given=shown(amount),
            allowed=allowed,
        )
    value = _float(amount) / (1 if field == WEIGHT else BASE_UNITS[resource])
    return (int(value) if value.is_integer() else value), None


def _float(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        return math.inf


def differences(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> list[Difference]:
    """Return the fields that differ, in a fixed order, as REST writes them."""
    old, new = flat(before or {}), flat(after)
    pointers = [*new, *(pointer for pointer in old if pointer not in new)]
    return [
        Difference(pointer, old.get(pointer), new.get(pointer))
        for pointer in pointers
        if old.get(pointer) != new.get(pointer)
    ]


def flat(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return JSON pointer -> value of the fields that people may edit, as REST writes them."""
    spec = body.get("spec") or {}
    fields: dict[str, Any] = {}
    for name, cr_name in TEXT_FIELDS.items():
        if spec.get(cr_name):
            fields[f"/{name}"] = spec[cr_name]
    if spec.get("priority") is not None:
        fields["/priority"] = spec["priority"]
    resources = spec.get("resources") or {}
    for field, cr_name in CR_FIELDS.items():
        for resource in RESOURCES:
            amount = (resources.get(resource) or {}).get(cr_name)
            if amount is not None:
                fields[f"/{field}/{REST_NAMES[resource]}"] = _rest_amount(field, resource, amount)
    for key, text in sorted(((body.get("metadata") or {}).get("labels") or {}).items()):
        fields[f"/labels/{pointer_part(key)}"] = text
    return {**fields, **flat_options(body)}


def _rest_amount(field: str, resource: str, amount: Any) -> Any:
    if field != WEIGHT and amount == UNLIMITED:
        return UNLIMITED_WORD
    if not isinstance(amount, int | float):
        return amount
    value = amount * (1 if field == WEIGHT else BASE_UNITS[resource])
    return int(value) if float(value).is_integer() else value


def merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> Body:
    """Return the JSON merge patch that turns `before` into `after` (RFC 7396)."""
    patch: Body = {}
    for name in before.keys() - after.keys():
        patch[name] = None
    for name, value in after.items():
        if name not in before:
            patch[name] = value
        elif before[name] != value:
            nested = isinstance(value, Mapping) and isinstance(before[name], Mapping)
            patch[name] = merge_patch(before[name], value) if nested else value
    return patch
