r"""Find the words of a jq program that are refused: those for the host, the clock, or endless loops.

The program is tokenised as jq does, as far as needed: strings are skipped, but `\(...)` inside them is code;
`.env` and `{env: ...}` name a field and are allowed. Comments are refused, because a quote in a comment would confuse the tokeniser.
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
    """Yield every word that is not a field name, including those in string interpolations."""
    open_brackets: list[str] = []
    position = 0
    while (match := _TOKEN.search(program, position)) is not None:
        position = match.end()
        if match["quote"]:
            position = _after_string(program, position, open_brackets)
        elif match["open"]:
            open_brackets.append(match["open"])
        elif match["close"]:
            if open_brackets and open_brackets.pop() == _INTERPOLATION:
                position = _after_string(program, position, open_brackets)
        elif match["word"] and not _is_key(program, match.start(), open_brackets):
            yield match["word"]


def _is_key(program: str, position: int, open_brackets: list[str]) -> bool:
    """Return whether the word at this position is a key of an object construction."""
    before = program[:position].rstrip()[-1:]
    return open_brackets[-1:] == ["{"] and before in {"{", ","} and program[position] != "$"


def _after_string(program: str, position: int, open_brackets: list[str]) -> int:
    """Return the end of the string that began before `position`, or the start of an interpolation in it."""
    while position < len(program):
        if program[position] == '"':
            return position + 1
        if program.startswith(_INTERPOLATION, position):
            open_brackets.append(_INTERPOLATION)
            return position + len(_INTERPOLATION)
        position += 2 if program[position] == "\\" else 1
    return position
