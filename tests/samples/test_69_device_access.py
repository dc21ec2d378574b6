"""Sample 69: with access to devices blocked, no container chooses its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from kube.resources import CONFIGS
from tests.samples.cluster_config import CONFIG, config_restored
from tests.samples.expected_answers import check_answer, objects_of
from tests.samples.sample import Json, Sample

pytestmark = pytest.mark.timeout(300)
REFUSED = {body["metadata"]["name"]: body for body in objects_of("69-device-access-refused.yaml")}
BLOCKED = {"spec": {"admission": {"blockNvidiaVisibleDevices": True}}}
PEEPING = "69-device-access.yaml"


@pytest.fixture(scope="module")
def open_answer(sample: Sample) -> str:
    """What becomes of a pod while the switch is off, as it is by default."""
    return dry_run(sample)


@pytest.fixture(scope="module")
def blocked(sample: Sample, open_answer: str) -> Iterator[Sample]:
    """The switch on, and the webhook started anew with it."""
    assert "value: all" in open_answer
    with config_restored(sample.installation):
        sample.installation.gateway.patch(CONFIGS, CONFIG, BLOCKED)
        sample.wait(lambda: "value: void" in dry_run(sample), "a webhook that blocks", timeout_s=90)
        yield sample


def dry_run(sample: Sample) -> str:
    """Return the pod as it would be stored; empty while the webhook is down."""
    (body,) = objects_of(PEEPING)
    return sample.stack.kubectl(
        "create", "-n", sample.namespace, "--dry-run=server", "-o", "yaml", "-f", "-",
        stdin=yaml.safe_dump(body), check=False,
    )  # fmt: skip


def test_a_container_without_devices_sees_no_gpus(blocked: Sample) -> None:
    blocked.apply(PEEPING)
    (container,) = blocked.pod("peeping")["spec"]["containers"]
    assert container["env"] == [
        {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"},
        {"name": "OTHER", "value": "kept"},
    ]


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED.keys())
def test_a_container_that_picks_its_devices_is_refused(blocked: Sample, body: Json) -> None:
    check_answer(blocked, body)
    assert body["metadata"]["name"] not in blocked.stack.kubectl(
        "get", "pods", "-n", blocked.namespace, "-o", "name"
    )
