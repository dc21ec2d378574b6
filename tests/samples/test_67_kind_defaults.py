"""Sample 67: a ConfigMap sets priorities per kind, from the moment the Config names it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest

from kube.resources import CONFIGS, QUEUES
from kube.values.quantity import parse_quantity
from tests.samples.cluster_config import CONFIG, apply_file, config_restored, get, wait_for
from tests.samples.installations import MANIFESTS
from tests.samples.sample import Json, Sample

pytestmark = pytest.mark.timeout(300)

Choice = tuple[str, str | None]


def choice(sample: Sample, owner: str) -> Choice:
    """Return priority class and preemptibility of the group of an owner or of its one pod."""
    group = sample.pod_group_of(owner)
    return group["spec"]["priorityClassName"], group["spec"].get("preemptibility")


def choices(sample: Sample, when: str) -> dict[str, Choice]:
    """Apply the workloads and return what the pod grouper chose for each."""
    sample.apply_text((MANIFESTS / "67-workloads.yaml").read_text().format(when=when))
    (replica,) = sample.wait(
        lambda: [p for p in sample.bound() if p["metadata"]["name"].startswith(f"kiosk-{when}-")],
        "the replica",
    )
    return {
        "press": choice(sample, f"press-{when}"),
        "edition": choice(sample, f"edition-{when}"),
        "kiosk": choice(sample, replica["metadata"]["name"]),
        "archive": choice(sample, f"archive-{when}"),
    }


@pytest.fixture(scope="module")
def before(sample: Sample) -> Iterator[dict[str, Choice]]:
    """What holds while the Config does not name the ConfigMap."""
    # It lives in the components' namespace, not in the namespace of the sample.
    apply_file(sample.installation, MANIFESTS / "67-kind-defaults.yaml")
    yield choices(sample, "before")
    sample.stack.kubectl("delete", "-f", str(MANIFESTS / "67-kind-defaults.yaml"))


@pytest.fixture(scope="module")
def named(sample: Sample, before: dict[str, Choice]) -> Iterator[Sample]:
    """The Config names the ConfigMap."""
    assert before
    with config_restored(sample.installation):
        apply_file(sample.installation, MANIFESTS / "67-config.yaml")
        wait_for(sample.installation, CONFIGS, CONFIG, "Ready", "True")
        yield sample


@pytest.fixture(scope="module")
def after(named: Sample) -> dict[str, Choice]:
    return choices(named, "after")


def test_without_the_config_each_kind_has_its_built_in_default(before: dict[str, Choice]) -> None:
    assert {name: chosen[0] for name, chosen in before.items()} == {
        "press": "train",
        "edition": "inference",
        "kiosk": "inference",
        "archive": "train",
    }


def test_jobs_without_a_priority_become_what_the_map_says(after: dict[str, Choice]) -> None:
    assert after["press"][0] == "build-preemptible"


def test_a_label_beats_the_map(after: dict[str, Choice]) -> None:
    assert after["edition"][0] == "inference"


def test_the_map_beats_the_built_in_default_of_deployments(after: dict[str, Choice]) -> None:
    assert after["kiosk"] == ("train", "preemptible")


def test_a_priority_class_that_does_not_exist_is_ignored(after: dict[str, Choice]) -> None:
    assert after["archive"][0] == "train"


def test_the_config_keeps_fields_of_other_managers(named: Sample, after: dict[str, Choice]) -> None:
    spec: Json = get(named.installation, CONFIGS, CONFIG)["spec"]
    assert spec["global"]["schedulerName"] == "kai-scheduler"
    assert spec["podGrouper"]["args"]["defaultPrioritiesConfigMapName"] == "s67-kinds"
    # The queue the workloads are in is counted by the same process, which was started anew.
    status = named.get(QUEUES, "s67-press").get("status") or {}
    assert parse_quantity(status["requested"]["cpu"]) >= Fraction("0.4")
    assert after
