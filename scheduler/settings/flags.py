"""Read flags of a scheduler, and arguments of plugins, from the texts in which a shard writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from kube.values.durations import SECOND, parse_duration
from kube.values.numbers import parse_float
from scheduler.core.errors import ConfigError

V = TypeVar("V")

#: Spellings of booleans; Go's flags accept them all.
_TRUE, _FALSE = ("true", "t", "1"), ("false", "f", "0")


class OptionKind(StrEnum):
    """The form of a flag's value."""

    TEXT = "text"
    CHOICE = "choice"
    BOOLEAN = "boolean"
    NUMBER = "number"
    DURATION = "duration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One flag with the value that holds; durations are in seconds.

    Attributes
    ----------
    choices : the only values, for a choice
    is_stated : whether the shard states it, also if it states the default
    """

    name: str
    kind: OptionKind
    value: object
    default: object
    choices: tuple[str, ...] = ()
    is_stated: bool = False


@dataclass(frozen=True, slots=True)
class Flags:
    """Command-line flags or arguments of a plugin, as a shard lists them.

    Attributes
    ----------
    options : the flags that were read so far, by name
    """

    texts: Mapping[str, str]
    options: dict[str, Option] = field(default_factory=dict)

    def text(self, name: str, default: str) -> str:
        """Return a string."""
        return self._read(name, OptionKind.TEXT, default, lambda text: text)

    def flag(self, name: str, *, default: bool) -> bool:
        """Return whether a flag is true."""

        def parse(text: str) -> bool:
            if text.lower() not in (*_TRUE, *_FALSE):
                raise ConfigError(f"{name}: expected true or false, got {text!r}")
            return text.lower() in _TRUE

        return self._read(name, OptionKind.BOOLEAN, default, parse)

    def choice(self, name: str, options: tuple[str, ...]) -> str:
        """Return one of the options, the first by default."""

        def parse(text: str) -> str:
            if text not in options:
                raise ConfigError(f"{name}: expected {' or '.join(options)}, got {text!r}")
            return text

        return self._read(name, OptionKind.CHOICE, options[0], parse, options)

    def number(self, name: str, default: float) -> float:
        """Return a number."""

        def parse(text: str) -> float:
            try:
                return parse_float(text)
            except ValueError:
                raise ConfigError(f"{name}: expected a number, got {text!r}") from None

        return self._read(name, OptionKind.NUMBER, default, parse)

    def seconds(self, name: str, default: float) -> float:
        """Return a duration in seconds."""
        return self._read(name, OptionKind.DURATION, default, duration_s)

    def _read(
        self,
        name: str,
        kind: OptionKind,
        default: V,
        parse: Callable[[str], V],
        choices: tuple[str, ...] = (),
    ) -> V:
        text = self.texts.get(name)
        value = default if text is None else parse(text)
        self.options[name] = Option(
            name=name,
            kind=kind,
            value=value,
            default=default,
            choices=choices,
            is_stated=text is not None,
        )
        return value


def duration_s(text: str | None) -> float:
    """Return a Go duration in seconds, 0 without a text."""
    if not text:
        return 0.0
    try:
        return parse_duration(text) / SECOND
    except ValueError as error:
        raise ConfigError(str(error)) from error
