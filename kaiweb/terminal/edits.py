"""Read the words `quota.gpu=4` of a command as an edit of a queue, in the units of the REST API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import click

from kube.errors import BadValueError
from kube.values.quantity import parse_quantity

UNLIMITED, UNSET = "unlimited", "unset"
BOUNDS = ("quota", "limit", "weight")
#: Resource in the command -> its name in the API, and the factor from the command's unit to that of the API.
RESOURCES = {"gpu": ("gpu", 1), "cpu": ("cpuMilli", 1000), "memory": ("memoryBytes", 1)}
TEXTS = {
    "parent": "parent",
    "display-name": "displayName",
    "preempt-min-runtime": "preemptMinRuntime",
    "reclaim-min-runtime": "reclaimMinRuntime",
    "max-run-time": "maxRunTime",
    "requeue-delay": "requeueDelay",
}
KNOWN = (
    *(f"{bound}.{resource}" for bound in BOUNDS for resource in RESOURCES),
    "priority",
    *TEXTS,
)

Edit = dict[str, Any]


def read_edit(words: Sequence[str]) -> Edit:
    """Return the body of a PATCH of a queue.

    Raises
    ------
    click.UsageError : a word is no FIELD=VALUE, names an unknown field, or has a wrong value
    """
    edit: Edit = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name not in KNOWN:
            raise click.UsageError(
                f"'{word}': expected FIELD=VALUE with a field of {', '.join(KNOWN)}"
            )
        bound, _, resource = name.partition(".")
        if bound in BOUNDS:
            key, factor = RESOURCES[resource]
            factor = 1 if bound == "weight" else factor
            edit.setdefault(bound, {})[key] = _amount(word, value, factor, bound)
        elif name == "priority":
            edit[name] = _value(word, value, int, "a whole number")
        else:
            edit[TEXTS[name]] = None if value == UNSET else value
    return edit


def _amount(word: str, value: str, factor: int, bound: str) -> float | str | None:
    if value == UNLIMITED and bound != "weight":
        return UNLIMITED
    amount = _value(word, value, parse_quantity, f"an amount such as 4 or 64Gi, or {UNLIMITED}")
    if amount is None:
        return None
    scaled: Fraction = amount * factor
    return int(scaled) if scaled.denominator == 1 else float(scaled)


def _value(word: str, value: str, read: Callable[[str], Any], expected: str) -> Any:
    if value == UNSET:
        return None
    try:
        return read(value)
    except (ValueError, BadValueError) as error:
        raise click.UsageError(f"'{word}': expected {expected}, or {UNSET}") from error
