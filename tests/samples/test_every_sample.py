"""Every sample manifest beside the checkout has an equivalent of our own, and a test that applies it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.samples.installations import MANIFESTS
from tests.shared import shared_path

TESTS = MANIFESTS.parent.parent
GROUPING_TEST = TESTS / "queues" / "live_cluster" / "test_grouping.py"
#: Third-party kinds that need no scheduler: number of a sample -> own manifest below tests/queues/manifests.
GROUPED = {
    "40": "kubeflow.yaml",
    "41": "kubeflow.yaml",
    "42": "kubeflow.yaml",
    "43": "kubeflow.yaml",
    "44": "ray.yaml",
    "45": "sets.yaml",
    "46": "sets.yaml",
    "47": "serving.yaml",
    "48": "serving.yaml",
    "49": "serving.yaml",
    "50": "others.yaml",
    "51": "grove.yaml",
    "52": "karta.yaml",
    "53": "dynamo.yaml",
}


def equivalents(number: str) -> list[Path]:
    """Return our manifests for a sample."""
    if number in GROUPED:
        return [TESTS / "queues" / "manifests" / GROUPED[number]]
    return sorted(MANIFESTS.glob(f"{number}-*.yaml"))


def users(manifest: Path) -> list[Path]:
    """Return the files of tests that name a manifest."""
    candidates = (
        [GROUPING_TEST] if manifest.parent != MANIFESTS else sorted(TESTS.glob("samples/*.py"))
    )
    return [file for file in candidates if f'"{manifest.name}"' in file.read_text()]


@pytest.mark.shared
def test_every_sample_has_an_equivalent() -> None:
    files = sorted(shared_path("spec", "sample-manifests").glob("*.yaml"))
    assert files
    without_equivalent = [
        file.name
        for file in files
        if not any(manifest.is_file() for manifest in equivalents(file.name.partition("-")[0]))
    ]
    assert without_equivalent == []


@pytest.mark.parametrize("number", sorted({*GROUPED, *(m.name[:2] for m in MANIFESTS.iterdir())}))
def test_every_equivalent_is_applied_by_a_test(number: str) -> None:
    untested = [manifest.name for manifest in equivalents(number) if not users(manifest)]
    assert untested == []
