"""Sample 67: a ConfigMap sets priorities per kind, from the moment the Config names it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest

from kube.quantity import parse_quantity
from kube.resources import CONFIGS, QUEUES
from tests.samples.lanes import MANIFESTS
from tests.samples.place import Json, Place
from tests.samples.singletons import CONFIG, apply_file, config_given_back, get, wait_for

pytestmark = pytest.mark.timeout(300)

Choice = tuple[str, str | None]


def choice(place: Place, owner: str) -> Choice:
    """Return priority class and preemptibility of the group of an owner or of its one pod."""
    group = place.pod_group_of(owner)
    return group["spec"]["priorityClassName"], group["spec"].get("preemptibility")


def choices(place: Place, when: str) -> dict[str, Choice]:
    """Apply the workloads and return what the pod grouper chose for each."""
    place.apply_text((MANIFESTS / "67-workloads.yaml").read_text().format(when=when))
    (replica,) = place.wait(
        lambda: [p for p in place.bound() if p["metadata"]["name"].startswith(f"kiosk-{when}-")],
        "the replica",
    )
    return {
        "press": choice(place, f"press-{when}"),
        "edition": choice(place, f"edition-{when}"),
        "kiosk": choice(place, replica["metadata"]["name"]),
        "archive": choice(place, f"archive-{when}"),
    }


@pytest.fixture(scope="module")
def before(place: Place) -> Iterator[dict[str, Choice]]:
    """What holds while nobody has named the ConfigMap."""
    # It lives in the components' namespace, not in the place.
    apply_file(place.lane, MANIFESTS / "67-kind-defaults.yaml")
    yield choices(place, "before")
    place.stack.kubectl("delete", "-f", str(MANIFESTS / "67-kind-defaults.yaml"))


@pytest.fixture(scope="module")
def named(place: Place, before: dict[str, Choice]) -> Iterator[Place]:
    """The Config names the ConfigMap."""
    assert before
    with config_given_back(place.lane):
        apply_file(place.lane, MANIFESTS / "67-config.yaml")
        wait_for(place.lane, CONFIGS, CONFIG, "Ready", "True")
        yield place


@pytest.fixture(scope="module")
def after(named: Place) -> dict[str, Choice]:
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


def test_the_config_keeps_the_words_of_others(named: Place, after: dict[str, Choice]) -> None:
    spec: Json = get(named.lane, CONFIGS, CONFIG)["spec"]
    assert spec["global"]["schedulerName"] == "kai-scheduler"
    assert spec["podGrouper"]["args"]["defaultPrioritiesConfigMapName"] == "s67-kinds"
    # The queue the workloads are in is counted by the same process, which was started anew.
    status = named.get(QUEUES, "s67-press").get("status") or {}
    assert parse_quantity(status["requested"]["cpu"]) >= Fraction("0.4")
    assert after
