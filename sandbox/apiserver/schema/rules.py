"""CEL: the validation rules of custom kinds and the match conditions of webhooks.

celpy is imported at first use, because most servers never need it. Programs are compiled once per
text, when a CRD or webhook configuration arrives, so a bad rule is refused there and not at the first
object. Transition rules (those that name `oldSelf`) run only where an old value can be matched: by
property, or by key in lists of type map.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

import orjson

from sandbox.apiserver.model import errors
from sandbox.apiserver.model.entry import Obj
from sandbox.apiserver.model.errors import Cause
from sandbox.apiserver.model.shapes import Shape

_OLD_SELF = re.compile(r"\boldSelf\b")
#: A variable at the head of a path, with the fields that are read of it.
_PATHS = re.compile(r"(?<![\w.'\"])([A-Za-z_]\w*)((?:\.[A-Za-z_]\w*\b(?!\s*\())*)")
_DECISIONS = 4096
_MISSING: Final = object()
_BLOCKING = frozenset(
    {"FieldValueRequired", "FieldValueTypeInvalid", "FieldValueTooLong", "FieldValueTooMany"}
)
_UNCHECKED = Cause(
    "<nil>",
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)


class RuleError(ValueError):
    """An expression that does not compile, or fails when it is evaluated."""


class Rules:
    """Compiles CEL once and evaluates it against plain JSON values."""

    def __init__(self) -> None:
        self._programs: dict[str, Any] = {}
        self._paths: dict[str, list[tuple[str, list[str]]]] = {}
        self._decisions: dict[tuple[str, bytes], bool] = {}
        self._with_rules: dict[int, bool] = {}
        self._kept: list[Shape] = []

    def compile(self, text: str) -> None:
        """Compile an expression.

        Raises
        ------
        RuleError : the text is no CEL expression
        """
        if text in self._programs:
            return
        celpy = self._celpy
        try:
            self._programs[text] = self._environment.program(self._environment.compile(text))
        except (celpy.CELParseError, celpy.CELEvalError) as error:
            raise RuleError(f"compilation failed: {text!r}: {error.args[0]}") from error

    def evaluate(self, text: str, variables: dict[str, Any]) -> Any:
        """Evaluate an expression over values that `to_cel` made.

        Raises
        ------
        RuleError : it does not compile, or its evaluation fails
        """
        self.compile(text)
        try:
            result = self._programs[text].evaluate(variables)
        except self._celpy.CELEvalError as error:
            raise RuleError(f"evaluation of {text!r} failed: {error.args[0]}") from error
        if isinstance(result, self._celpy.CELEvalError):
            raise RuleError(f"evaluation of {text!r} failed: {result.args[0]}")
        return result

    def decide(self, text: str, values: dict[str, Any]) -> bool:
        """Tell whether an expression holds for plain JSON values; decided once for all that it reads alike.

        A burst of pods asks the same of every webhook again and again, and celpy takes a millisecond.

        Raises
        ------
        RuleError : it does not compile, or its evaluation fails
        """
        self.compile(text)
        paths = self._paths_of(text, values)
        key = (text, orjson.dumps([_read(values[name], fields) for name, fields in paths]))
        known = self._decisions.get(key)
        if known is None:
            names = {name for name, _ in paths}
            known = bool(self.evaluate(text, {name: self.to_cel(values[name]) for name in names}))
            self._decisions[key] = known
            if len(self._decisions) > _DECISIONS:
                del self._decisions[next(iter(self._decisions))]
        return known

    def _paths_of(self, text: str, values: dict[str, Any]) -> list[tuple[str, list[str]]]:
        found = self._paths.get(text)
        if found is None:
            found = self._paths[text] = [
                (name, fields.split(".")[1:])
                for name, fields in _PATHS.findall(text)
                if name in values
            ]
        return found

    def to_cel(self, value: Any, shape: Shape | None = None) -> Any:
        """Convert a JSON value; numbers follow the schema, since CEL keeps 1 and 1.0 apart."""
        types = self._values
        if isinstance(value, dict):
            return types.Map(
                {
                    types.String(key): self.to_cel(item, shape.child(key) if shape else None)
                    for key, item in value.items()
                }
            )
        if isinstance(value, list):
            items = shape.items if shape else None
            return types.List([self.to_cel(item, items) for item in value])
        if isinstance(value, bool) or value is None:
            return self._celpy.json_to_cel(value)
        if shape is not None and shape.kind == "number" and isinstance(value, (int, float)):
            return types.Double(value)
        if shape is not None and shape.kind == "integer" and isinstance(value, float):
            return types.Int(int(value))
        return types.scalar(value)

    def check_shape(self, shape: Shape, path: str) -> list[Cause]:
        """Compile every rule of a custom kind's schema, say which do not compile."""
        causes = []
        for index, rule in enumerate(shape.rules):
            where = f"{path}.x-kubernetes-validations[{index}].rule"
            try:
                self.compile(rule["rule"])
            except RuleError as error:
                causes.append(errors.invalid_value(where, rule["rule"], str(error)))
        for suffix, child in _children(shape):
            causes += self.check_shape(child, path + suffix)
        return causes

    def check(self, new: Any, old: Any, shape: Shape, wrong: list[Cause]) -> list[Cause]:
        """Evaluate the rules of a whole object against its new and old state.

        `wrong` is what the schema found; where a value is missing or of another type no rule runs.
        """
        if not self._has_rules(shape):
            return []
        if any(cause.reason in _BLOCKING for cause in wrong):
            return [_UNCHECKED]
        return list(self._walk(new, _MISSING if old is None else old, shape, ""))

    def _walk(self, new: Any, old: Any, shape: Shape, path: str) -> Iterator[Cause]:
        if not self._has_rules(shape) or new is None:
            return
        if shape.rules:
            yield from self._apply(new, old, shape, path)
        if isinstance(new, dict):
            for key, item in new.items():
                child = shape.child(key)
                if child is not None:
                    before = old.get(key, _MISSING) if isinstance(old, dict) else _MISSING
                    yield from self._walk(item, before, child, f"{path}.{key}".lstrip("."))
        elif isinstance(new, list) and shape.items is not None:
            for index, item in enumerate(new):
                before = _partner(item, old, shape)
                yield from self._walk(item, before, shape.items, f"{path}[{index}]")

    def _apply(self, new: Any, old: Any, shape: Shape, path: str) -> Iterator[Cause]:
        variables = {"self": self.to_cel(new, shape)}
        if old is not _MISSING:
            variables["oldSelf"] = self.to_cel(old, shape)
        for rule in shape.rules:
            text = rule["rule"]
            if old is _MISSING and _OLD_SELF.search(text):
                continue
            try:
                passed = bool(self.evaluate(text, variables))
                message = "" if passed else self._message(rule, variables)
            except RuleError as error:
                passed, message = False, str(error)
            if not passed:
                yield _cause(rule, message, new, path)

    def _message(self, rule: Obj, variables: dict[str, Any]) -> str:
        if "messageExpression" in rule:
            try:
                return str(self.evaluate(rule["messageExpression"], variables))
            except RuleError:
                pass  # the real server, too, falls back on the plain message
        return str(rule.get("message") or f"failed rule: {rule['rule']}")

    def _has_rules(self, shape: Shape) -> bool:
        found = self._with_rules.get(id(shape))
        if found is None:
            found = bool(shape.rules) or any(
                self._has_rules(child) for _, child in _children(shape)
            )
            self._with_rules[id(shape)] = found
            self._kept.append(shape)  # an id is only unique while its object lives
        return found

    @cached_property
    def _celpy(self) -> Any:
        import celpy

        return celpy

    @cached_property
    def _values(self) -> Any:
        from sandbox.apiserver.schema import cel_values

        return cel_values

    @cached_property
    def _environment(self) -> Any:
        return self._celpy.Environment()


