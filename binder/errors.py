"""Errors of carrying out a bind request."""

from __future__ import annotations


class BindError(Exception):
    """An attempt failed; the text becomes the `reason` in the request's status."""


class InvalidRequestError(BindError):
    """The request itself is invalid; it is deleted instead of marked as failed."""


class TakenError(Exception):
    """Another binder works on the request, or it is over; this one leaves it alone and takes nothing back."""


class UnknownOutcomeError(Exception):
    """The server did not answer the binding, so the pod may be bound or not; the next sweep looks again."""


class UnfinishedUndoError(Exception):
    """The server failed while a bind was being undone; the request stays marked, and the next sweep repeats it."""


class ConfigError(Exception):
    """A plugin of the binder has invalid arguments; the binder refuses to start."""
