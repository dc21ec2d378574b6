"""Translate the refusal of a Queue by an API server into REST terms: which field, and why.

The texts are those of Kubernetes: `Queue.scheduling.run.ai "x" is invalid: spec.priority: Invalid value: …` from
the schema, and `admission webhook "…" denied the request: …` from a webhook, ours or another one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from queues.tree.shape import CR_FIELDS, REST_NAMES

OUR_WEBHOOK = "queue-validation.kai.scheduler"
REQUEST = re.compile(r"^[A-Z]+ /\S+: \d{3} ")
WEBHOOK = re.compile(
    r'admission webhook "(?P<hook>[^"]*)" denied the request(?:: (?P<why>.*))?', re.S
)
INVALID = re.compile(r"is invalid: \[?(?P<causes>.*?)\]?$", re.S)
CAUSE = re.compile(
    r"(?:^|, )(?P<path>[A-Za-z<][^:,\s]*): (?P<why>(?:Invalid|Required|Forbidden|Unsupported|Too|Duplicate|Internal)"
    r".*?)(?=, [A-Za-z<][^:,\s]*: (?:Invalid|Required|Forbidden|Unsupported|Too|Duplicate)|$)",
    re.S,
)
PARTS = {cr: rest for rest, cr in CR_FIELDS.items()}
FIELDS = {
    "metadata.name": "/name",
    "metadata.labels": "/labels",
    "spec.parentQueue": "/parent",
    "spec.displayName": "/displayName",
    "spec.priority": "/priority",
    "spec.preemptMinRuntime": "/preemptMinRuntime",
    "spec.reclaimMinRuntime": "/reclaimMinRuntime",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A problem type, one sentence, and the entries of `errors`."""

    slug: str
    detail: str
    errors: list[dict[str, Any]]


def refused_by_schema(error: Exception) -> Refusal:
    """Return the refusal that a 400 or 422 of the API server stands for."""
    text = REQUEST.sub("", str(error))
    match = INVALID.search(text)
    causes = CAUSE.finditer(match["causes"]) if match else ()
    entries = [_entry(_pointer(cause["path"]), "cluster", cause["why"]) for cause in causes]
    return Refusal("validation", text, entries or [_entry("", "cluster", text)])


def refused_by_rights(error: Exception) -> Refusal:
    """Return the refusal that a 403 of the API server stands for: by a webhook, or for a missing right of kaiweb."""
    text = REQUEST.sub("", str(error))
    match = WEBHOOK.search(text)
    if match is None:
        return Refusal("forbidden", text, [])
    reason = match["why"] or "without a reason"
    if match["hook"] == OUR_WEBHOOK:
        pointer = "/parent" if "parent" in reason or "cannot be below" in reason else ""
        return Refusal("hierarchy", reason, [_entry(pointer, "admission", reason)])
    detail = f"webhook '{match['hook']}' of the cluster refuses it: {reason}"
    return Refusal("validation", detail, [_entry("", "admission", reason)])


def _pointer(path: str) -> str:
    if path in FIELDS:
        return FIELDS[path]
    for prefix, pointer in FIELDS.items():
        if path.startswith((f"{prefix}.", f"{prefix}[")):
            return pointer
    parts = path.removeprefix("spec.resources.").split(".")
    if len(parts) == 2 and parts[0] in REST_NAMES and parts[1] in PARTS:
        return f"/{PARTS[parts[1]]}/{REST_NAMES[parts[0]]}"
    return ""


def _entry(pointer: str, code: str, message: str) -> dict[str, Any]:
    return {"pointer": pointer, "code": code, "message": message, "given": None, "allowed": None}
