"""Every command that a page shows exists: each `kaiweb` command with its options, each target of make, and a test for each script."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest
from django.core.management import get_commands, load_command_class

from kaiweb.terminal.program import NAMES, terminal

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs" / "guides").glob("*.md")),
    *sorted((ROOT / "docs" / "operations").glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
#: Page with `sh` blocks -> the test that runs them as they stand.
RUN_BY = {
    "README.md": "tests/integration/test_shown_commands.py",
    "docs/start.md": "tests/integration/test_shown_commands.py",
    "docs/guides/ci.md": "tests/integration/test_shown_commands.py",
    "docs/guides/replay-a-cycle.md": "tests/integration/test_shown_commands.py",
    "docs/guides/submit-a-workload.md": "tests/integration/test_shown_commands.py",
    "docs/guides/terminal.md": "tests/integration/test_shown_commands.py",
    "docs/guides/migrate-from-kai.md": "tests/deploy/test_migration.py",
    "docs/operations/backup.md": "tests/integration/test_backup_commands.py",
}
SPAN = re.compile(r"`((?:kaiweb|make) [^`]+)`")
LINE = re.compile(r"(?:\$ |    )(?:\w+=\S+ )*((?:[\w./]+/)?(?:kaiweb|make) .+)")
FENCED = re.compile(r"^ *```(?:sh|console)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
WORD = re.compile(r"[a-z][a-z-]*")
#: Prose that begins like a command.
NO_COMMANDS = frozenset({"kaiweb is"})


def commands(page: Path) -> Iterator[list[str]]:
    """Yield the words of each command of kaiweb or make on a page, without comments and explanations."""
    text = page.read_text()
    lines = [line for block in FENCED.findall(text) for line in block.splitlines()]
    lines = [f"    {line.removeprefix('$ ')}" for line in lines] + text.splitlines()
    shown = [match[1] for line in lines if (match := LINE.match(line))] + SPAN.findall(text)
    for command in shown:
        program, *words = re.split(r"\s{2,}| #|[;|&>]{1,2} |, kaiweb", command)[0].split()
        yield [program.rpartition("/")[2], *words]


SHOWN = sorted(
    {
        (page.relative_to(ROOT).as_posix(), " ".join(words))
        for page in PAGES
        for words in commands(page)
    }
)
OF_KAIWEB = [
    (page, line) for page, line in SHOWN if line.startswith("kaiweb ") and line not in NO_COMMANDS
]
OF_MAKE = [(page, line) for page, line in SHOWN if line.startswith("make ")]


def test_the_pages_are_read():
    assert ("README.md", "kaiweb why default/next") in OF_KAIWEB
    assert ("docs/guides/terminal.md", "kaiweb top --once") in OF_KAIWEB
    assert ("CONTRIBUTING.md", "make test-unit") in OF_MAKE


@pytest.mark.parametrize(("page", "line"), OF_MAKE)
def test_a_target_of_make_exists(page: str, line: str):
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)

    assert line.split()[1] in targets, f"{page}: {line}"


@pytest.mark.parametrize(("page", "line"), OF_KAIWEB)
def test_a_command_of_kaiweb_exists_with_its_options(page: str, line: str):
    words = line.split()[1:]
    options = {
        word.partition("=")[0].strip("[]") for word in words if word.strip("[").startswith("--")
    }

    known = known_options(words)

    assert known is not None, f"{page}: no such command: {line}"
    assert {option.partition("|")[0] for option in options} <= known, f"{page}: {line}"


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
        for name in words[0].split("|") if words else []:
            if name not in (group.choices or ()):
                return None
            options |= set(group.choices[name]._option_string_actions)  # type: ignore[index,call-overload]
    return options


def test_each_script_is_run_by_a_test():
    pages = {page.relative_to(ROOT).as_posix() for page in PAGES if "```sh\n" in page.read_text()}

    assert pages == set(RUN_BY)
    for page, test in RUN_BY.items():
        assert Path(page).name in (ROOT / test).read_text(), f"{test} does not run {page}"
