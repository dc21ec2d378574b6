"""What can go wrong inside the scheduling core.

The core does not log and carry on. Bad input is refused where it is read, with the object, what was
expected and what came; an impossible state raises `InvariantError` with the story that led there.
"""

from __future__ import annotations


class CoreError(Exception):
    """Base of everything the scheduling core raises on purpose."""


class InputError(CoreError):
    """A snapshot that contradicts itself (unknown node, two objects of one name ...)."""


class ConfigError(CoreError):
    """A scheduler configuration with an unknown name or a value out of range."""


class InvariantError(CoreError):
    """The state broke one of its own rules; always a defect of the scheduler, never of the input."""
