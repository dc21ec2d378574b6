"""Why a pod could not be grouped. The text reaches the user as a `PodGrouperWarning` event on the pod."""

from __future__ import annotations


class GroupingError(Exception):
    """The pod's workload cannot be turned into a pod group as it stands."""


class FieldError(GroupingError):
    """A field of an owner holds something else than it should; the text names the field, not yet the owner."""


class NotReadableError(Exception):
    """An owner's kind may not be read (RBAC): the walk ends below it. Normal for unknown kinds."""


class ReadError(Exception):
    """An object could not be read; the text is the cause."""


class NotThereError(ReadError):
    """The object asked for does not exist."""
