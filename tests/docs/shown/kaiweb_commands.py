"""The commands `kaiweb ...` with their options, and the targets of make."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Sequence
from functools import cache

import click
from django.core.management import get_commands, load_command_class

from kaiweb.terminal.program import NAMES, terminal
from tests.docs.shown.pages import ROOT


def check_kaiweb(words: Sequence[str]) -> None:
    """Check that a command exists and has the options; `words` begin after `kaiweb`."""
    options = {
        word.partition("=")[0].strip("[]") for word in words if word.strip("[").startswith("--")
    }
    known = known_options(list(words))
    assert known is not None, f"kaiweb has no command {words[0]}"
    assert {option.partition("|")[0] for option in options} <= known, "unknown option"


def check_make(words: Sequence[str]) -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert words[0] in targets, f"make has no target {words[0]}"


def known_options(words: list[str]) -> set[str] | None:
    """Return the options of a command and of its subcommand; None for one that does not exist."""
    name = words[0]
    if name == "healthy":
        return set()
    if name in NAMES and "--cluster" not in words:
        return terminal_options(terminal.commands[name], words[1:])
    if name not in get_commands():
        return None
    return management_options(parser_of(name), words[1:])


@cache
def parser_of(name: str) -> ArgumentParser:
    command = load_command_class(str(get_commands()[name]), name)
    return command.create_parser("kaiweb", name)


def terminal_options(command: click.Command, words: list[str]) -> set[str]:
    options = {option for parameter in command.params for option in parameter.opts}
    if isinstance(command, click.Group) and words and words[0] in command.commands:
        options |= terminal_options(command.commands[words[0]], words[1:])
    return options


def management_options(parser: ArgumentParser, words: list[str]) -> set[str] | None:
    """Return the options of a parser and of the subcommands that the first word names, which may be `a|b`."""
    options = set(parser._option_string_actions)
    groups = parser._subparsers._group_actions if parser._subparsers else []
    for group in groups:
        choices: dict[str, ArgumentParser] = getattr(group, "choices", None) or {}
        for name in words[0].split("|") if words else []:
            if name not in choices:
                return None
            options |= set(choices[name]._option_string_actions)
    return options
