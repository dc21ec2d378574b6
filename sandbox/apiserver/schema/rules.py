"""CEL: the validation rules of custom kinds and the match conditions of webhooks.

celpy is imported at first use, because it is slow to import and many servers never need it. Each
expression is compiled once, when its CRD or webhook configuration is written, so that a bad rule is refused
then and not at the first object. Transition rules (those that use `oldSelf`) run only where an old value
can be matched: by property, or by key in lists of type map.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import orjson

from sandbox.apiserver.model import errors
from sandbox.apiserver.model.entry import Obj
from sandbox.apiserver.model.errors import Cause
from sandbox.apiserver.model.shapes import Shape

_OLD_SELF = re.compile(r"\boldSelf\b")
#: A variable and the path of fields that an expression reads from it.
_PATHS = re.compile(r"(?<![\w.'\"])([A-Za-z_]\w*)((?:\.[A-Za-z_]\w*\b(?!\s*\())*)")
#: Expressions that read only whether a key or a field is there.
_MEMBERS = re.compile(r"'([^']*)' in ([A-Za-z_]\w*)((?:\.[A-Za-z_]\w*\b)*)")
_PRESENT = re.compile(r"\bhas\(([A-Za-z_]\w*)((?:\.[A-Za-z_]\w*\b)+)\)")
_DECISIONS = 4096
#: The results of rules are cached for values of at most this many bytes of JSON.
_CACHED_BYTES = 2048
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
    """An expression does not compile, or its evaluation failed."""


class Rules:
    """Compiles CEL once and evaluates it against plain JSON values."""

    def __init__(self) -> None:
        #: Text of a CEL rule -> compiled program.
        self._programs: dict[str, Any] = {}
        self._reads: dict[str, list[_Read]] = {}
        #: (Rule, encoded object) -> result, oldest first.
        self._decisions: dict[tuple[str, bytes], bool] = {}
        #: (Id of the shape, encoded new and old value) -> the rules that failed, each with its message, oldest first.
        self._failures: dict[tuple[int, bytes], list[tuple[Obj, str]]] = {}
        self._with_rules: dict[int, bool] = {}
        self._shapes_by_id: list[Shape] = []

    def compile(self, text: str) -> None:
        """Compile an expression.

        Raises
        ------
        RuleError : the text is not a CEL expression
        """
        if text in self._programs:
            return
        celpy = self._celpy
        try:
            self._programs[text] = self._environment.program(self._environment.compile(text))
        except (celpy.CELParseError, celpy.CELEvalError) as error:
            raise RuleError(f"compilation failed: {text!r}: {error.args[0]}") from error

    def evaluate(self, text: str, variables: dict[str, Any]) -> Any:
        """Evaluate an expression over values from `to_cel`.

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
        """Return whether an expression is true for plain JSON values.

        The result is cached by the values of the fields that the expression reads, because celpy takes
        a millisecond and the pods of a burst differ in few of those fields.

        Raises
        ------
        RuleError : it does not compile, or its evaluation fails
        """
        self.compile(text)
        reads = self._reads_of(text, values)
        key = (text, orjson.dumps([read.of(values) for read in reads]))
        decision = self._decisions.get(key)
        if decision is None:
            names = {read.name for read in reads}
            variables = {name: self.to_cel(values[name]) for name in names}
            decision = bool(self.evaluate(text, variables))
            _keep(self._decisions, key, decision)
        return decision

    def _reads_of(self, text: str, values: dict[str, Any]) -> list[_Read]:
        reads = self._reads.get(text)
        if reads is None:
            present = [
                _Read(name, (*_fields(path), key), is_presence=True)
                for key, name, path in _MEMBERS.findall(text)
            ]
            present += [
                _Read(name, _fields(path), is_presence=True)
                for name, path in _PRESENT.findall(text)
            ]
            rest = _PATHS.findall(_PRESENT.sub(" ", _MEMBERS.sub(" ", text)))
            plain = [_Read(name, _fields(path)) for name, path in rest]
            reads = [read for read in (*present, *plain) if read.name in values]
            self._reads[text] = reads
        return reads

    def to_cel(self, value: Any, shape: Shape | None = None) -> Any:
        """Convert a JSON value; the schema decides between int and double, which CEL distinguishes."""
        types = self._values
        if isinstance(value, dict):
            return types.Map(
                {
                    types.String(key): self.to_cel(child, shape.child(key) if shape else None)
                    for key, child in value.items()
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
        """Compile every rule of a custom kind's schema; return a cause for each that does not compile."""
        causes = []
        for index, rule in enumerate(shape.rules):
            rule_path = f"{path}.x-kubernetes-validations[{index}].rule"
            try:
                self.compile(rule["rule"])
            except RuleError as error:
                causes.append(errors.invalid_value(rule_path, rule["rule"], str(error)))
        for suffix, child in _children(shape):
            causes += self.check_shape(child, path + suffix)
        return causes

    def check(self, new: Any, old: Any, shape: Shape, wrong: list[Cause]) -> list[Cause]:
        """Evaluate the rules of a whole object against its new and old state.

        `wrong` holds the causes that the schema gave. If a value is missing or of the wrong type, no
        rule is evaluated.
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
            for key, value in new.items():
                child = shape.child(key)
                if child is not None:
                    before = old.get(key, _MISSING) if isinstance(old, dict) else _MISSING
                    yield from self._walk(value, before, child, f"{path}.{key}".lstrip("."))
        elif isinstance(new, list) and shape.items is not None:
            for index, item in enumerate(new):
                before = _old_item(item, old, shape)
                yield from self._walk(item, before, shape.items, f"{path}[{index}]")

    def _apply(self, new: Any, old: Any, shape: Shape, path: str) -> Iterator[Cause]:
        """Yield a cause for each rule of a shape that fails.

        The failures are cached by the values, because celpy takes a millisecond, and most writes of an
        object (each write of its status) leave the values that have rules as they are.
        """
        encoded = orjson.dumps([new] if old is _MISSING else [new, old])
        key = (id(shape), encoded)
        failures = self._failures.get(key)
        if failures is None:
            failures = list(self._failing(new, old, shape))
            if len(encoded) <= _CACHED_BYTES:
                _keep(self._failures, key, failures)
        for rule, message in failures:
            yield _cause(rule, message, new, path)

    def _failing(self, new: Any, old: Any, shape: Shape) -> Iterator[tuple[Obj, str]]:
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
                yield rule, message

    def _message(self, rule: Obj, variables: dict[str, Any]) -> str:
        if "messageExpression" in rule:
            try:
                return str(self.evaluate(rule["messageExpression"], variables))
            except RuleError:
                pass  # the real server uses the plain message then, too
        return str(rule.get("message") or f"failed rule: {rule['rule']}")

    def _has_rules(self, shape: Shape) -> bool:
        has_rules = self._with_rules.get(id(shape))
        if has_rules is None:
            has_rules = bool(shape.rules) or any(
                self._has_rules(child) for _, child in _children(shape)
            )
            self._with_rules[id(shape)] = has_rules
            self._shapes_by_id.append(shape)  # an id is unique only while its object exists
        return has_rules

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


def _keep(cache: dict[Any, Any], key: Any, result: Any) -> None:
    """Add a result to a cache that drops the oldest above `_DECISIONS`."""
    cache[key] = result
    if len(cache) > _DECISIONS:
        del cache[next(iter(cache))]


@dataclass(frozen=True, slots=True)
class _Read:
    """What an expression reads from a variable: the value at a path of fields, or only whether there is one."""

    name: str
    fields: tuple[str, ...]
    is_presence: bool = False

    def of(self, values: dict[str, Any]) -> list[Any]:
        """Return how many fields of the path exist and the value there; so a missing field differs from null."""
        value = values[self.name]
        for depth, name in enumerate(self.fields):
            if not isinstance(value, dict) or name not in value:
                return [depth, value if not isinstance(value, dict) else None]
            value = value[name]
        return [len(self.fields), None if self.is_presence else value]


def _fields(path: str) -> tuple[str, ...]:
    return tuple(path.split(".")[1:])


def _children(shape: Shape) -> Iterator[tuple[str, Shape]]:
    for name, child in shape.properties.items():
        yield f".properties[{name}]", child
    if shape.extra is not None:
        yield ".additionalProperties", shape.extra
    if shape.items is not None:
        yield ".items", shape.items


def _old_item(item: Any, old: Any, shape: Shape) -> Any:
    """Return the item of the old list that has the same keys."""
    if shape.list_type != "map" or not isinstance(old, list) or not isinstance(item, dict):
        return _MISSING
    for candidate in old:
        if all(candidate.get(key) == item.get(key) for key in shape.list_keys):
            return candidate
    return _MISSING


def _cause(rule: Obj, message: str, value: Any, path: str) -> Cause:
    field_path = path + rule.get("fieldPath", "")
    match rule.get("reason", "FieldValueInvalid"):
        case "FieldValueForbidden":
            return errors.field_forbidden(field_path, message)
        case "FieldValueRequired":
            return errors.required(field_path, message)
        case "FieldValueDuplicate":
            return errors.duplicate(field_path, value)
        case _:
            if isinstance(value, (dict, list)):
                return Cause(field_path, "FieldValueInvalid", f"Invalid value: {message}")
            return errors.invalid_value(field_path, value, message)
