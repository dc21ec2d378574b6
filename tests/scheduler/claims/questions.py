"""Random questions to an allocator: a node, the devices it can use, the claims that hold some, and new claims.

All is written as API objects, so that Kubernetes' own allocator can be asked the same. Left out is what version
1.35 gets wrong, each with a test of its own in `test_allocator.py`:

- counters together with constraints, taints or all devices: what a refused device would draw stays drawn, and
  "all devices" ends in a panic;
- `distinctAttribute` over several devices of one request: only the last of them is compared;
- admin access: it keeps others from the device within one pod, and draws counters;
- all devices as a later alternative: it goes on with the first one;
- out-of-date slices that are as many as their pool had: they are used where the newer ones serve other nodes.
"""

from __future__ import annotations

from itertools import count
from random import Random
from typing import Any

Json = dict[str, Any]
NODE = "n0"
OTHER_NODE = "n1"
ZONES = ("east", "west")
NODE_LABELS = {"zone": "east"}
_NUMBERS = count()


def question(random: Random) -> Json:
    """Return one question."""
    has_counters = random.random() < 0.3
    slices = [
        part
        for number in range(random.randint(1, 3))
        for part in _pool(random, number, has_counters)
    ]
    devices = [
        (part["spec"]["driver"], part["spec"]["pool"]["name"], device)
        for part in slices
        for device in part["spec"].get("devices", ())
    ]
    return {
        "node": {"metadata": {"name": NODE, "labels": NODE_LABELS}},
        "slices": slices,
        "classes": [
            _class("any"),
            _class("big", 'device.attributes["gpu.test"].size >= 2'),
            _class("red", 'device.attributes["gpu.test"].color == "red"', settings=True),
        ],
        "held": _held(random, devices),
        "claims": [
            _claim(random, number, has_counters) for number in range(random.choice((1, 1, 1, 2)))
        ],
    }


def _class(name: str, selector: str = "", *, settings: bool = False) -> Json:
    spec: Json = {"selectors": [{"cel": {"expression": selector}}] if selector else []}
    if settings:
        spec["config"] = [{"opaque": {"driver": "gpu.test", "parameters": {"class": name}}}]
    return {"metadata": {"name": name}, "spec": spec}


def _pool(random: Random, number: int, has_counters: bool) -> list[Json]:
    name, generation = f"pool{number}", random.randint(1, 3)
    place = _place(random)
    slices = []
    for part in range(random.randint(1, 2)):
        devices = [
            _device(random, f"d{part}{index}", has_counters)
            for index in range(random.randint(1, 4))
        ]
        slices.append({**place, "devices": devices})
    if place.get("perDeviceNodeSelection"):
        for device in (item for spec in slices for item in spec["devices"]):
            device.update(random.choice(({"nodeName": NODE}, {"nodeName": OTHER_NODE})))
    if has_counters:
        sets = [{"name": "set0", "counters": {"memory": {"value": f"{random.randint(2, 8)}Gi"}}}]
        slices.append({"nodeName": NODE, "sharedCounters": sets})
    stated = len(slices) + (random.random() < 0.1)
    bodies = [
        _slice(f"{name}-{index}", name, generation, stated, spec)
        for index, spec in enumerate(slices)
    ]
    if random.random() < 0.15:
        stale = {"nodeName": NODE, "devices": [_device(random, "stale", False)]}
        bodies.append(_slice(f"{name}-stale", name, generation - 1, 2, stale))
    return bodies


def _slice(name: str, pool: str, generation: int, slice_count: int, spec: Json) -> Json:
    stated = {"name": pool, "generation": generation, "resourceSliceCount": slice_count}
    # Verdicts of selectors are remembered by uid and version.
    uid = f"{name}-{next(_NUMBERS)}"
    return {
        "metadata": {"name": name, "uid": uid, "resourceVersion": "1"},
        "spec": {"driver": "gpu.test", "pool": stated, **spec},
    }


