"""Sample 60: a tree of subgroups made by hand; nothing starts before the whole minimum is there."""

from __future__ import annotations

import json

import pytest

from kube.resources import PODGROUPS
from tests.samples.sample import Sample

pytestmark = pytest.mark.timeout(240)
STRINGS = ("violins", "cellos")


@pytest.fixture(scope="module")
def concert(sample: Sample) -> Sample:
    sample.apply("60-podgroup-tree.yaml")
    return sample


def test_nothing_starts_before_the_tree_has_its_minimum(concert: Sample) -> None:
    concert.wait(lambda: len(concert.pods_of("violins")) == 2, "the pods of violins")
    concert.wait(lambda: len(concert.pods_of("cellos")) == 2, "the pods of cellos")
    text = "Waiting for 1 pods for SubGroup drum, currently 0 exist"
    concert.wait(
        lambda: any(text in e[2] for e in concert.events_of("PodGroup", "orchestra")),
        f"an event that says {text!r}",
    )
    concert.stays(lambda: not concert.bound(*STRINGS), "no player has a node")


def test_nothing_starts_when_there_is_room_for_a_part_only(concert: Sample) -> None:
    concert.apply("60-drum.yaml")

    def says_over_limit() -> bool:
        events = concert.events_of("PodGroup", "orchestra")
        return any("quota has reached the allowable limit of GPUs" in e[2] for e in events)

    concert.wait(says_over_limit, "the limit as the reason")
    concert.stays(lambda: not concert.bound(*STRINGS, "drum"), "no player has a node")


def test_all_start_together_once_it_has(concert: Sample) -> None:
    wider = json.dumps({"spec": {"resources": {"gpu": {"limit": 13}}}})
    concert.kubectl("patch", "queue", "s60-concert", "--type=merge", "-p", wider)
    concert.wait_bound(*STRINGS, "drum", count=5)


def test_the_players_of_the_branch_share_a_rack(concert: Sample) -> None:
    pods = [pod["metadata"]["name"] for pod in concert.bound(*STRINGS)]
    racks = {concert.node_of(name)["metadata"]["labels"]["place.test/rack"] for name in pods}
    assert len(pods) == 4
    assert len(racks) == 1


def test_the_grouper_leaves_the_pod_group_alone(concert: Sample) -> None:
    assert {n for n in concert.all(PODGROUPS) if not n.startswith("pg-probe-")} == {"orchestra"}
    for pod in concert.bound(*STRINGS, "drum"):
        assert pod["metadata"]["annotations"]["pod-group-name"] == "orchestra"


def test_the_group_outlives_its_work_until_somebody_deletes_it(concert: Sample) -> None:
    concert.kubectl("delete", "jobs", *STRINGS)
    concert.kubectl("delete", "pod", "drum")
    concert.wait(lambda: not concert.bound(*STRINGS, "drum"), "the end of the players")
    assert "ownerReferences" not in concert.get(PODGROUPS, "orchestra")["metadata"]
    concert.kubectl("delete", "podgroup", "orchestra")
    assert not concert.exists(PODGROUPS, "orchestra")
