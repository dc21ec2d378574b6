"""Label selectors and node selector requirements, compared with labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from kube.objects.meta import LabelSelector
from kube.values.numbers import int_or_none


class Requirement(Protocol):
    """The fields that requirements of label selectors and of node selectors share."""

    @property
    def key(self) -> str:
        """Return the name of the label or field."""
        ...

    @property
    def operator(self) -> str:
        """Return `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`."""
        ...

    @property
    def values(self) -> tuple[str, ...]:
        """Return the values with which that of the label or field is compared."""
        ...


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Return whether a selector selects labels; an absent one selects nothing, an empty one everything."""
    if selector is None:
        return False
    is_labelled = all(labels.get(key) == value for key, value in selector.match_labels.items())
    return is_labelled and meets(labels, selector.match_expressions)


def meets(labels: Mapping[str, str], requirements: Iterable[Requirement]) -> bool:
    """Return whether labels meet every requirement."""
    return all(_is_met(labels.get(requirement.key), requirement) for requirement in requirements)


def _is_met(value: str | None, requirement: Requirement) -> bool:
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _is_beyond(value, requirement)
    return False


def _is_beyond(value: str | None, requirement: Requirement) -> bool:
    """Return whether a value is an integer above (Gt) or below (Lt) that of the requirement."""
    values = requirement.values
    left, right = int_or_none(value), int_or_none(values[0] if values else None)
    if left is None or right is None:
        return False
    return left > right if requirement.operator == "Gt" else left < right
