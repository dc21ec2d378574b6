"""Random reviews: a webhook answers yes or no, whatever it is shown; a crash would block the API server's caller."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from queues.admission.routes import PATHS, Routes
from queues.admission.settings import AdmissionSettings

FIELDS = [
    "metadata", "spec", "name", "namespace", "annotations", "labels", "ownerReferences", "containers", "initContainers",
    "env", "envFrom", "configMapRef", "value", "valueFrom", "volumes", "resources", "limits", "requests", "schedulerName",
    "nvidia.com/gpu", "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices", "gpu-fraction-container-name", "mps",
    "runai/shared-gpu-configmap", "subGroups", "parent", "minMember", "minSubGroup", "levels", "alias", "nodeLabel",
    "parentQueue", "gpu", "cpu", "quota", "limit", "runtimeClassName",
]  # fmt: skip
SCALARS: list[Any] = [
    None,
    True,
    -1,
    0,
    3,
    2**70,
    0.5,
    "",
    "a",
    "b",
    "1",
    "0.5",
    "true",
    "kai-scheduler",
    "NVIDIA_VISIBLE_DEVICES",
]


class Noise:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def value(self, depth: int) -> Any:
        choice = self.random.random()
        if depth > 4 or (depth > 0 and choice < 0.3):
            return self.random.choice(SCALARS)
        if choice < 0.5:
            return [self.value(depth + 1) for _ in range(self.random.randint(0, 3))]
        return {
            key: self.value(depth + 1)
            for key in self.random.sample(FIELDS, self.random.randint(0, 4))
        }

    def object(self) -> Any:
        """Return noise, mostly in the shape of a pod of ours, so that rules are reached."""
        if self.random.random() < 0.2:
            return self.value(0)
        annotations = {k: self.random.choice(SCALARS) for k in self.random.sample(FIELDS[19:26], 3)}
        return {
            "metadata": {"name": "p", "annotations": annotations, "ownerReferences": self.value(2)},
            "spec": {
                "schedulerName": "kai-scheduler",
                "containers": [
                    self.value(3),
                    {"name": "a", "env": self.value(2), "resources": self.value(3)},
                ],
                "initContainers": self.value(2),
                "volumes": self.value(2),
                "subGroups": [self.value(4), {"name": "a", "parent": self.random.choice(SCALARS)}],
                "levels": self.value(2),
                "resources": self.value(2),
            },
        }


@settings(max_examples=2000, deadline=None)
@given(st.integers(0, 2**63))
def test_random_reviews_are_always_answered(seed: int) -> None:
    noise = Noise(seed)
    pods = AdmissionSettings(gpu_sharing=True, hami_core=True, block_visible_devices=True)
    routes = Routes(tree=dict, settings=pods, compares_quotas=True)
    operation = noise.random.choice(["CREATE", "UPDATE", "DELETE"])
    request = {
        "uid": "u",
        "operation": operation,
        "namespace": "lab",
        "object": noise.object(),
        "oldObject": noise.object(),
    }
    body = json.dumps({"request": request}).encode()
    for path in PATHS:
        answer = routes.answer(path, body)
        assert answer is not None
        assert json.loads(answer)["response"]["allowed"] in (True, False)
