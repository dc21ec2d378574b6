"""Pods of kinds that a Karta describes: one set per component that has a pod template."""

from __future__ import annotations

import re
from collections.abc import Sequence

from queues.grouping.base import Json, kind_of, name_of
from queues.grouping.karta.jq import first_value
from queues.grouping.karta.karta import Component, component_scale, fitting_definitions
from queues.grouping.offline.synthesis.pods import capped, pod_of

_METADATA_KEY = re.compile(r'\.metadata\.(labels|annotations)\["([^"]+)"\]')


def described_pods(workload: Json, kartas: Sequence[Json]) -> list[Json] | None:
    """Return the pods of a described workload, or None if no definition fits."""
    definitions = fitting_definitions(kartas, kind_of(workload))
    if not definitions:
        return None
    pods = []
    for part in definitions[0].components.values():
        template = first_value(part.template_path, workload) if part.template_path else None
        if not isinstance(template, dict):
            continue
        for index in range(capped(component_scale(definitions[0], part.name, workload) or 1)):
            pod = pod_of(f"{name_of(workload)}-{part.name}-{index}", workload, template)
            _mark(pod, part)
            pods.append(pod)
    return pods


def _mark(pod: Json, part: Component) -> None:
    """Set the label or annotation that the controller of the kind would set, so that the selector matches."""
    match = _METADATA_KEY.fullmatch(part.selector_path)
    if match and part.selector_value is not None:
        pod["metadata"][match[1]].setdefault(match[2], part.selector_value)
