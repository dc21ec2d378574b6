"""CEL selectors of device classes and claims, evaluated over the devices of the slices.

The core knows no CEL; it gets the set of pairs that match. Programs are compiled once per text, and
verdicts are remembered per slice version, because slices rarely change. A selector is a program that any
user may write, so its length, depth and steps are bounded; one that needs more matches nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import celpy
from celpy import celtypes
from celpy.adapter import json_to_cel
from celpy.celparser import CELParseError
from celpy.evaluation import CELEvalError, Evaluator

from kube.objects.devices import Device, ResourceSlice
from scheduler.load.cel_functions import FUNCTIONS, quantity, semver

log = logging.getLogger(__name__)
Match = tuple[str, str, str, str]

#: As Kubernetes bounds them.
MAX_SELECTOR_LENGTH = 10 * 1024
#: A selector that compares a dozen attributes takes some hundred; a thousand take about 10 ms.
MAX_STEPS = 5_000
MAX_NESTING = 50


class SelectorOverrunError(Exception):
    """A selector took more steps than it may."""


def matching_devices(texts: Iterable[str], slices: Sequence[ResourceSlice]) -> frozenset[Match]:
    """Return (selector text, driver, pool, device) of all pairs that match.

    A selector that does not compile, or fails on a device, does not match it.
    """
    matches: list[Match] = []
    for text in texts:
        for item in slices:
            matches.extend(
                _matches(text, item.metadata.uid, item.metadata.resource_version, _Box(item))
            )
    return frozenset(matches)


class _Box:
    """Passes a slice through the cache without being part of its key."""

    __slots__ = ("slice",)

    def __init__(self, item: ResourceSlice) -> None:
        self.slice = item

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Box)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=8192)
def _matches(text: str, uid: str, version: str, box: _Box) -> tuple[Match, ...]:
    program = _program(text)
    if program is None:
        return ()
    spec = box.slice.spec
    try:
        return tuple(
            (text, spec.driver, spec.pool.name, device.name)
            for device in spec.devices
            if _holds(program, spec.driver, device)
        )
    except (SelectorOverrunError, RecursionError) as error:
        log.warning("device selector %.60r matches nothing: %s", text, error)
        return ()


@dataclass(slots=True)
class _Meter:
    steps: int = 0


class _BoundedEvaluator(Evaluator):
    """Counts the nodes it visits, those of nested loops too, and raises at the bound."""

    def __init__(self, ast: Any, activation: Any, meter: _Meter) -> None:
        super().__init__(ast=ast, activation=activation)
        self.meter = meter

    def sub_evaluator(self, ast: Any) -> _BoundedEvaluator:
        return _BoundedEvaluator(ast, self.activation, self.meter)

    def visit_children(self, tree: Any) -> list[Any]:
        self.meter.steps += 1
        if self.meter.steps > MAX_STEPS:
            raise SelectorOverrunError(f"more than {MAX_STEPS} steps")
        return super().visit_children(tree)


class _BoundedRunner(celpy.InterpretedRunner):
    def evaluate(self, context: Any) -> Any:
        return _BoundedEvaluator(self.ast, self.new_activation(), _Meter()).evaluate(context)


@lru_cache(maxsize=512)
def _program(text: str) -> Any:
    if len(text) > MAX_SELECTOR_LENGTH or _nesting(text) > MAX_NESTING:
        log.warning("device selector %.60r is too long or nested too deeply", text)
        return None
    try:
        environment = celpy.Environment(runner_class=_BoundedRunner)
        return environment.program(environment.compile(text), functions=FUNCTIONS)
    except (CELParseError, CELEvalError, RecursionError) as error:
        log.warning("device selector %.60r does not compile: %.300s", text, error)
        return None


def _nesting(text: str) -> int:
    deepest = depth = 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    return deepest


def _holds(program: Any, driver: str, device: Device) -> bool:
    try:
        return bool(program.evaluate({"device": _device_value(driver, device)}))
    except (CELEvalError, ValueError):
        return False


class _Domains(celtypes.MapType):
    """Attributes or capacities by domain; a domain that the device does not have is empty."""

    def __getitem__(self, domain: Any) -> Any:
        return super().get(domain, celtypes.MapType())


def _device_value(driver: str, device: Device) -> celtypes.Value:
    """Return the variable `device` as selectors see it: attributes by domain, then name."""
    content = device.content
    value = {
        "driver": celtypes.StringType(driver),
        "allowMultipleAllocations": celtypes.BoolType(content.allow_multiple_allocations),
        "attributes": _by_domain(
            driver, {name: _attribute(typed) for name, typed in content.attributes.items()}
        ),
        "capacity": _by_domain(
            driver, {name: quantity(amount.value) for name, amount in content.capacity.items()}
        ),
    }
    return celtypes.MapType({celtypes.StringType(name): part for name, part in value.items()})


def _by_domain(driver: str, values: Mapping[str, Any]) -> _Domains:
    domains: dict[str, celtypes.MapType] = {}
    for name, value in values.items():
        domain, _, short = name.rpartition("/")
        inner = domains.setdefault(domain or driver, celtypes.MapType())
        inner[celtypes.StringType(short)] = value
    return _Domains({celtypes.StringType(name): inner for name, inner in domains.items()})


def _attribute(typed: Mapping[str, Any]) -> Any:
    kind, value = next(iter(typed.items()), ("", None))
    return semver(value) if kind == "version" else json_to_cel(value)
