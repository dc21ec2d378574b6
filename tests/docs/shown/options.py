"""Split the words of a command into options, their values and positional words, by the options of its program."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

#: Option -> whether a value follows it.
Options = Mapping[str, bool]
#: A line of the help of kubectl (`-n, --namespace='':`).
KUBECTL_OPTION = re.compile(r"^\s+(?:(-\w), )?(--[\w-]+)=(.*):$", re.MULTILINE)
#: A line of the help of helm (`-n, --namespace string   text`) or curl (`-d, --data <data>  text`).
OTHER_OPTION = re.compile(
    r"^\s+(?:(-\w), +)?(--[\w.-]+)(?:( <[^>]+>) |( \w\S*)?(?:\s{2,}|$))", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Arguments:
    """Options as pairs of name and value, and what stands between them.

    Attributes
    ----------
    rest : the words after `--`
    """

    options: list[tuple[str, str]] = field(default_factory=list)
    positional: list[str] = field(default_factory=list)
    rest: list[str] = field(default_factory=list)

    def value(self, *names: str) -> str | None:
        return next((value for name, value in self.options if name in names), None)


def kubectl_options(help_text: str) -> dict[str, bool]:
    options: dict[str, bool] = {}
    for short, name, default in KUBECTL_OPTION.findall(help_text):
        options[name] = options[short or name] = default not in {"true", "false"}
    return options


def listed_options(help_text: str) -> dict[str, bool]:
    options: dict[str, bool] = {}
    for short, name, bracketed, plain in OTHER_OPTION.findall(help_text):
        options[name] = options[short or name] = bool(bracketed or plain)
    return options


def arguments_of(words: Sequence[str], known: Options) -> Arguments:
    """Return the arguments; an option that the program does not know fails the test."""
    arguments = Arguments()
    words_left = list(words)
    while words_left:
        word = words_left.pop(0)
        if word == "--":
            arguments.rest.extend(words_left)
            break
        if not word.startswith("-") or word == "-":
            arguments.positional.append(word)
        elif word.startswith("--"):
            name, has_value, value = word.partition("=")
            _add(arguments, name, value if has_value else None, words_left, known)
        else:
            _add_letters(arguments, word, words_left, known)
    return arguments


def _add_letters(arguments: Arguments, word: str, words_left: list[str], known: Options) -> None:
    """Add options of one letter, which may stand together (`-fsS`) or before their value (`-n1`)."""
    for place, letter in enumerate(word[1:], start=2):
        name = f"-{letter}"
        if known.get(name) and word[place:]:
            _add(arguments, name, word[place:].removeprefix("="), words_left, known)
            return
        _add(arguments, name, None, words_left, known)


def _add(
    arguments: Arguments, name: str, value: str | None, words_left: list[str], known: Options
) -> None:
    assert name in known, f"unknown option {name}"
    if value is None and known[name]:
        assert words_left, f"{name} lacks its value"
        value = words_left.pop(0)
    arguments.options.append((name, value or ""))
