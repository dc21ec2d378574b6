"""Sample 20: two halves of a GPU, of two teams in two namespaces, share one device from admission to their end."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from kube.resources import CONFIGMAPS
from tests.samples.installations import Installation
from tests.samples.sample import Json, Sample, prepared_sample
from tests.samples.shared_gpus import (
    GROUP,
    RESERVATIONS,
    amounts,
    config_map_prefix,
    holder_name,
    holders_of,
    maps_of,
)

pytestmark = pytest.mark.timeout(240)
SIDES = ("left", "right")


@dataclass(frozen=True, slots=True)
class Halves:
    """Both pods, each in the namespace of its team."""

    left: Sample
    right: Sample

    def sample(self, side: str) -> Sample:
        return self.left if side == "left" else self.right

    def pod(self, side: str) -> Json:
        return self.sample(side).pod(f"{side}-half")

    def group(self, side: str) -> str:
        return str(self.pod(side)["metadata"]["labels"][GROUP])


@pytest.fixture(scope="module")
def annex(installation: Installation) -> Iterator[Sample]:
    with prepared_sample(installation, "s-20-annex") as prepared:
        yield prepared


@pytest.fixture(scope="module")
def halves(sample: Sample, annex: Sample) -> Halves:
    sample.apply("20-left-half.yaml")
    annex.apply("20-right-half.yaml")
    sample.wait_bound("left-half", count=1)
    annex.wait_bound("right-half", count=1)
    return Halves(sample, annex)


@pytest.mark.parametrize("side", SIDES)
def test_admission_points_the_container_at_what_the_binder_will_write(
    halves: Halves, side: str
) -> None:
    pod = halves.pod(side)
    prefix = config_map_prefix(pod)
    assert re.fullmatch(rf"{side}-half-[bcdfghjklmnpqrstvwxz2456789]{{7}}-shared-gpu", prefix)
    (container,) = pod["spec"]["containers"]
    references = {
        variable["name"]: variable["valueFrom"]["configMapKeyRef"] for variable in container["env"]
    }
    names = ("NVIDIA_VISIBLE_DEVICES", "RUNAI_NUM_OF_GPUS", "GPU_PORTION")
    assert references == {name: {"name": f"{prefix}-0", "key": name} for name in names}
    assert container["envFrom"] == [
        {"configMapRef": {"name": f"{prefix}-0-evar", "optional": False}}
    ]
    volumes = {
        volume["name"]: volume.get("configMap", {}).get("name") for volume in pod["spec"]["volumes"]
    }
    assert volumes[f"{prefix}-0-vol"] == f"{prefix}-0"
    assert f"{prefix}-0-vol" not in [mount["name"] for mount in container.get("volumeMounts", ())]
    assert pod["spec"]["runtimeClassName"] == "nvidia"


def test_both_hold_one_device_through_one_reservation(halves: Halves) -> None:
    group = halves.group("left")
    assert str(uuid.UUID(group)) == group
    assert halves.group("right") == group
    node = halves.pod("left")["spec"]["nodeName"]
    assert halves.pod("right")["spec"]["nodeName"] == node
    (holder,) = holders_of(halves.left, group)
    metadata, spec = holder["metadata"], holder["spec"]
    assert (metadata["namespace"], metadata["name"]) == (RESERVATIONS, holder_name(node, group))
    assert metadata["labels"] == {"app": "kai-resource-reservation", GROUP: group}
    assert metadata["annotations"]["karpenter.sh/do-not-disrupt"] == "true"
    assert spec["nodeName"] == node
    (container,) = spec["containers"]
    for kind in ("requests", "limits"):
        assert container["resources"][kind]["nvidia.com/gpu"] == "1"
    fields = {
        variable["name"]: variable["valueFrom"]["fieldRef"]["fieldPath"]
        for variable in container["env"]
    }
    assert fields == {"POD_NAME": "metadata.name", "POD_NAMESPACE": "metadata.namespace"}


@pytest.mark.parametrize("side", SIDES)
def test_two_config_maps_of_the_pod_say_which_device_and_how_much(
    halves: Halves, side: str
) -> None:
    pod = halves.pod(side)
    assert pod["metadata"]["annotations"]["received-resource-type"] == "Fraction"
    (holder,) = holders_of(halves.left, halves.group(side))
    device = holder["metadata"]["annotations"]["run.ai/reserve_for_gpu_index"]
    maps = maps_of(halves.sample(side), pod)
    assert {name: body.get("data", {}) for name, body in maps.items()} == {
        "0": {
            "NVIDIA_VISIBLE_DEVICES": device,
            "RUNAI_NUM_OF_GPUS": "0.50",
            "GPU_PORTION": "0.50",
        },
        "0-evar": {},
    }
    for body in maps.values():
        assert [o["uid"] for o in body["metadata"]["ownerReferences"]] == [pod["metadata"]["uid"]]


@pytest.mark.parametrize("side", SIDES)
def test_the_pod_group_counts_half_a_gpu(halves: Halves, side: str) -> None:
    sample, pod = halves.sample(side), halves.pod(side)
    name = f"{side}-half"
    group = sample.pod_group_of(name)
    assert group["metadata"]["name"] == f"pg-{name}-{pod['metadata']['uid']}"
    spec = group["spec"]
    assert (spec["minMember"], spec["priorityClassName"], spec["queue"]) == (
        1,
        "train",
        f"s20-{side}",
    )

    def stated() -> list[str]:
        status = sample.pod_group_of(name).get("status", {}).get("resourcesStatus", {})
        return [
            (status.get(part) or {}).get("nvidia.com/gpu") for part in ("requested", "allocated")
        ]

    sample.wait(lambda: stated() == ["500m", "500m"], f"500m and 500m, found {stated()}")
    assert amounts(sample, name, "requested").keys() == {"nvidia.com/gpu"}


def test_the_device_is_free_when_the_last_of_them_has_ended(halves: Halves) -> None:
    group = halves.group("left")
    names = [f"{config_map_prefix(halves.pod('right'))}-{end}" for end in ("0", "0-evar")]
    halves.right.kubectl("delete", "pod", "right-half", "--wait=false")
    halves.right.wait(
        lambda: not any(halves.right.exists(CONFIGMAPS, name) for name in names),
        "the end of the right pod's ConfigMaps",
    )
    assert len(holders_of(halves.left, group)) == 1
    # The other one ends by itself, as its kubelet would say.
    halves.left.kubectl(
        "patch", "pod", "left-half", "--subresource=status", "--type=merge",
        "-p", '{"status": {"phase": "Succeeded"}}',
    )  # fmt: skip
    halves.left.wait(lambda: not holders_of(halves.left, group), "the end of the reservation")
