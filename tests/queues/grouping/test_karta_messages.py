"""What a pod is told whose kind is described by a Karta that cannot be followed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from queues.grouping.base import Settings
from queues.grouping.manifests import read_manifests
from queues.grouping.offline import group_objects

KARTA = Path(__file__).parent.parent / "manifests" / "karta.yaml"


def _without_scale(karta: dict[str, Any], solver: dict[str, Any]) -> None:
    del karta["spec"]["structureDefinition"]["childComponents"][1]["scaleDefinition"]
    del solver


def _scaled_to_none(karta: dict[str, Any], solver: dict[str, Any]) -> None:
    del karta
    solver["spec"]["helper"]["replicas"] = 0


@pytest.mark.parametrize("spoil", [_without_scale, _scaled_to_none])
def test_a_component_in_a_gang_must_have_a_scale(spoil: Any) -> None:
    objects = read_manifests([KARTA])
    spoil(objects[0], objects[1])
    report = group_objects(objects, Settings())
    assert list(report.pod_groups) == []
    assert {outcome.error for outcome in report.pods.values()} == {
        "component helper must expose a replica scale definition"
    }
