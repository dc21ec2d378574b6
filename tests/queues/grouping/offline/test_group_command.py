"""`kaiweb group`: what it prints, which files it refuses and with which words, what it says where no pod is foretold."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

MANIFESTS = Path(__file__).parents[2] / "manifests"
POD = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {schedulerName: kai-scheduler}}"


@pytest.fixture
def printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that groups a text and returns what is printed."""

    def run(text: str, *options: str) -> str:
        file = tmp_path / "given.yaml"
        file.write_text(text)
        call_command("group", str(file), *options)
        return capsys.readouterr().out

    return run


def refusal(file: Path) -> str:
    with pytest.raises(CommandError) as caught:
        call_command("group", str(file))
    assert caught.value.returncode == 1
    return str(caught.value)


def test_the_command_prints_json_and_text(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("group", str(MANIFESTS / "batch.yaml"), "--json")
    body = json.loads(capsys.readouterr().out)
    assert set(body) == {"podGroups", "pods"}
    assert {g["kind"] for g in body["podGroups"]} == {"PodGroup"}
    assert body["pods"]["lab/shard-0"] == {
        "podGroup": "pg-shard-u-shard",
        "subGroup": None,
        "error": None,
    }
    call_command("group", str(MANIFESTS / "sets.yaml"))
    text = capsys.readouterr().out
    assert (
        "lab/pg-whole-u-whole  queue optics  min subgroups 2  priority class train  owner JobSet/whole"
        in text
    )
    assert "    subgroup workers-replica-1  min member 4  below workers" in text


def test_uids_of_the_files_are_kept_and_missing_ones_made_the_same_each_time(printed: Any) -> None:
    own = POD.replace("name: a", "name: a, uid: mine")
    (group,) = json.loads(printed(own, "--json"))["podGroups"]
    assert group["metadata"]["name"] == "pg-a-mine"
    assert group["metadata"]["ownerReferences"][0]["uid"] == "mine"
    assert printed(POD) == printed(POD)


def test_a_pod_that_cannot_be_grouped_is_part_of_the_report(printed: Any) -> None:
    orphan = POD.replace(
        "name: a",
        "name: a, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: gone, uid: u}]",
    )
    message = "failed to find Job: <default/gone>, uid: <u>: it is not among the given objects"
    assert printed(orphan) == f"default/a: error: {message}\n"
    assert json.loads(printed(orphan, "--json")) == {
        "podGroups": [],
        "pods": {"default/a": {"podGroup": None, "subGroup": None, "error": message}},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": expected objects, got none"),
        ("# nothing but words\n---\n", ": expected objects, got none"),
        ("a: [\n", ", line 2, column 1: not readable as YAML: did not find expected node content"),
        (f"{POD}\n---\nkind: [\n", ", line 4, column 1: not readable as YAML: did not find expected node content"),
        ("{a: 1, a: 2}", ", line 1, column 8: not readable as YAML: key 'a' is given twice"),
        ("- 1", ", document 1: expected an object, got [1]"),
        ("words", ", document 1: expected an object, got 'words'"),
        ("kind: Pod", ", document 1: apiVersion is missing"),
        ("{apiVersion: 1, kind: Pod}", ", document 1: apiVersion must be text, got 1"),
        ("{apiVersion: v1, kind: Pod}", ", document 1: Pod: metadata is missing"),
        ("{apiVersion: v1, kind: Pod, metadata: [a]}", ", document 1: Pod: metadata must be an object, got ['a']"),
        ("{apiVersion: v1, kind: Pod, metadata: {}}", ", document 1: Pod has no metadata.name"),
        (f"{POD}\n---\n{{apiVersion: v1, kind: Pod, metadata: {{name: 5}}}}", ", document 2: Pod: metadata.name must be text, got 5 (quote it)"),
        ("{apiVersion: v1, kind: Pod, metadata: {name: a, uid: 7}}", ", document 1: Pod: metadata.uid must be text, got 7 (quote it)"),
        ("{apiVersion: v1, kind: Pod, metadata: {name: UP}}", ", document 1: Pod name 'UP' is not a valid object name"),
        ("{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b.c}}", ", document 1: Pod a: namespace 'b.c' is not a valid namespace name"),
        ("{apiVersion: v1, kind: Pod, metadata: {name: a, ownerReferences: {kind: Job}}}", ", document 1: Pod a: metadata.ownerReferences must be a list of objects, got {'kind': 'Job'}"),
        ("{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: none}", ", document 1: Pod a: spec must be an object, got 'none'"),
        ("{apiVersion: v1, kind: Pod, metadata: {name: a, labels: [x]}}", ", document 1: Pod a: metadata.labels must be a map of strings, got ['x']"),
        ("{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {n: 4}}}", ", document 1: Pod a: metadata.annotations: 'n' must be a string, got 4 (quote it)"),
        (
            "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {metadata: {labels: {n: true}}}}}",
            ", document 1: Job j: spec.template.metadata.labels: 'n' must be a string, got True (quote it)",
        ),
        ("{apiVersion: v1, kind: List, items: 5}", ", document 1: List: items must be a list, got 5"),
        (f"{{apiVersion: v1, kind: List, items: [{POD}, {{kind: Pod}}]}}", ", document 1, item 1: apiVersion is missing"),
    ],
)  # fmt: skip
def test_what_is_no_manifest_is_refused_with_file_place_expected_and_got(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    assert refusal(file) == f"{file}{message}"


def test_two_objects_of_one_name_or_uid_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "twice.yaml"
    file.write_text(f"{POD}\n---\n{POD}")
    first = f"{file}, document 1"
    assert refusal(file) == f"{file}, document 2: Pod default/a is given twice, first in {first}"
    document = "{apiVersion: v1, kind: Pod, metadata: {name: %s, uid: u}}"
    file.write_text(f"{document % 'a'}\n---\n{document % 'b'}")
    assert refusal(file) == (
        f"{file}, document 2: Pod default/b has the uid 'u' of Pod default/a in {first}"
    )
    queue = "{apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {name: q}}"
    file.write_text(f"{POD}\n---\n{{apiVersion: v1, kind: List, items: [{queue}, {queue}]}}")
    assert refusal(file) == (
        f"{file}, document 2, item 1: Queue q is given twice, first in {file}, document 2, item 0"
    )


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    assert refusal(Path("/no/such/file.yaml")) == (
        "/no/such/file.yaml: cannot be read: No such file or directory"
    )
    file = tmp_path / "bytes.yaml"
    file.write_bytes(b"\xff\xfe")
    assert refusal(file).startswith(f"{file}: cannot be read: no UTF-8 text, ")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert refusal(empty) == f"{empty}: the folder holds no .json, .yaml, .yml file"


def test_deep_nesting_is_refused_not_a_crash(tmp_path: Path) -> None:
    file = tmp_path / "deep.yaml"
    file.write_text("[" * 100_000)
    assert refusal(file).startswith(f"{file}")


def test_anchors_that_multiply_cost_nothing(printed: Any) -> None:
    levels = ["l0: &l0 [x, x]"] + [
        f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 12)
    ]
    text = "\n".join([*levels, "apiVersion: v1", "kind: Pod", "metadata: {generateName: a-}"])
    assert printed(text).endswith(": left alone: another scheduler places this pod\n")


