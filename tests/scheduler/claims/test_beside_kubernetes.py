"""Our allocator beside Kubernetes' own, on random questions.

Both must find devices for the same questions. Kubernetes takes the pools in random order, so the devices
themselves are compared where a node has one pool only.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from kube.objects.devices import DeviceClass, ResourceClaim, ResourceSlice
from kube.objects.meta import convert
from scheduler.core.cluster.inputs import NodeInput
from scheduler.core.cluster.journal import Journal
from scheduler.core.plugins.device_claims.allocator.allocator import Allocator, Refusal
from scheduler.core.plugins.device_claims.ledger import ClaimLedger
from scheduler.load.claims import allocation_body, device_inputs
from tests.real_cluster.build import ClusterUnavailableError
from tests.real_cluster.structured.program import kubernetes_allocator
from tests.scheduler.claims.questions import NODE, NODE_LABELS, Json, question

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
QUESTIONS = 1500
#: Kubernetes gives up at once; we try the alternatives.
GIVES_UP = "because a claim constraint would not be satisfied"


def _ours(case: Json) -> list[Json] | None:
    inputs = device_inputs(
        [convert(body, DeviceClass) for body in case["classes"]],
        [convert(body, ResourceSlice) for body in case["slices"]],
        [convert(body, ResourceClaim) for body in (*case["held"], *case["claims"])],
    )
    names = {body["metadata"]["name"] for body in case["claims"]}
    allocator = Allocator(inputs, [NodeInput(name=NODE, labels=NODE_LABELS)])
    claims = [claim for claim in inputs.claims if claim.name in names]
    allocations = allocator.allocate(claims, 0, ClaimLedger(inputs.claims, Journal()))
    if isinstance(allocations, Refusal):
        assert not allocations.is_overrun
        return None
    return [allocation_body(item) for item in allocations]


def _comparable(allocations: list[Json]) -> list[Any]:
    """Return allocations without what differs by chance, and settings once each."""
    copies = json.loads(json.dumps(allocations))
    for body in copies:
        for result in body["devices"]["results"]:
            result.pop("shareID", None)
        configs = body["devices"].pop("config", [])
        body["devices"]["config"] = [
            item for index, item in enumerate(configs) if item not in configs[:index]
        ]
    return list(copies)


def test_both_allocators_answer_alike() -> None:
    served = compared = 0
    try:
        with kubernetes_allocator() as ask:
            for seed in range(QUESTIONS):
                case = question(Random(seed))
                answer, ours = ask(case), _ours(case)
                theirs = answer["allocations"]
                if GIVES_UP in answer.get("error", ""):
                    continue
                assert (ours is None) == (theirs is None), (seed, answer)
                served += ours is not None
                pools = {part["spec"]["pool"]["name"] for part in case["slices"]}
                if ours is not None and len(pools) == 1:
                    compared += 1
                    assert _comparable(ours) == _comparable(theirs), seed
    except ClusterUnavailableError as error:
        pytest.skip(f"no Kubernetes allocator here: {error}")
    assert served > QUESTIONS // 10
    assert compared > QUESTIONS // 100
