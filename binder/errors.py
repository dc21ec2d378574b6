"""What can go wrong while a bind request is carried out."""

from __future__ import annotations


class BindError(Exception):
    """An attempt failed; the text becomes the request's reason."""


class InvalidRequestError(BindError):
    """The request itself makes no sense; it is deleted instead of failed."""


class UnknownOutcomeError(Exception):
    """The server fell silent over the binding: the pod may have its node or not. Asked again later."""


class ConfigError(Exception):
    """Arguments of the binder's plugins that cannot be used; refused at start."""