def test_lists_of_any_kind_and_objects_that_want_a_name_made(printed: Any) -> None:
    bare = "{metadata: {name: %s}, spec: {schedulerName: kai-scheduler}}"
    typed = f"{{apiVersion: v1, kind: PodList, items: [{bare % 'b'}, {bare % 'c'}]}}"
    body = json.loads(printed(f"{{apiVersion: v1, kind: List, items: [{POD}, {typed}]}}", "--json"))
    assert list(body["pods"]) == ["default/a", "default/b", "default/c"]
    unnamed = POD.replace("name: a", "generateName: run-")
    body = json.loads(printed(f"{unnamed}\n---\n{unnamed}", "--json"))
    assert len(body["podGroups"]) == 2
    assert all(name.startswith("default/run-") for name in body["pods"])


def test_manifests_come_from_standard_input_and_from_folders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (MANIFESTS / "delays-ignored.yaml").read_text()
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    call_command("group", "-")
    from_input = capsys.readouterr().out
    assert from_input.startswith("lab/pg-unitless-u-unitless  queue default-queue  min member 1")
    (tmp_path / "a.yaml").write_text(text)
    (tmp_path / "notes.txt").write_text("[")
    call_command("group", str(tmp_path))
    assert capsys.readouterr().out == from_input
    monkeypatch.setattr(sys, "stdin", io.StringIO("kind: Pod"))
    assert refusal(Path("-")) == "standard input, document 1: apiVersion is missing"
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert refusal(Path("-")) == "standard input: expected objects, got none"


