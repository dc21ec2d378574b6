"""Which jq programs are refused before they run: those that name a word of the host, of time, or of endless loops.

The program is read as jq reads it, as far as that takes: text between quotes says nothing, but `\\(...)` inside it is
program again; `.env` and `{env: ...}` name a field, not the word. Comments are refused: they may swallow a quote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

LOOPS = {"def", "while", "until", "repeat", "recurse", "recurse_down", "range"}
HOST = {
    "env", "$ENV", "input", "inputs", "input_filename", "input_line_number", "import", "include", "modulemeta",
    "get_search_list", "debug", "stderr", "halt", "halt_error",
}  # fmt: skip
TIME = {"now", "localtime", "strflocaltime"}
REFUSED = {"#"} | LOOPS | HOST | TIME

_TOKEN = re.compile(
    r'(?P<quote>")|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<field>\.[A-Za-z_][A-Za-z0-9_]*)'
    r"|(?P<word>\$?[A-Za-z_][A-Za-z0-9_]*|\#)"
)
_INTERPOLATION = "\\("


def refused_words(program: str) -> list[str]:
    """Return the words of a program that are not allowed, in order, each once."""
    return list(dict.fromkeys(word for word in _words(program) if word in REFUSED))


def _words(program: str) -> Iterator[str]:
    """Yield every word that is not a field name, also those of programs inside text."""
    inside: list[str] = []  # the brackets that are open
    at = 0
    while (match := _TOKEN.search(program, at)) is not None:
        at = match.end()
        if match["quote"]:
            at = _after_text(program, at, inside)
        elif match["open"]:
            inside.append(match["open"])
        elif match["close"]:
            if inside and inside.pop() == _INTERPOLATION:
                at = _after_text(program, at, inside)
        elif match["word"] and not _is_key(program, match.start(), inside):
            yield match["word"]


def _is_key(program: str, at: int, inside: list[str]) -> bool:
    """Say whether the word at this place names a field of an object that is being built."""
    before = program[:at].rstrip()[-1:]
    return inside[-1:] == ["{"] and before in {"{", ","} and program[at] != "$"


def _after_text(program: str, at: int, inside: list[str]) -> int:
    """Return where the text that began before `at` ends, or where a program inside it begins."""
    while at < len(program):
        if program[at] == '"':
            return at + 1
        if program.startswith(_INTERPOLATION, at):
            inside.append(_INTERPOLATION)
            return at + len(_INTERPOLATION)
        at += 2 if program[at] == "\\" else 1
    return at