def _place(random: Random) -> Json:
    zone = random.choice(ZONES)
    expression = {"key": "zone", "operator": "In", "values": [zone]}
    return random.choice(
        (
            {"nodeName": NODE},
            {"nodeName": NODE},
            {"nodeName": OTHER_NODE},
            {"allNodes": True},
            {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
            {"perDeviceNodeSelection": True},
        )
    )


def _device(random: Random, name: str, has_counters: bool) -> Json:
    device: Json = {
        "name": name,
        "attributes": {
            "size": {"int": random.randint(1, 3)},
            "color": {"string": random.choice(("red", "blue"))},
            "numa.test/node": {"int": random.randint(0, 2)},
        },
    }
    if random.random() < 0.2:
        device["attributes"]["rev"] = {"version": random.choice(("1.0.0", "2.0.0"))}
    if not has_counters and random.random() < 0.15:
        effect = random.choice(("NoSchedule", "NoExecute", "None"))
        device["taints"] = [{"key": "broken", "value": "yes", "effect": effect}]
    if random.random() < 0.4:
        device["capacity"] = {"memory": _capacity(random)}
        device["allowMultipleAllocations"] = random.random() < 0.5 and not has_counters
    if has_counters and random.random() < 0.8:
        drawn = {"memory": {"value": f"{random.randint(1, 4)}Gi"}}
        device["consumesCounters"] = [{"counterSet": "set0", "counters": drawn}]
    return device


def _capacity(random: Random) -> Json:
    capacity: Json = {"value": f"{random.choice((4, 8, 16))}Gi"}
    kind = random.random()
    if kind < 0.3:
        values = ["1Gi", "2Gi", "4Gi"]
        capacity["requestPolicy"] = {"default": random.choice(values), "validValues": values}
    elif kind < 0.6:
        bounds = {"min": "1Gi", "step": "1Gi", "max": random.choice(("2Gi", "4Gi"))}
        capacity["requestPolicy"] = {"default": "1Gi", "validRange": bounds}
    return capacity


def _held(random: Random, devices: list[tuple[str, str, Json]]) -> list[Json]:
    allocated_claims = []
    for number, (driver, pool, device) in enumerate(devices):
        if random.random() > 0.25:
            continue
        result: Json = {"request": "r", "driver": driver, "pool": pool, "device": device["name"]}
        if device.get("allowMultipleAllocations"):
            result["shareID"] = f"00000000-0000-4000-8000-{number:012}"
            result["consumedCapacity"] = {"memory": f"{random.randint(1, 4)}Gi"}
        allocation = {"devices": {"results": [result]}}
        meta = {"name": f"held{number}", "namespace": "ns", "uid": f"held{number}"}
        allocated_claims.append(
            {"metadata": meta, "spec": {}, "status": {"allocation": allocation}}
        )
    return allocated_claims


def _claim(random: Random, number: int, has_counters: bool) -> Json:
    kind = ""
    if not has_counters:
        kind = random.choice(("", "", "matchAttribute", "distinctAttribute"))
    most = 1 if kind == "distinctAttribute" else 3
    may_be_all = not has_counters and most > 1
    requests = [
        _request(random, f"r{index}", most, may_be_all) for index in range(random.randint(1, 3))
    ]
    names = [request["name"] for request in requests]
    devices: Json = {"requests": requests}
    if kind:
        attribute = random.choice(("gpu.test/color", "numa.test/node", "gpu.test/rev"))
        constraint: Json = {kind: attribute}
        if random.random() < 0.4:
            constraint["requests"] = names[:2]
        devices["constraints"] = [constraint]
    if random.random() < 0.4:
        opaque = {"driver": "gpu.test", "parameters": {"claim": number}}
        devices["config"] = [{"requests": random.choice(([], names[:1])), "opaque": opaque}]
    meta = {"name": f"c{number}", "namespace": "ns", "uid": f"c{number}"}
    return {"metadata": meta, "spec": {"devices": devices}}


def _request(random: Random, name: str, most: int, may_be_all: bool) -> Json:
    if random.random() < 0.25:
        parts = [
            {"name": f"s{index}", **_exact(random, most, may_be_all and index == 0)}
            for index in range(random.randint(1, 3))
        ]
        return {"name": name, "firstAvailable": parts}
    return {"name": name, "exactly": _exact(random, most, may_be_all)}


def _exact(random: Random, most: int, may_be_all: bool) -> Json:
    exact: Json = {"deviceClassName": random.choice(("any", "any", "big", "red"))}
    if may_be_all and random.random() < 0.12:
        exact["allocationMode"] = "All"
    else:
        exact |= {"allocationMode": "ExactCount", "count": min(random.choice((1, 1, 2, 3)), most)}
    if random.random() < 0.3:
        expression = f'device.attributes["numa.test"].node < {random.randint(1, 3)}'
        exact["selectors"] = [{"cel": {"expression": expression}}]
    if random.random() < 0.2:
        exact["tolerations"] = [{"key": "broken", "operator": "Exists"}]
    if random.random() < 0.15:
        exact["capacity"] = {"requests": {"memory": f"{random.randint(1, 9)}Gi"}}
    return exact