def _read(value: Any, fields: list[str]) -> list[Any]:
    """Return what stands at the end of a path, and how far the path leads: missing is not the same as null."""
    for depth, name in enumerate(fields):
        if not isinstance(value, dict) or name not in value:
            return [depth, value if not isinstance(value, dict) else None]
        value = value[name]
    return [len(fields), value]


def _children(shape: Shape) -> Iterator[tuple[str, Shape]]:
    for name, child in shape.properties.items():
        yield f".properties[{name}]", child
    if shape.extra is not None:
        yield ".additionalProperties", shape.extra
    if shape.items is not None:
        yield ".items", shape.items


def _partner(item: Any, old: Any, shape: Shape) -> Any:
    if shape.list_type != "map" or not isinstance(old, list) or not isinstance(item, dict):
        return _MISSING
    for candidate in old:
        if all(candidate.get(key) == item.get(key) for key in shape.list_keys):
            return candidate
    return _MISSING


def _cause(rule: Obj, message: str, value: Any, path: str) -> Cause:
    where = path + rule.get("fieldPath", "")
    match rule.get("reason", "FieldValueInvalid"):
        case "FieldValueForbidden":
            return errors.field_forbidden(where, message)
        case "FieldValueRequired":
            return errors.required(where, message)
        case "FieldValueDuplicate":
            return errors.duplicate(where, value)
        case _:
            if isinstance(value, (dict, list)):
                return Cause(where, "FieldValueInvalid", f"Invalid value: {message}")
            return errors.invalid_value(where, value, message)
