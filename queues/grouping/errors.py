"""Errors of pod grouping. Users read the texts in `PodGrouperWarning` events of pods."""

from __future__ import annotations


class GroupingError(Exception):
    """The workload of the pod cannot be turned into a pod group."""


class FieldError(GroupingError):
    """A field of an owner has an invalid value; the text names the field, the caller adds the owner."""


class GangMissingError(GroupingError):
    """The gang that a pod names does not exist yet; the pod is grouped when it appears."""


class NotReadableError(Exception):
    """An owner may not be read (RBAC), so the walk ends below it. Normal for unknown kinds."""


class ReadError(Exception):
    """An object could not be read; the text is the cause."""


class NotThereError(ReadError):
    """The object does not exist."""
