"""The errors of the scheduling core.

The core does not log an error and continue. Bad input is rejected where it is read, with the object, what
was expected and what it was; an impossible state raises `InvariantError`.
"""

from __future__ import annotations


class CoreError(Exception):
    """Base of everything the scheduling core raises on purpose."""


class InputError(CoreError):
    """A snapshot that contradicts itself (unknown node, two objects of one name ...)."""


class ConfigError(CoreError):
    """A scheduler configuration with an unknown name or a value out of range."""


class InvariantError(CoreError):
    """The state is inconsistent; always a bug of the scheduler, never a fault of the input."""
