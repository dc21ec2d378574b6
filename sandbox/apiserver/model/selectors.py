"""Label and field selectors: text or LabelSelector objects compiled to one predicate.

A selector is compiled once per request or watch and then applied to every object and event, so each
requirement is a closure over its key and values. The empty selector compiles to None, and callers then
skip the check altogether.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from sandbox.apiserver.model.errors import bad_request

Labels = Mapping[str, str]
Predicate = Callable[[Labels], bool]

_EVERY_KIND = ("metadata.name", "metadata.namespace")
_SET = re.compile(r"^\s*(?P<key>[^\s!=<>,()]+)\s+(?P<op>in|notin)\s*\((?P<values>[^()]*)\)\s*$")
_EQUAL = re.compile(
    r"^\s*(?P<key>[^\s!=<>,()]+)\s*(?P<op>==|!=|=|<|>)\s*(?P<value>[^\s,()=!]*)\s*$"
)
_EXISTS = re.compile(r"^\s*(?P<no>!?)\s*(?P<key>[^\s!=<>,()]+)\s*$")


def label_selector(text: str) -> Predicate | None:
    """Compile `a=b,c!=d,e in (x,y),f notin (z),g,!h`; None selects everything."""
    if not text.strip():
        return None
    return _all_of([_requirement(part, text) for part in _split(text)])


def object_selector(selector: Mapping[str, Any] | None) -> Predicate | None:
    """Compile a LabelSelector object (`matchLabels`, `matchExpressions`); empty selects everything."""
    if not selector:
        return None
    checks = [_one_of(key, {value}) for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or []:
        key, values = expression["key"], set(expression.get("values") or ())
        match expression["operator"]:
            case "In":
                checks.append(_one_of(key, values))
            case "NotIn":
                checks.append(_none_of(key, values))
            case "Exists":
                checks.append(_present(key))
            case "DoesNotExist":
                checks.append(_absent(key))
            case other:
                raise bad_request(f'"{other}" is not a valid label selector operator')
    return _all_of(checks) if checks else None


def field_selector(
    text: str, selectable: Collection[str], *, custom: bool = False
) -> Predicate | None:
    """Compile `metadata.name=a,status.phase!=Running`; fields outside `known` are refused."""
    if not text.strip():
        return None
    checks: list[Predicate] = []
    for part in text.split(","):
        key, operator, value = _field_term(part, text)
        if key not in selectable:
            raise bad_request(_unknown_field(key, selectable, custom))
        checks.append(_field_differs(key, value) if operator == "!=" else _field_is(key, value))
    return _all_of(checks)


def _unknown_field(key: str, selectable: Collection[str], custom: bool) -> str:
    if custom or len(selectable) > len(_EVERY_KIND):
        return f"field label not supported: {key}"
    names = ", ".join(f'"{name}"' for name in _EVERY_KIND)
    return f'"{key}" is not a known field selector: only {names}'


def required_field(text: str, field: str) -> str | None:
    """Return the value that a field selector requires of `field`; None if it requires none."""
    for part in text.split(",") if text else ():
        key, operator, value = _field_term(part, text)
        if key == field and operator != "!=":
            return value
    return None


def _field_term(part: str, text: str) -> tuple[str, str, str]:
    for operator in ("!=", "==", "="):
        key, separator, value = part.partition(operator)
        if separator:
            return key.strip(), operator, value.strip()
    raise bad_request(f'invalid selector: "{text}"; can\'t understand "{part}"')


def _split(text: str) -> list[str]:
    """Split at commas outside parentheses."""
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    parts.append(text[start:])
    return parts


def _requirement(part: str, text: str) -> Predicate:
    if term := _SET.match(part):
        values = {value.strip() for value in term["values"].split(",")}
        return _one_of(term["key"], values) if term["op"] == "in" else _none_of(term["key"], values)
    if term := _EQUAL.match(part):
        key, value = term["key"], term["value"]
        if term["op"] in ("<", ">"):
            return _compares(key, term["op"], value, text)
        return _none_of(key, {value}) if term["op"] == "!=" else _one_of(key, {value})
    if term := _EXISTS.match(part):
        return _absent(term["key"]) if term["no"] else _present(term["key"])
    raise bad_request(f"unable to parse requirement: found '{part.strip()}' in \"{text}\"")


def _all_of(checks: Sequence[Predicate]) -> Predicate:
    if len(checks) == 1:
        return checks[0]
    return lambda labels: all(check(labels) for check in checks)


def _one_of(key: str, values: Collection[str]) -> Predicate:
    if len(values) == 1:
        (only,) = values
        return lambda labels: labels.get(key) == only
    return lambda labels: labels.get(key) in values


def _none_of(key: str, values: Collection[str]) -> Predicate:
    return lambda labels: labels.get(key) not in values


def _present(key: str) -> Predicate:
    return lambda labels: key in labels


def _absent(key: str) -> Predicate:
    return lambda labels: key not in labels


def _field_is(key: str, value: str) -> Predicate:
    return lambda fields: fields.get(key, "") == value


def _field_differs(key: str, value: str) -> Predicate:
    return lambda fields: fields.get(key, "") != value


def _compares(key: str, operator: str, value: str, text: str) -> Predicate:
    try:
        bound = int(value)
    except ValueError:
        raise bad_request(
            f"\"{value}\" in \"{text}\": for 'Gt', 'Lt' operators, the value must be an integer"
        ) from None

    def check(labels: Labels) -> bool:
        try:
            number = int(labels[key])
        except (KeyError, ValueError):
            return False
        return number > bound if operator == ">" else number < bound

    return check
