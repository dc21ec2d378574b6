"""From a saved cycle to a test: without names, reduced, as a scenario, and with a changed quota."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from kube.resources import NODES, PODGROUPS, PODS, QUEUES
from scheduler.core.cluster.constraints import TaskConstraints
from scheduler.core.cluster.inputs import PlainRequest
from scheduler.load.archive import archive_of, body_of, read_objects, write_body
from scheduler.settings.shard import ShardSettings
from scheduler.tools.conformance.play import play
from scheduler.tools.conformance.runner import judge_scenario
from scheduler.tools.replay import replay
from scheduler.tools.smallest import smallest
from scheduler.tools.snapshots.anonymise import anonymise
from scheduler.tools.snapshots.names import UnknownWorkloadError, pod_group_named
from scheduler.tools.snapshots.outcome import Outcome, outcome_in
from scheduler.tools.snapshots.scenario import NotAScenarioError, scenario_of
from scheduler.tools.snapshots.shrink import shrink
from tests.fakes.gateway import FakeGateway
from tests.scheduler.load.objects import NOW, group, node, pod, queue

ONE_GPU = {"nvidia.com/gpu": "1"}


def gpus(quota: float) -> dict[str, Any]:
    free = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    return {"gpu": {**free, "quota": quota}, "cpu": free, "memory": free}


def busy_cluster() -> FakeGateway:
    """Queue `acme-lab` borrows a GPU of n0 that `acme-shop` claims; everything else does not matter."""
    rack = {"acme.example/rack": "cellar", "kubernetes.io/hostname": "n0"}
    gateway = FakeGateway()
    gateway.seed(NODES, node("n0", gpus=2, labels=rack), node("n1", gpus=0), node("n2", gpus=0))
    gateway.seed(
        QUEUES,
        queue("acme", resources=gpus(2)),
        queue("acme-lab", resources=gpus(1), parentQueue="acme", displayName="The secret lab"),
        queue("acme-shop", resources=gpus(1), parentQueue="acme"),
        queue("other", resources=gpus(0)),
    )
    gateway.seed(PODGROUPS, group("train", queue="acme-lab", minMember=1))
    for name in ("train-0", "train-1"):
        gateway.seed(PODS, pod(name, group="train", node="n0", phase="Running", requests=ONE_GPU))
    gateway.seed(PODGROUPS, group("serve", queue="acme-shop", minMember=1))
    gateway.seed(PODS, pod("serve-0", group="serve", requests=ONE_GPU))
    for number in range(6):
        name = f"side-{number}"
        gateway.seed(PODGROUPS, group(name, queue="other", minMember=1))
        gateway.seed(
            PODS,
            pod(
                f"{name}-0",
                group=name,
                node=f"n{1 + number % 2}",
                phase="Running",
                requests={"cpu": "1"},
            ),
        )
    return gateway


@pytest.fixture
def body() -> dict[str, Any]:
    settings = ShardSettings()
    return body_of(read_objects(busy_cluster(), settings.params), settings, NOW)


@pytest.fixture
def file(tmp_path: Path, body: dict[str, Any]) -> Path:
    path = tmp_path / "cycle.zip"
    write_body(path, body)
    return path


def names(body: Any, kind: str) -> list[str]:
    return sorted(item["metadata"]["name"] for item in body["rawObjects"][kind])


CLAIM = Outcome(bound=0, nominated=1, evicted=0, victims=1, code="WaitingForVictims")


def test_the_outcome_of_a_workload_counts_what_the_cycle_did(body: dict[str, Any]):
    assert outcome_in(body, "ns/serve") == CLAIM
    train = outcome_in(body, "ns/train")
    assert train is not None
    assert (train.evicted, train.as_text()) == (1, "1 evicted")
    assert outcome_in(body, "ns/none") is None


def test_a_snapshot_is_reduced_to_what_the_workload_needs(body: dict[str, Any]):
    small, outcome = shrink(body, "ns/serve")

    assert outcome == CLAIM
    assert outcome_in(small, "ns/serve") == CLAIM
    assert names(small, "podGroups") == ["serve", "train"]
    assert names(small, "pods") == ["serve-0", "train-0", "train-1"]
    assert names(small, "nodes") == ["n0"]
    assert names(small, "queues") == ["acme", "acme-lab", "acme-shop"]


def test_a_workload_is_named_by_its_pod_group_its_owner_or_a_pod(body: dict[str, Any]):
    job = {"apiVersion": "batch/v1", "kind": "Job", "uid": "u"}
    groups = {
        item["metadata"]["name"]: item["metadata"] for item in body["rawObjects"]["podGroups"]
    }
    groups["train"]["ownerReferences"] = [{**job, "name": "learn"}]
    for number in (0, 1):
        groups[f"side-{number}"]["ownerReferences"] = [{**job, "name": "aside"}]
    view = archive_of(body).view

    for name in ("ns/train", "ns/learn", "ns/train-1"):
        assert pod_group_named(view, name) == "ns/train"
    with pytest.raises(UnknownWorkloadError, match="'ns/aside' has 2 pod groups: expected one of"):
        pod_group_named(view, "ns/aside")


def test_an_unknown_workload_names_those_of_the_snapshot(body: dict[str, Any]):
    with pytest.raises(UnknownWorkloadError, match="expected one of ns/serve, ns/side-0"):
        pod_group_named(archive_of(body).view, "ns/none")


def test_the_search_for_the_smallest_stops_after_its_trials():
    tried = []

    def is_long(text: str) -> bool:
        tried.append(text)
        return len(text) >= 3

    assert smallest("abcdefgh", is_long, lambda text: [text[1:]], max_trials=2) == "cdefgh"
    assert len(tried) == 2
    assert smallest("abcdefgh", is_long, lambda text: [text[1:]]) == "fgh"


def test_a_reduced_cycle_becomes_a_scenario_that_the_runner_judges(body: dict[str, Any]):
    small, _outcome = shrink(body, "ns/serve")

    document = scenario_of(replay(archive_of(small)), "shop-claims", "The shop claims its quota")

    assert judge_scenario(document, play(document)).mismatches == ()
    assert document["expected"] == {
        "jobs": {"ns.serve": {"status": "pipelined"}},
        "limits": {"max_evictions": 1},
    }


def test_what_a_scenario_cannot_state_is_refused(body: dict[str, Any]):
    taint = {"taints": [{"key": "gone", "value": "", "effect": "NoSchedule"}]}
    body["rawObjects"]["nodes"][0]["spec"] = taint

    with pytest.raises(NotAScenarioError, match="the reduced snapshot is the test then"):
        scenario_of(replay(archive_of(body)), "taint", "x")


def test_without_names_the_cycle_decides_the_same(body: dict[str, Any]):
    renamed = anonymise(body)

    text = json.dumps(renamed)
    for secret in ("acme", "secret", "-lab", "shop", "train-", "serve", "side", "cellar", '"n0"'):
        assert secret not in text
    before, after = (
        [type(decision) for decision in replay(archive_of(it)).decisions] for it in (body, renamed)
    )
    assert after == before
    assert "kai.scheduler" in text or "kai-scheduler" in text


def test_equal_names_stay_equal_and_keys_of_others_are_replaced(body: dict[str, Any]):
    body["rawObjects"]["topologies"] = [
        {"metadata": {"name": "t"}, "spec": {"levels": [{"nodeLabel": "acme.example/rack"}]}}
    ]

    objects = anonymise(body)["rawObjects"]

    renamed_node = objects["nodes"][0]
    labels = renamed_node["metadata"]["labels"]
    level = objects["topologies"][0]["spec"]["levels"][0]["nodeLabel"]
    assert level in labels
    assert labels["kubernetes.io/hostname"] == renamed_node["metadata"]["name"]
    claimant = next(it for it in objects["podGroups"] if it["spec"]["minMember"] == 1)
    assert claimant["spec"]["queue"] in {it["metadata"]["name"] for it in objects["queues"]}


def test_free_text_and_what_containers_run_is_removed(body: dict[str, Any]):
    container = body["rawObjects"]["pods"][0]["spec"]["containers"][0]
    container |= {"image": "registry/acme", "env": [{"name": "KEY", "value": "s3cret"}]}
    body["rawObjects"]["pods"][0]["metadata"]["annotations"]["acme.example/owner"] = "Eve"

    text = json.dumps(anonymise(body))

    for secret in ("registry", "s3cret", "Eve", "acme", "The secret lab"):
        assert secret not in text


def test_the_commands_write_files_and_name_what_they_hold(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    small, scenario = tmp_path / "small.zip", tmp_path / "shop-claims.json"

    call_command("snapshot", "shrink", "ns/serve", filename=file, output=small, scenario=scenario)
    call_command("snapshot", "anonymise", filename=small, output=tmp_path / "hidden.zip")
    call_command("snapshot", "explain", filename=small)

    output = capsys.readouterr().out
    assert "ns/serve: 1 promised a place, 1 evicted for it, waits: WaitingForVictims" in output
    assert f"{small}: 3 pods, 1 nodes, 3 queues, 2 podGroups" in output
    assert json.loads(scenario.read_text())["id"] == "own/shop-claims"


def test_a_workload_that_is_not_there_is_an_error_of_the_command(file: Path, tmp_path: Path):
    with pytest.raises(
        CommandError, match="workload 'ns/none' is not in the snapshot: expected one of"
    ):
        call_command("snapshot", "shrink", "ns/none", filename=file, output=tmp_path / "x.zip")


def test_a_quota_is_changed_offline(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    question = tmp_path / "question.yaml"
    question.write_text("cycles: 2\nqueues: [{name: acme-lab, edit: {quota: {gpu: 2}}}]\n")

    call_command("simulate", "edit", str(question), snapshot=file)

    answer = json.loads(capsys.readouterr().out)
    assert answer["totals"]["evictedPods"] == 0
    assert [row["workload"] for row in answer["blocked"]] == ["ns/serve"]


def test_anonymised_past_requests_select_no_nodes_and_equal_ones_add_up() -> None:
    selections = [TaskConstraints(node_selector=(("acme.example/rack", r),)) for r in ("a", "b")]
    past = {PlainRequest(500.0, 1.0, 1, selection): 2.0 for selection in selections}
    settings = ShardSettings()
    body = body_of(read_objects(busy_cluster(), settings.params), settings, NOW, past)
    hidden = anonymise(body)
    assert "acme" not in json.dumps(hidden)
    assert archive_of(hidden).past_requests == {PlainRequest(500.0, 1.0, 1): 4.0}
