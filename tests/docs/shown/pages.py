"""The pages of the documentation and their code: fenced blocks, indented blocks, inline code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).resolve().parents[3]
#: README files of folders are for readers of the code beside them.
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs" / "guides").glob("*.md")),
    *sorted((ROOT / "docs" / "operations").glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
#: Language of an indented block.
INDENTED = "indented"
FENCE = re.compile(r" *```(\S*)\s*$")
SPAN = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A block or a span: where it begins and what it says, without its indent.

    Attributes
    ----------
    language : of a fence ("" if it names none), or `indented`
    line : of the first line of code
    """

    page: str
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: Path) -> Iterator[Code]:
    """Yield the code blocks of a page, in order."""
    return blocks_of(page.read_text(), page.relative_to(ROOT).as_posix())


def blocks_of(text: str, name: str) -> Iterator[Code]:
    """Yield the code blocks of the text of the page of that name, in order."""
    for start, language, lines in _blocks(text.splitlines()):
        code = dedent("\n".join(lines))
        yield Code(page=name, line=start, language=language, text=code)


def spans(page: Path) -> Iterator[Code]:
    """Yield the inline code of a page; code that a line break divides is joined."""
    name = page.relative_to(ROOT).as_posix()
    lines = page.read_text().splitlines()
    for start, language, code in _blocks(list(lines)):
        first = start - 1 if language == INDENTED else start - 2
        last = start - 1 + len(code) + (language != INDENTED)
        lines[first:last] = [""] * (last - first)
    text = "\n".join(lines)
    # Inline code ends with its paragraph.
    for paragraph in re.finditer(r"(?:.+\n?)+", text):
        for match in SPAN.finditer(paragraph[0]):
            line = text.count("\n", 0, paragraph.start() + match.start()) + 1
            yield Code(page=name, line=line, language="span", text=" ".join(match[1].split()))


def _blocks(lines: list[str]) -> Iterator[tuple[int, str, list[str]]]:
    """Yield number of the first line, language and lines of each block."""
    number = 0
    while number < len(lines):
        first = number
        if fence := FENCE.match(lines[number]):
            number += 1
            while not FENCE.match(lines[number]):
                number += 1
            yield first + 2, fence[1], lines[first + 1 : number]
            number += 1
        elif _begins_indented(lines, number):
            while number < len(lines) and lines[number].startswith("    "):
                number += 1
            yield first + 1, INDENTED, lines[first:number]
        else:
            number += 1


def _begins_indented(lines: list[str], number: int) -> bool:
    return lines[number].startswith("    ") and (number == 0 or not lines[number - 1].strip())
