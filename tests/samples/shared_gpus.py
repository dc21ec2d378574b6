"""What the samples of shared GPUs look at: reservation pods, the ConfigMaps of a pod, the status of its group."""

from __future__ import annotations

import hashlib
from fractions import Fraction

from kube.gateway import Selectors
from kube.resources import BINDREQUESTS, CONFIGMAPS, PODS
from kube.values.quantity import parse_quantity
from tests.samples.sample import Json, Sample

RESERVATIONS = "kai-resource-reservation"
GROUP = "runai-gpu-group"


def config_map_prefix(pod: Json) -> str:
    """Return what admission named the ConfigMaps of a pod after."""
    return str(pod["metadata"]["annotations"]["runai/shared-gpu-configmap"])


def maps_of(sample: Sample, pod: Json) -> dict[str, Json]:
    """Return the ConfigMaps of a pod by what follows their common prefix, e.g. `0` and `0-evar`."""
    prefix = f"{config_map_prefix(pod)}-"
    config_maps = sample.all(CONFIGMAPS)
    return {
        name[len(prefix) :]: body for name, body in config_maps.items() if name.startswith(prefix)
    }


def holders_of(sample: Sample, group: str) -> list[Json]:
    """Return the reservation pods of a GPU group."""
    listing = sample.installation.gateway.list(
        PODS, as_type=dict, namespace=RESERVATIONS, selectors=Selectors(labels=f"{GROUP}={group}")
    )
    return list(listing.items)


def holder_name(node: str, group: str) -> str:
    digest = hashlib.sha256(f"{node}/{group}".encode()).hexdigest()
    return f"gpu-reservation-{digest[:16]}"


def amounts(sample: Sample, owner: str, part: str) -> dict[str, Fraction]:
    """Return `requested` or `allocated` of the status of a pod's group."""
    status = sample.pod_group_of(owner).get("status") or {}
    stated = (status.get("resourcesStatus") or {}).get(part) or {}
    return {name: parse_quantity(value) for name, value in stated.items()}


def request_of(sample: Sample, pod: str) -> Json:
    """Return the spec of a pod's bind request."""
    spec: Json = sample.get(BINDREQUESTS, pod)["spec"]
    return spec
