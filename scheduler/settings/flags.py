"""Read flags of a scheduler, and arguments of plugins, from the texts in which a shard writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kube.values.durations import SECOND, parse_duration
from kube.values.numbers import parse_float
from scheduler.core.errors import ConfigError

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
    """Command-line flags or arguments of a plugin, as a shard lists them."""

    texts: Mapping[str, str]

    def text(self, name: str, default: str) -> str:
        """Return a string."""
        return self.texts.get(name, default)

    def flag(self, name: str, *, default: bool) -> bool:
        """Return whether a flag is true."""
        text = self.texts.get(name)
        if text is None:
            return default
        if text.lower() not in (*_TRUE, *_FALSE):
            raise ConfigError(f"{name}: expected true or false, got {text!r}")
        return text.lower() in _TRUE

    def choice(self, name: str, options: tuple[str, ...]) -> str:
        """Return one of the options, the first by default."""
        text = self.texts.get(name, options[0])
        if text not in options:
            raise ConfigError(f"{name}: expected {' or '.join(options)}, got {text!r}")
        return text

    def number(self, name: str, default: float) -> float:
        """Return a number."""
        text = self.texts.get(name)
        if text is None:
            return default
        try:
            return parse_float(text)
        except ValueError:
            raise ConfigError(f"{name}: expected a number, got {text!r}") from None

    def seconds(self, name: str, default: float) -> float:
        """Return a duration in seconds."""
        text = self.texts.get(name)
        return default if text is None else duration_s(text)


@dataclass(frozen=True, slots=True)
class RecordingFlags(Flags):
    """Also remembers which flags were read, and what they are.

    Attributes
    ----------
    options : by name
    """

    options: dict[str, Option] = field(default_factory=dict)

    def text(self, name: str, default: str) -> str:
        """Return a string."""
        value = Flags.text(self, name, default)
        self._note(name, OptionKind.TEXT, value, default)
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """Return whether a flag is true."""
        value = Flags.flag(self, name, default=default)
        self._note(name, OptionKind.BOOLEAN, value, default)
        return value

    def choice(self, name: str, options: tuple[str, ...]) -> str:
        """Return one of the options, the first by default."""
        value = Flags.choice(self, name, options)
        self._note(name, OptionKind.CHOICE, value, options[0], options)
        return value

    def number(self, name: str, default: float) -> float:
        """Return a number."""
        value = Flags.number(self, name, default)
        self._note(name, OptionKind.NUMBER, value, default)
        return value

    def seconds(self, name: str, default: float) -> float:
        """Return a duration in seconds."""
        value = Flags.seconds(self, name, default)
        self._note(name, OptionKind.DURATION, value, default)
        return value

    def _note(
        self,
        name: str,
        kind: OptionKind,
        value: object,
        default: object,
        choices: tuple[str, ...] = (),
    ) -> None:
        self.options[name] = Option(
            name=name,
            kind=kind,
            value=value,
            default=default,
            choices=choices,
            is_stated=name in self.texts,
        )


def duration_s(text: str | None) -> float:
    """Return a Go duration in seconds, 0 without a text."""
    if not text:
        return 0.0
    try:
        return parse_duration(text) / SECOND
    except ValueError as error:
        raise ConfigError(str(error)) from error