RUN_AI = (
    "no pods are foretold: the run.ai operator makes its pods and decides how many; a pod that it owns directly would "
    "get a group of its own (queue bio, min member 1, priority class train), pods of a workload that it makes are "
    "grouped by the rules of that kind"
)
JOINS = (
    "a pod of it in these files would join pg-w-u (queue bio, min member 1, priority class train)"
)


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "note"),
    [
        ("run.ai/v2alpha1", "TrainingWorkload", "{}", RUN_AI),
        ("run.ai/v1", "InteractiveWorkload", "{}", RUN_AI),
        ("run.ai/v1", "DistributedWorkload", "{}", RUN_AI),
        ("run.ai/v1", "InferenceWorkload", "{}", RUN_AI),
        ("run.ai/v1", "DistributedInferenceWorkload", "{}", RUN_AI),
        ("batch/v1", "Job", "{parallelism: 0}", f"no pods are foretold: its spec asks for none; {JOINS}"),
        ("apps/v1", "Deployment", "{replicas: 0}",
         "no pods are foretold: its spec asks for none; a pod of it in these files would get a group of its own "
         "(queue bio, min member 1, priority class inference)"),
        ("kubeflow.org/v1", "TFJob", "{tfReplicaSpecs: {Worker: {replicas: many}}}",
         "its pods cannot be told: Worker.replicas must be a whole number, got 'many'"),
        ("kubeflow.org/v1alpha1", "ScheduledWorkflow", "{workflow: {spec: 'not: json'}}",
         f"no pods are foretold: spec.workflow.spec is no workflow that can be read here; {JOINS}"),
        ("grove.io/v1alpha1", "PodGangSet", "{}",
         "no pods are foretold: the Grove operator makes its PodGangs and pods"),
        ("example.test/v1", "Gadget", "{}",
         f"no pods are foretold: kind Gadget of example.test is not known here and has no pod template at spec.template; {JOINS}"),
    ],
)  # fmt: skip
def test_a_workload_without_pods_is_listed_in_the_notes(
    printed: Any, api_version: str, kind: str, spec: str, note: str
) -> None:
    labels = "labels: {kai.scheduler/queue: bio}"
    text = f"{{apiVersion: {api_version}, kind: {kind}, metadata: {{name: w, uid: u, {labels}}}, spec: {spec}}}"
    assert printed(text) == f"{kind} default/w: {note}\n"
    assert json.loads(printed(text, "--json")) == {
        "podGroups": [],
        "pods": {},
        "notes": {f"{kind} default/w": note},
    }


def test_pods_in_the_files_are_placed_and_need_no_note(printed: Any) -> None:
    workload = "{apiVersion: run.ai/v1, kind: TrainingWorkload, metadata: {name: w, uid: u, labels: {kai.scheduler/queue: bio}}}"
    job = "{apiVersion: run.ai/v1, kind: RunaiJob, metadata: {name: j, uid: uj, ownerReferences: [{apiVersion: run.ai/v1, kind: TrainingWorkload, name: w, uid: u}]}, spec: {parallelism: 2, template: {spec: {schedulerName: kai-scheduler}}}}"
    body = json.loads(printed(f"{workload}\n---\n{job}", "--json"))
    assert set(body) == {"podGroups", "pods"}
    assert [group["metadata"]["name"] for group in body["podGroups"]] == ["pg-j-0-uj", "pg-j-1-uj"]
    assert {group["spec"]["queue"] for group in body["podGroups"]} == {"bio"}


