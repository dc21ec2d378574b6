"""Take the words of a command apart by the options that its program knows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

#: Option -> whether a value follows it.
Options = Mapping[str, bool]
#: A line of the help of kubectl (`-n, --namespace='':`).
OF_KUBECTL = re.compile(r"^\s+(?:(-\w), )?(--[\w-]+)=(.*):$", re.MULTILINE)
#: A line of the help of helm (`-n, --namespace string   text`) or curl (`-d, --data <data>  text`).
OF_OTHERS = re.compile(
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
    for short, name, default in OF_KUBECTL.findall(help_text):
        options[name] = options[short or name] = default not in {"true", "false"}
    return options


def listed_options(help_text: str) -> dict[str, bool]:
    options: dict[str, bool] = {}
    for short, name, bracketed, plain in OF_OTHERS.findall(help_text):
        options[name] = options[short or name] = bool(bracketed or plain)
    return options


def arguments_of(words: Sequence[str], known: Options) -> Arguments:
    """Return the arguments; an option that the program does not know fails the test."""
    arguments = Arguments()
    queue = list(words)
    while queue:
        word = queue.pop(0)
        if word == "--":
            arguments.rest.extend(queue)
            break
        if not word.startswith("-") or word == "-":
            arguments.positional.append(word)
        elif word.startswith("--"):
            name, has_value, value = word.partition("=")
            _add(arguments, name, value if has_value else None, queue, known)
        else:
            _add_letters(arguments, word, queue, known)
    return arguments


def _add_letters(arguments: Arguments, word: str, queue: list[str], known: Options) -> None:
    """Add options of one letter, which may stand together (`-fsS`) or before their value (`-n1`)."""
    for place, letter in enumerate(word[1:], start=2):
        name = f"-{letter}"
        if known.get(name) and word[place:]:
            _add(arguments, name, word[place:].removeprefix("="), queue, known)
            return
        _add(arguments, name, None, queue, known)


def _add(
    arguments: Arguments, name: str, value: str | None, queue: list[str], known: Options
) -> None:
    assert name in known, f"unknown option {name}"
    if value is None and known[name]:
        assert queue, f"{name} lacks its value"
        value = queue.pop(0)
    arguments.options.append((name, value or ""))
