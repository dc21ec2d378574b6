"""The pod webhooks: what is refused, word for word, and what is put into a pod."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from queues.admission.pods.gpu_sharing import config_map_prefix, volume_name
from queues.admission.routes import MUTATE_POD, VALIDATE_POD
from queues.grouping.offline.manifests import read_manifests
from tests.queues.admission.reviews import accepted, ask

MANIFESTS = Path(__file__).parents[2] / "manifests"
GOOD = {pod["metadata"]["name"]: pod for pod in read_manifests([MANIFESTS / "fractions.yaml"])}
REFUSED = read_manifests([MANIFESTS / "fractions-refused.yaml"])


def pod(*containers: dict[str, Any], **annotations: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "namespace": "lab", "annotations": annotations},
        "spec": {
            "schedulerName": "kai-scheduler",
            "containers": list(containers) or [{"name": "main"}],
        },
    }


def visible(value: str) -> dict[str, Any]:
    return {"name": "NVIDIA_VISIBLE_DEVICES", "value": value}


@pytest.mark.parametrize("body", REFUSED, ids=lambda body: body["metadata"]["name"])
def test_contradictory_requests_are_refused(body: dict[str, Any]) -> None:
    mutated = ask(MUTATE_POD, body)
    answer = ask(VALIDATE_POD, mutated.object) if mutated.allowed else mutated
    assert not answer.allowed
    assert answer.message == body["metadata"]["annotations"]["test/expect"]


@pytest.mark.parametrize("name", GOOD)
def test_sensible_requests_pass(name: str) -> None:
    mutated = ask(MUTATE_POD, GOOD[name])
    assert mutated.allowed
    assert ask(VALIDATE_POD, mutated.object) == accepted(mutated.object)
    assert ask(VALIDATE_POD, mutated.object, old=GOOD[name]) == accepted(mutated.object)


def test_any_part_of_a_gpu_is_refused_while_sharing_is_off() -> None:
    answer = ask(VALIDATE_POD, GOOD["half"], gpu_sharing=False)
    assert answer.message == (
        "attempting to create a pod lab/half with gpu sharing request, while GPU sharing is disabled"
    )


def test_a_fraction_pod_is_pointed_at_its_config_maps() -> None:
    body = ask(MUTATE_POD, GOOD["half"]).object
    prefix = "half-rndrndx-shared-gpu"
    assert body["metadata"]["annotations"] == {
        "gpu-fraction": "0.5",
        "runai/shared-gpu-configmap": prefix,
    }
    assert body["spec"] == {
        "schedulerName": "kai-scheduler",
        "runtimeClassName": "nvidia",
        "volumes": [{"name": f"{prefix}-0-vol", "configMap": {"name": f"{prefix}-0"}}],
        "containers": [
            {
                "name": "main",
                "image": "pause",
                "env": [
                    {
                        "name": key,
                        "valueFrom": {"configMapKeyRef": {"name": f"{prefix}-0", "key": key}},
                    }
                    for key in ("NVIDIA_VISIBLE_DEVICES", "RUNAI_NUM_OF_GPUS", "GPU_PORTION")
                ],
                "envFrom": [{"configMapRef": {"name": f"{prefix}-0-evar", "optional": False}}],
            }
        ],
    }


def test_reinvocation_changes_nothing() -> None:
    once = ask(MUTATE_POD, GOOD["half"]).object
    again = ask(MUTATE_POD, once, suffix=lambda: "another")
    assert again.object == once
    assert not again.has_patch


def test_a_variable_of_the_same_name_is_replaced() -> None:
    body = pod(
        {"name": "main", "env": [visible("all"), {"name": "KEEP", "value": "1"}]},
        **{"gpu-fraction": "0.5"},
    )
    env = ask(MUTATE_POD, body).object["spec"]["containers"][0]["env"]
    assert [entry["name"] for entry in env] == [
        "KEEP", "NVIDIA_VISIBLE_DEVICES", "RUNAI_NUM_OF_GPUS", "GPU_PORTION",
    ]  # fmt: skip
    assert "value" not in env[1]


def test_the_chosen_container_gets_the_part() -> None:
    body = ask(MUTATE_POD, GOOD["picky"]).object
    side, trainer = body["spec"]["containers"]
    assert "env" not in side
    assert trainer["envFrom"][0]["configMapRef"]["name"] == "picky-rndrndx-shared-gpu-1-evar"
    body = ask(MUTATE_POD, GOOD["warm"]).object
    assert "env" not in body["spec"]["containers"][0]
    (warmup,) = body["spec"]["initContainers"]
    assert warmup["envFrom"][0]["configMapRef"]["name"] == "warm-rndrndx-shared-gpu-i0-evar"
    assert body["spec"]["volumes"][0]["name"] == "warm-rndrndx-shared-gpu-i0-vol"


def test_the_hami_limit_is_optional_and_only_on_request() -> None:
    env = ask(MUTATE_POD, GOOD["half"], hami_core=True).object["spec"]["containers"][0]["env"]
    assert env[-1] == {
        "name": "CUDA_DEVICE_MEMORY_LIMIT",
        "valueFrom": {
            "configMapKeyRef": {
                "name": "half-rndrndx-shared-gpu-0",
                "key": "CUDA_DEVICE_MEMORY_LIMIT",
                "optional": True,
            }
        },
    }


def test_pods_of_other_schedulers_and_whole_gpus_are_untouched() -> None:
    other = pod(**{"gpu-fraction": "nonsense"})
    other["spec"]["schedulerName"] = "default-scheduler"
    assert ask(VALIDATE_POD, other) == accepted(other)
    assert ask(MUTATE_POD, other) == accepted(other)
    whole = pod({"name": "main", "resources": {"limits": {"nvidia.com/gpu": "2"}}})
    assert ask(MUTATE_POD, whole) == accepted(whole)
    assert ask(VALIDATE_POD, whole) == accepted(whole)


def test_an_explicit_runtime_class_is_kept_and_none_is_set_when_switched_off() -> None:
    body = pod(**{"gpu-fraction": "0.5"})
    body["spec"]["runtimeClassName"] = "own"
    assert ask(MUTATE_POD, body).object["spec"]["runtimeClassName"] == "own"
    body["spec"]["runtimeClassName"] = ""
    assert ask(MUTATE_POD, body).object["spec"]["runtimeClassName"] == "nvidia"
    plain = ask(MUTATE_POD, pod(**{"gpu-fraction": "0.5"}), fraction_runtime_class="")
    assert "runtimeClassName" not in plain.object["spec"]


def test_the_namespace_is_filled_in_and_must_match() -> None:
    body = pod(**{"gpu-fraction": "0.5"})
    del body["metadata"]["namespace"]
    assert ask(MUTATE_POD, body).object["metadata"]["namespace"] == "lab"
    body["metadata"]["namespace"] = "other"
    assert ask(MUTATE_POD, body).message == (
        "error: the namespace from the provided object other does not match the namespace lab"
    )


def test_containers_without_gpu_get_no_visible_devices() -> None:
    sneaky = pod({"name": "main", "env": [visible("all")]})
    fixed = ask(MUTATE_POD, sneaky, block_visible_devices=True)
    assert fixed.object["spec"]["containers"][0]["env"] == [visible("void")]
    checked = ask(VALIDATE_POD, fixed.object, block_visible_devices=True)
    assert checked == accepted(fixed.object)
    silent = ask(MUTATE_POD, pod(), block_visible_devices=True)
    assert silent.object["spec"]["containers"][0]["env"] == [visible("void")]
    assert ask(MUTATE_POD, sneaky) == accepted(sneaky)


def test_gpu_containers_may_not_choose_their_devices() -> None:
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    greedy = pod({"name": "main", "env": [visible("all")], "resources": limits})
    mutated = ask(MUTATE_POD, greedy, block_visible_devices=True)
    assert ask(VALIDATE_POD, mutated.object, block_visible_devices=True).message == (
        "container main has an environment variable NVIDIA_VISIBLE_DEVICES defined with a value of all. "
        "This is forbidden due to conflicts with Nvidia's device plugin. The only values that are allowed "
        "are 'void' or 'none'"
    )
    source = {
        "name": "NVIDIA_VISIBLE_DEVICES",
        "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}},
    }
    referring = pod({"name": "main", "env": [source]})
    mutated = ask(MUTATE_POD, referring, block_visible_devices=True)
    assert ask(VALIDATE_POD, mutated.object, block_visible_devices=True).message == (
        "container main has an environment variable NVIDIA_VISIBLE_DEVICES defined with a valueFrom "
        "reference. This is forbidden due to possible conflicts with Nvidia's device plugin"
    )
    fine = pod({"name": "main", "env": [visible("none")], "resources": limits})
    assert ask(VALIDATE_POD, fine, block_visible_devices=True) == accepted(fine)


def test_the_fraction_container_itself_may_carry_the_variable() -> None:
    mutated = ask(MUTATE_POD, GOOD["picky"], block_visible_devices=True)
    checked = ask(VALIDATE_POD, mutated.object, block_visible_devices=True)
    assert checked == accepted(mutated.object)
    side, trainer = mutated.object["spec"]["containers"]
    assert side["env"] == [visible("void")]
    assert "valueFrom" in trainer["env"][0]


def test_mig_requests_are_gpu_requests() -> None:
    mig = pod({"name": "main", "resources": {"requests": {"nvidia.com/mig-1g.10gb": "1"}}})
    assert ask(MUTATE_POD, mig, block_visible_devices=True) == accepted(mig)


def test_config_map_names_stay_short() -> None:
    body = {"metadata": {"name": "p", "ownerReferences": [{"name": "x" * 30 + ".-yz" + "w" * 40}]}}
    prefix = config_map_prefix(body, "0", "bcdfghj")
    assert prefix == f"{'x' * 30}.-y-bcdfghj-shared-gpu"
    for index in ("0", "10", "i0"):
        name = f"{config_map_prefix(body, index, 'bcdfghj')}-{index}"
        assert len(f"{name}-evar") <= 63
        assert len(volume_name(name)) <= 63
    trimmed = {"metadata": {"name": "a" * 32 + "." + "b" * 20}}
    assert config_map_prefix(trimmed, "0", "bcdfghj") == f"{'a' * 32}-bcdfghj-shared-gpu"
    assert volume_name("Some.Name-0") == "some-name-0-vol"


def test_a_pod_without_containers_is_left_to_the_api_server() -> None:
    body = pod(**{"gpu-fraction": "0.5"})
    body["spec"]["containers"] = []
    answer = ask(MUTATE_POD, body)
    assert answer.allowed
    assert "runai/shared-gpu-configmap" not in answer.object["metadata"]["annotations"]