def test_an_assumed_scheduler_name_is_a_note(printed: Any) -> None:
    train_job = "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: w, uid: u}, spec: {trainer: {numNodes: 2}}}"
    body = json.loads(printed(train_job, "--json", "--scheduler-name", "mine"))
    assert len(body["pods"]) == 2
    assert body["notes"] == {
        "TrainJob default/w": "the template of its pods is not in these files: they are taken to name the scheduler mine"
    }


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("karta-kind: Solver", "karta-kind: Sage",
         "its labels must name its root component: expected run.ai/karta-group=example.test, "
         "run.ai/karta-version=v1, run.ai/karta-kind=Solver"),
        ("gangScheduling: {podGroup", "gangScheduling: {x",
         "it has no gang scheduling instructions (podGroup or podGroups)"),
        (".spec.lead.replicas", "env.HOME", "unsupported jq expression 'env.HOME': env may not be used"),
        ("componentName: lead", "componentName: led", "gang scheduling names component 'led', which does not exist"),
    ],
)  # fmt: skip
def test_an_unused_karta_gets_a_condition_with_the_reason(
    printed: Any, old: str, new: str, reason: str
) -> None:
    text = (MANIFESTS / "karta.yaml").read_text()
    assert old in text
    assert "notes" not in json.loads(printed(text, "--json"))
    notes = json.loads(printed(text.replace(old, new, 1), "--json"))["notes"]
    assert notes["Karta solver"] == f"not used: {reason}"


def test_two_kartas_of_one_kind_both_get_a_condition(printed: Any) -> None:
    text = (MANIFESTS / "karta.yaml").read_text()
    twin = text.partition("\n---")[0].replace("name: solver, labels", "name: twin, labels")
    answer = json.loads(printed(f"{text}\n---\n{twin}", "--json"))
    message = "not used: 2 definitions are for Solver, so the base rules are used"
    assert answer["notes"] == {"Karta solver": message, "Karta twin": message}
    assert [group["metadata"]["name"] for group in answer["podGroups"]] == ["pg-sudoku-u-sudoku"]


def test_objects_that_never_own_pods_need_no_note(printed: Any) -> None:
    text = "\n---\n".join(
        f"{{apiVersion: {api_version}, kind: {kind}, metadata: {{name: o}}}}"
        for api_version, kind in [
            ("v1", "Service"), ("v1", "ConfigMap"), ("apps/v1", "ControllerRevision"), ("policy/v1", "PodDisruptionBudget"),
            ("rbac.authorization.k8s.io/v1", "Role"), ("scheduling.run.ai/v2", "Queue"),
        ]
    )  # fmt: skip
    assert printed(text) == "no workloads or pods found\n"


def test_a_workload_that_owns_only_passive_objects_still_makes_its_pods(printed: Any) -> None:
    job = "{apiVersion: batch/v1, kind: Job, metadata: {name: j, uid: uj}, spec: {template: {spec: {schedulerName: kai-scheduler}}}}"
    secret = "{apiVersion: v1, kind: Secret, metadata: {name: s, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: j, uid: uj}]}}"
    assert "pg-j-uj" in printed(f"{job}\n---\n{secret}")


@pytest.mark.parametrize("quoted", [False, True])
def test_a_scheduled_workflow_makes_the_pods_of_its_first_run(printed: Any, quoted: bool) -> None:
    spec: Any = {
        "entrypoint": "m",
        "schedulerName": "kai-scheduler",
        "templates": [{"name": "m", "container": {"image": "i"}}],
    }
    body = {
        "apiVersion": "kubeflow.org/v1alpha1",
        "kind": "ScheduledWorkflow",
        "metadata": {"name": "nightly", "uid": "u", "labels": {"kai.scheduler/queue": "bio"}},
        "spec": {"workflow": {"spec": json.dumps(spec) if quoted else spec}},
    }
    answer = json.loads(printed(json.dumps(body), "--json"))
    (group,) = answer["podGroups"]
    assert (group["metadata"]["name"], group["spec"]["queue"]) == ("pg-nightly-u", "bio")
    (pod,) = answer["pods"]
    assert pod.startswith("default/nightly-1-m-")
