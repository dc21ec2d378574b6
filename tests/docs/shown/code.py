"""Which code of the pages is a command, and all commands and requests that they show."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from tests.docs.shown.pages import INDENTED, PAGES, Code, blocks, spans
from tests.docs.shown.programs import PROGRAMS
from tests.docs.shown.rest_commands import CALL
from tests.docs.shown.shell import FUNCTION, Command, commands

SHELL = frozenset({"sh", "console", "bash", "shell"})
DATA = frozenset({"yaml", "json", "python", "mermaid", "toml"})
#: Lines `NAME=value` for an environment file.
ENVIRONMENT = re.compile(r"(?:[A-Z_]+=.*(?:\n|$))+")
#: Drawings: the page and how the first line begins.
DRAWINGS = {"docs/architecture.md": "Kubernetes API"}
FIRST_WORD = re.compile(r"(?:\$ )?(?:\w+=\S* )*([\w./-]+)(?: |$)")
#: Prose that begins like a command.
PROSE = frozenset({"kaiweb is"})


def is_shell(code: Code) -> bool:
    if code.language in SHELL:
        return True
    first = code.text.lstrip().partition("\n")[0]
    word = FIRST_WORD.match(first)
    if FUNCTION.match(first) or (word and word[1] in {"api", "export", "for", "cd"}):
        return code.language != "span"
    is_program = word is not None and word[1].rpartition("/")[2] in PROGRAMS
    if code.language == "span":
        return is_program and len(code.text.split()) > 1 and code.text not in PROSE
    return is_program


def is_data(code: Code) -> bool:
    if code.language in DATA or ENVIRONMENT.fullmatch(code.text) or CALL.match(code.text):
        return True
    if code.text.lstrip().startswith(DRAWINGS.get(code.page, "\0")):
        return True
    try:
        return isinstance(yaml.safe_load(code.text), dict | list)
    except yaml.YAMLError:
        return False


def shown_commands() -> Iterator[Command]:
    for page in PAGES:
        # A function of one block is used in the next ones of its page.
        shell = [code for code in blocks(page) if is_shell(code)]
        functions = "\n".join(
            line for code in shell for line in code.text.splitlines() if FUNCTION.match(line)
        )
        for code in shell:
            yield from commands(code, functions)
        for code in spans(page):
            if is_shell(code):
                yield from commands(code)


def shown_calls() -> Iterator[tuple[str, str, str]]:
    """Yield place, method and target of each request that a page writes out."""
    for page in PAGES:
        for code in [*blocks(page), *spans(page)]:
            if code.language in {"", INDENTED, "span"}:
                for number, line in enumerate(code.text.splitlines()):
                    if call := CALL.match(line):
                        yield f"{code.page}:{code.line + number}", call[1], call[2]


SHOWN = list(shown_commands())
CALLS = list(shown_calls())
