"""The small part of jq that Karta definitions use: paths, pipes, alternatives, comparisons, select, length.

An expression yields zero or more values. Anything beyond this part is refused when the definition is checked,
so an unsupported definition is skipped with a reason and never half understood.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

Filter = Callable[[Any], Iterator[Any]]

_TOKEN = re.compile(
    r"""\s*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<number>-?\d+(?:\.\d+)?)|(?P<op>//|==|!=|\||\(|\)|\[|\]|\?|\.)"""
    r"""|(?P<word>[A-Za-z_][A-Za-z0-9_]*))"""
)
_CONSTANTS = {"true": True, "false": False, "null": None}
MAX_LENGTH = 1000


class JqError(ValueError):
    """The expression is not in the supported part of jq."""


def evaluate(expression: str, document: Any) -> list[Any]:
    """Return every value that the expression yields for the document."""
    return list(_Parser(expression).parse()(document))


def first_value(expression: str, document: Any) -> Any:
    """Return the first value that is not null, or None."""
    return next((v for v in evaluate(expression, document) if v is not None), None)


class _Parser:
    """Recursive descent: pipe > alternative > comparison > term with its path steps."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise JqError(f"expression is longer than {MAX_LENGTH} characters")
        self._text = text
        self._tokens = self._split(text)
        self._at = 0

    def parse(self) -> Filter:
        result = self._pipe()
        if self._at < len(self._tokens):
            raise self._unsupported()
        return result

    def _split(self, text: str) -> list[tuple[str, str]]:
        tokens, position = [], 0
        stripped = text.rstrip()
        while position < len(stripped):
            match = _TOKEN.match(stripped, position)
            if match is None or match.lastgroup is None:
                raise JqError(f"unsupported jq expression {text!r} at character {position}")
            tokens.append((match.lastgroup, match[match.lastgroup]))
            position = match.end()
        return tokens

    def _unsupported(self) -> JqError:
        found = self._tokens[self._at][1] if self._at < len(self._tokens) else "the end"
        return JqError(f"unsupported jq expression {self._text!r} near {found!r}")

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("end", "")

    def _take(self, operator: str) -> bool:
        if self._peek() == ("op", operator):
            self._at += 1
            return True
        return False

    def _expect(self, operator: str) -> None:
        if not self._take(operator):
            raise self._unsupported()

    def _pipe(self) -> Filter:
        result = self._alternative()
        while self._take("|"):
            result = _chain(result, self._alternative())
        return result

    def _alternative(self) -> Filter:
        result = self._comparison()
        while self._take("//"):
            result = _otherwise(result, self._comparison())
        return result

    def _comparison(self) -> Filter:
        left = self._term()
        for operator in ("==", "!="):
            if self._take(operator):
                return _compare(left, self._term(), equal=operator == "==")
        return left

    def _term(self) -> Filter:
        kind, text = self._peek()
        if kind == "op" and text == ".":
            return self._steps(self._start_of_path())
        self._at += 1
        if kind == "string":
            return _constant(json.loads(text))
        if kind == "number":
            return _constant(float(text) if "." in text else int(text))
        if kind == "word" and text in _CONSTANTS:
            return _constant(_CONSTANTS[text])
        if kind == "word" and text in _FUNCTIONS:
            return _FUNCTIONS[text]
        if kind == "word" and text == "select":
            self._expect("(")
            condition = self._pipe()
            self._expect(")")
            return _select(condition)
        if kind == "op" and text == "(":
            inner = self._pipe()
            self._expect(")")
            return self._steps(inner)
        self._at -= 1
        raise self._unsupported()

    def _start_of_path(self) -> Filter:
        self._expect(".")
        kind, text = self._peek()
        if kind == "word":
            self._at += 1
            return _field(text)
        if kind == "string":
            self._at += 1
            return _field(json.loads(text))
        if (kind, text) == ("op", "."):
            raise self._unsupported()
        return _identity

    def _steps(self, result: Filter) -> Filter:
        while True:
            if self._take("?"):
                continue
            if self._take("["):
                result = _chain(result, self._index())
            elif self._peek() == ("op", "."):
                result = _chain(result, self._start_of_path())
            else:
                return result

    def _index(self) -> Filter:
        if self._take("]"):
            return _each
        kind, text = self._peek()
        self._at += 1
        if kind == "string":
            step = _field(json.loads(text))
        elif kind == "number" and "." not in text:
            step = _element(int(text))
        else:
            self._at -= 1
            raise self._unsupported()
        self._expect("]")
        return step


def _identity(value: Any) -> Iterator[Any]:
    yield value


def _constant(constant: Any) -> Filter:
    def run(_: Any) -> Iterator[Any]:
        yield constant

    return run


def _field(name: str) -> Filter:
    def run(value: Any) -> Iterator[Any]:
        yield value.get(name) if isinstance(value, dict) else None

    return run


def _element(index: int) -> Filter:
    def run(value: Any) -> Iterator[Any]:
        within = isinstance(value, list) and -len(value) <= index < len(value)
        yield value[index] if within else None

    return run


def _each(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()


def _chain(first: Filter, then: Filter) -> Filter:
    def run(value: Any) -> Iterator[Any]:
        for inner in first(value):
            yield from then(inner)

    return run


def _otherwise(first: Filter, fallback: Filter) -> Filter:
    def run(value: Any) -> Iterator[Any]:
        found = [v for v in first(value) if v is not None and v is not False]
        yield from found or fallback(value)

    return run


def _compare(left: Filter, right: Filter, *, equal: bool) -> Filter:
    def run(value: Any) -> Iterator[Any]:
        for a in left(value):
            for b in right(value):
                yield (a == b) is equal

    return run


def _select(condition: Filter) -> Filter:
    def run(value: Any) -> Iterator[Any]:
        if any(v is not None and v is not False for v in condition(value)):
            yield value

    return run


def _length(value: Any) -> Iterator[Any]:
    yield len(value) if isinstance(value, list | dict | str) else 0


def _keys(value: Any) -> Iterator[Any]:
    yield sorted(value) if isinstance(value, dict) else list(range(len(value or ())))


def _not(value: Any) -> Iterator[Any]:
    yield value is None or value is False


_FUNCTIONS: dict[str, Filter] = {"length": _length, "keys": _keys, "not": _not}
