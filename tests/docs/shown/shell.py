"""Read shell code: its simple commands, with line numbers, here-documents and functions."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from tests.docs.shown.pages import Code

HERE_DOCUMENT = re.compile(r"<<\s*'?(\w+)'?")
COMMENT = re.compile(r"(^|\s)#.*$")
PLACEHOLDER = re.compile(r"<(\w+)>")
SUBSTITUTION = re.compile(r"\$\(([^()]+)\)")
FUNCTION = re.compile(r"(\w+)\(\) \{ (.*); \}$")
ASSIGNMENT = re.compile(r"\w+=")
#: A line of a summary: a command with alternatives (`a|b`), then columns with what it does.
SYNOPSIS = re.compile(r"(?:\w+=\S+ )*(?:kaiweb|make) ")
AFTER_SYNOPSIS = re.compile(r"\s{2,}| #|[;&>]{1,2} |, kaiweb")
#: Words of the shell before the program of a command, and words that stand alone.
PREFIXES = frozenset({"if", "then", "while", "do", "else", "!", "exec", "sudo", "$"})
LONE = frozenset({"done", "fi", "esac", "{", "}"})
OPERATORS = ";&|<>()\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One simple command of a page.

    Attributes
    ----------
    words : program and arguments, unquoted; without assignments, redirections and comments
    stdin : its here-document
    """

    page: str
    line: int
    words: tuple[str, ...]
    stdin: str = ""

    @property
    def program(self) -> str:
        return self.words[0].rpartition("/")[2]

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {' '.join(self.words)}"


def commands(code: Code, definitions: str = "") -> Iterator[Command]:
    """Yield the commands of a block or a span of shell code; `definitions` are functions of its page."""
    matches = [FUNCTION.match(line) for line in definitions.splitlines()]
    functions = {match[1]: match[2] for match in matches if match}
    is_summary = code.language in {"indented", "span"}
    block = _without_columns(code.text) if is_summary else code.text
    for line, text, stdin in _logical_lines(block):
        if is_summary and SYNOPSIS.match(text):
            lists = [_without_assignments(text.split())]
        elif FUNCTION.match(text):
            continue
        else:
            lists = list(_simple_commands(text))
        for words in lists:
            if words[0] in functions:
                words = _expanded(functions[words[0]], words[1:])
            yield Command(page=code.page, line=code.line + line, words=tuple(words), stdin=stdin)


def _without_columns(text: str) -> str:
    """Return the block without what a summary says beside its commands, which may hold an apostrophe."""
    return "\n".join(
        AFTER_SYNOPSIS.split(line)[0] if SYNOPSIS.match(line) else line
        for line in text.splitlines()
    )


def _expanded(body: str, arguments: list[str]) -> list[str]:
    """Return the words of a function of one command, called with arguments."""
    words = shlex.split(body)
    place = words.index("$@")
    return [*words[:place], *arguments, *words[place + 1 :]]


def _logical_lines(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield offset, text and here-document of each line; continued lines and open quotes are joined."""
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        first = number
        line = _plain(lines[number])
        number += 1
        while number < len(lines) and (line.endswith("\\") or _is_open(line)):
            line = f"{line.removesuffix(chr(92))}\n{_plain(lines[number])}"
            if "'" not in line:
                line = line.replace("\n", " ")
            number += 1
        stdin = ""
        if here := HERE_DOCUMENT.search(line):
            end = lines.index(here[1], number)
            stdin = "\n".join(lines[number:end])
            number = end + 1
            line = HERE_DOCUMENT.sub("", line)
        if line.strip():
            yield first, line.strip(), stdin


def _plain(line: str) -> str:
    line = COMMENT.sub("", line.removeprefix("$ "))
    return PLACEHOLDER.sub(lambda match: match[1].upper(), line).rstrip()


def _is_open(line: str) -> bool:
    try:
        shlex.split(line)
    except ValueError:
        return True
    return False


def _simple_commands(text: str) -> Iterator[list[str]]:
    """Yield the words of the commands between the operators, and of those in `$(...)`."""
    for inner in SUBSTITUTION.findall(text):
        yield from _simple_commands(inner)
    lexer = shlex.shlex(
        SUBSTITUTION.sub("SUBSTITUTED", text), posix=True, punctuation_chars=OPERATORS
    )
    lexer.whitespace_split = True
    lexer.whitespace = " \t"
    lexer.commenters = ""
    words: list[str] = []
    is_target = False
    for token in lexer:
        if is_target:
            is_target = False
        elif token in {">", ">>", "<"}:
            is_target = True
        elif set(token) <= set(OPERATORS) and token.strip():
            yield from _checked(words)
            words = []
        elif token.strip():
            words.append(token)
    yield from _checked(words)


def _checked(words: list[str]) -> Iterator[list[str]]:
    words = _without_assignments(words)
    if words and words[0] not in LONE:
        yield words


def _without_assignments(words: list[str]) -> list[str]:
    while words and (ASSIGNMENT.match(words[0]) or words[0] in PREFIXES):
        words = words[1:]
    return words
