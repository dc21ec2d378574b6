"""What there is to know about a plugin before it is made: one `PluginSpec` for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from scheduler.core.errors import ConfigError
from scheduler.core.session.plugin import Plugin

A = TypeVar("A")


class ArgumentTexts(Protocol):
    """A plugin's arguments as a shard writes them; each method names the argument and its default.

    A value of the wrong form raises `ConfigError`.
    """

    def text(self, name: str, default: str) -> str:
        """Return a string."""
        ...

    def flag(self, name: str, *, default: bool) -> bool:
        """Return whether a boolean argument is true; `default` if it is absent."""
        ...

    def number(self, name: str, default: float) -> float:
        """Return a number."""
        ...

    def seconds(self, name: str, default: float) -> float:
        """Return a duration."""
        ...


@dataclass(frozen=True, slots=True)
class NoArguments:
    """For plugins that take none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginSpec(Generic[A]):
    """One plugin.

    Attributes
    ----------
    name : as shards spell it
    priority : its place among the plugins; a higher one comes first
    arguments : the frozen dataclass of its arguments; made without values it holds the defaults
    parse : reads the arguments a shard writes
    make : builds the plugin for one session; None for a plugin that works outside of the core
    on_by_default : whether a shard that does not mention it runs it
    """

    name: str
    priority: int
    arguments: type[A]
    parse: Callable[[ArgumentTexts], A]
    make: Callable[[A], Plugin] | None
    on_by_default: bool = True

    def checked(self, arguments: object) -> A:
        """Return the arguments if they are of this plugin's kind, else refuse them."""
        if not isinstance(arguments, self.arguments):
            raise ConfigError(
                f"plugin {self.name}: expected {self.arguments.__name__}, "
                f"got {type(arguments).__name__}"
            )
        return arguments

    def plugin(self, arguments: object) -> Plugin | None:
        """Build the plugin for one session; None if it adds nothing to a session."""
        return None if self.make is None else self.make(self.checked(arguments))


def without_arguments(
    name: str,
    priority: int,
    make: Callable[[], Plugin] | None,
    *,
    on_by_default: bool = True,
) -> PluginSpec[NoArguments]:
    """Return the spec of a plugin that takes no arguments; those that are written are ignored."""
    return PluginSpec(
        name=name,
        priority=priority,
        arguments=NoArguments,
        parse=lambda _: NoArguments(),
        make=None if make is None else lambda _: make(),
        on_by_default=on_by_default,
    )
