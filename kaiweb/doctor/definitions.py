"""Check that our custom resource definitions are there, served, and ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kaiweb import install
from kaiweb.doctor.finding import ClusterContext, Finding, fault, note, warning
from kube.errors import NotFoundError
from kube.resources import CRDS, NODES

APPLY = "kaiweb bootstrap"
#: Kubernetes 1.x: the oldest that we are tested with.
OLDEST_MINOR = 31
#: How many minor versions Kubernetes supports beside each other.
MAX_APART = 3


def check_definitions(context: ClusterContext) -> Iterator[Finding]:
    """Compare the definitions of the cluster with ours."""
    for our_definition in install.documents(context.deploy / "crds"):
        name = our_definition["metadata"]["name"]
        try:
            definition = context.gateway.get(CRDS, name, as_type=dict)
        except NotFoundError:
            yield fault(f"definition {name}", "does not exist", APPLY)
            continue
        yield from _differences(name, our_definition["spec"], definition)


def _differences(name: str, our_spec: Any, definition: Any) -> Iterator[Finding]:
    subject = f"definition {name}"
    conditions = {item["type"]: item for item in definition.get("status", {}).get("conditions", ())}
    if conditions.get("Established", {}).get("status") != "True":
        yield fault(subject, "is not served yet", f"kubectl describe crd {name}")
    our_versions = {item["name"]: item for item in our_spec["versions"]}
    served_versions = {
        item["name"]: item for item in definition["spec"]["versions"] if item.get("served")
    }
    for version in sorted(our_versions.keys() - served_versions.keys()):
        yield fault(subject, f"version {version} is not served", APPLY)
    for version in sorted(
        set(definition.get("status", {}).get("storedVersions", ())) - our_versions.keys()
    ):
        yield warning(
            subject,
            f"objects may be stored in version {version}, which we do not have",
            f"rewrite them (kubectl get {name} -A -o yaml | kubectl replace -f -), then remove the version"
            " from status.storedVersions",
        )
    if definition["spec"].get("conversion", {}).get("strategy") == "Webhook":
        yield fault(
            subject,
            "asks a webhook for conversion, which nobody answers without KAI's operator",
            f"kubectl patch crd {name} --type=json -p "
            """'[{"op": "replace", "path": "/spec/conversion", "value": {"strategy": "None"}}]'""",
        )
    for version in sorted(our_versions.keys() & served_versions.keys()):
        if _fields(our_versions[version]) != _fields(served_versions[version]):
            yield warning(
                subject, f"the fields of version {version} are not ours, probably KAI's", APPLY
            )


def _fields(version: Any) -> Any:
    """Return the paths of all fields, without texts and rules, which may differ."""
    return _paths(version.get("schema", {}).get("openAPIV3Schema", {}))


def _paths(schema: Any, path: str = "") -> frozenset[str]:
    fields = {path}
    for name, inner in (schema.get("properties") or {}).items():
        fields |= _paths(inner, f"{path}.{name}")
    if isinstance(schema.get("items"), dict):
        fields |= _paths(schema["items"], f"{path}[]")
    return frozenset(fields)


def check_versions(context: ClusterContext) -> Iterator[Finding]:
    """Report nodes whose Kubernetes is older than what we are tested with, or more than three versions apart."""
    minors: dict[int, str] = {}
    for node in context.all_of(NODES):
        version = node.get("status", {}).get("nodeInfo", {}).get("kubeletVersion", "")
        match = re.match(r"v1\.(\d+)", version)
        if match:
            minors.setdefault(int(match[1]), node["metadata"]["name"])
    if not minors:
        yield note("nodes", "no node reports its version")
        return
    oldest, newest = min(minors), max(minors)
    if oldest < OLDEST_MINOR:
        yield warning(
            f"node {minors[oldest]}",
            f"runs Kubernetes 1.{oldest}; expected 1.{OLDEST_MINOR} or newer",
            "upgrade the cluster",
        )
    if newest - oldest > MAX_APART:
        yield warning(
            "nodes",
            f"run Kubernetes 1.{oldest} to 1.{newest}; Kubernetes supports three versions apart",
            f"upgrade node {minors[oldest]}",
        )
