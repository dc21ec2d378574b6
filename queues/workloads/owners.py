"""The workload that a pod group was made for."""

from __future__ import annotations

from kube.keys import TOP_OWNER
from kube.objects.podgroup import PodGroup


def owner_of(group: PodGroup) -> tuple[str, str]:
    """Return kind and name of the workload from the grouper's annotation, else from the owner."""
    fields: dict[str, str] = {}
    for line in group.metadata.annotations.get(TOP_OWNER, "").splitlines():
        name, _, value = line.partition(":")
        fields[name.strip()] = value.strip().strip("\"'")
    if fields.get("kind") and fields.get("name"):
        return fields["kind"], fields["name"]
    for owner in group.metadata.owner_references:
        return owner.kind, owner.name
    return "PodGroup", group.metadata.name
