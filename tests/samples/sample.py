"""One sample: its namespace, the manifests it applied, and how a test reads what became of them.

Writes go through kubectl, as a user's would; reads go through the gateway, which costs no process per look.
At the end everything a sample made is deleted, so that the machines are free for the next sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import yaml

from kaiweb.install import apply_definitions
from kube.errors import AlreadyExistsError, KubeError, NotFoundError
from kube.resources import (
    BINDREQUESTS,
    CRONJOBS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODGROUPS,
    PODS,
    REPLICASETS,
    SERVICE_ACCOUNTS,
    STATEFULSETS,
    Resource,
)
from tests.integration.stack import Stack, wait_until
from tests.queues.live_cluster.objects import definitions_of
from tests.samples.installations import MANIFESTS, Installation

Json = dict[str, Any]
Event = tuple[str, str, str]
PATIENCE_S = 60.0
#: Owners first, so that no controller recreates what was just deleted.
OWNED_KINDS = (
    CRONJOBS,
    DEPLOYMENTS,
    STATEFULSETS,
    REPLICASETS,
    JOBS,
    PODS,
    PODGROUPS,
    BINDREQUESTS,
)
PLAIN_POD = """
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  labels: {{kai.scheduler/queue: default-queue}}
spec:
  schedulerName: kai-scheduler
  containers:
  - {{name: main, image: example.test/x:1, resources: {{limits: {{{limits}}}}}}}
"""


@dataclass(slots=True)
class Sample:
    """A namespace of one installation, with what was applied in it."""

    installation: Installation
    namespace: str
    _applied: list[str] = field(default_factory=list)

    @property
    def stack(self) -> Stack:
        return self.installation.stack

    # -- writing, as a user ------------------------------------------------------------------------
    def apply(self, name: str) -> None:
        """Apply `manifests/<name>`; objects without a namespace land in its namespace."""
        self.apply_text((MANIFESTS / name).read_text())

    def apply_text(self, text: str) -> None:
        self._applied.append(text)
        self.stack.kubectl("apply", "-n", self.namespace, "-f", "-", stdin=text)

    def answer_to(self, text: str) -> str:
        """Apply something and return all that kubectl says to it, warnings and refusals too."""
        self._applied.append(text)
        return self.stack.kubectl("apply", "-n", self.namespace, "-f", "-", stdin=text, check=False)

    def kubectl(self, *arguments: str) -> str:
        return self.stack.kubectl("-n", self.namespace, *arguments)

    def define(self, name: str) -> None:
        """Install minimal definitions of the third-party kinds in `manifests/<name>`."""
        docs = [body for body in yaml.safe_load_all((MANIFESTS / name).read_text()) if body]
        apply_definitions(self.installation.gateway, definitions_of(docs))

    def add_nodes(self, name: str) -> None:
        """Put the machines of `manifests/<name>` into the cluster until the sample is cleared."""
        self._applied.append((MANIFESTS / name).read_text())
        self.installation.add_nodes(MANIFESTS / name)

    # -- reading -----------------------------------------------------------------------------------
    def all(self, resource: Resource) -> dict[str, Json]:
        """Return name -> object of a kind: those of its namespace, or of the cluster."""
        namespace = self.namespace if resource.namespaced else ""
        items = self.installation.gateway.list(resource, as_type=dict, namespace=namespace).items
        return {item["metadata"]["name"]: item for item in items}

    def get(self, resource: Resource, name: str) -> Json:
        namespace = self.namespace if resource.namespaced else ""
        return self.installation.gateway.get(resource, name, as_type=dict, namespace=namespace)

    def exists(self, resource: Resource, name: str) -> bool:
        try:
            self.get(resource, name)
        except NotFoundError:
            return False
        return True

    def pod(self, name: str) -> Json:
        return self.get(PODS, name)

    def pods_of(self, owner: str) -> list[Json]:
        """Return the pods whose controller has this name, in the order of their names."""
        return [pod for _, pod in sorted(self.all(PODS).items()) if owner in _owner_names(pod)]

    def bound(self, *owners_or_names: str) -> list[Json]:
        """Return the pods of these names or controllers that have a node; all of the namespace when no name is passed."""
        return [
            pod
            for name, pod in sorted(self.all(PODS).items())
            if pod["spec"].get("nodeName")
            and (not owners_or_names or {name, *_owner_names(pod)} & set(owners_or_names))
        ]

    def pod_groups_of(self, owner: str) -> list[Json]:
        """Return the pod groups that an object of this name owns."""
        return [g for _, g in sorted(self.all(PODGROUPS).items()) if owner in _owner_names(g)]

    def pod_group_of(self, owner: str) -> Json:
        """Wait for the one pod group that an object of this name owns."""
        pods = self.wait(lambda: self.pod_groups_of(owner), f"the pod group of {owner}")
        assert len(pods) == 1, [group["metadata"]["name"] for group in pods]
        return pods[0]

    def reasons_of(self, owner: str) -> dict[str, str]:
        """Return reason -> message of the condition that an owner's pod group waits with."""
        conditions = (self.pod_group_of(owner).get("status") or {}).get("schedulingConditions")
        return {
            why["reason"]: why.get("message", "")
            for condition in conditions or ()
            if condition["type"] == "UnschedulableOnNodePool"
            for why in condition["reasons"]
        }

    def events_of(self, kind: str, name: str) -> list[Event]:
        """Return (type, reason, message) of the events about one object."""
        return [
            (event.get("type", ""), event.get("reason", ""), event.get("message", ""))
            for event in self.all(EVENTS).values()
            if (event["involvedObject"]["kind"], event["involvedObject"].get("name"))
            == (kind, name)
        ]

    def all_events(self, reason: str) -> list[Json]:
        """Return the whole events of this namespace that have one reason."""
        return [event for event in self.all(EVENTS).values() if event.get("reason") == reason]

    def node_of(self, pod: str) -> Json:
        """Return the machine a bound pod is on."""
        return self.installation.gateway.get(NODES, self.pod(pod)["spec"]["nodeName"], as_type=dict)

    # -- waiting -----------------------------------------------------------------------------------
    def wait(self, holds: Callable[[], Any], what: str, timeout_s: float = PATIENCE_S) -> Any:
        """Poll until it returns something true and return that."""
        return wait_until(holds, what=what, timeout_s=timeout_s, stack=self.stack)

    def wait_bound(self, *owners_or_names: str, count: int) -> list[Json]:
        """Wait until so many pods of these names or controllers, and no more, have a node and stay."""

        def enough() -> list[Json]:
            pods = [
                pod
                for pod in self.bound(*owners_or_names)
                if "deletionTimestamp" not in pod["metadata"]
            ]
            return pods if len(pods) >= count else []

        pods: list[Json] = self.wait(enough, f"{count} bound pods of {owners_or_names}")
        assert len(pods) == count, [pod["metadata"]["name"] for pod in pods]
        return pods

    def stays(self, holds: Callable[[], bool], what: str) -> None:
        """Check that something holds while two other pods are scheduled, one after the other.

        A pod that nothing blocks would have started with the first of them.
        """
        for name in ("probe-1", "probe-2"):
            self.apply_text(PLAIN_POD.format(name=name, limits="cpu: 10m"))
            self.wait_bound(name, count=1)
            self.kubectl("delete", "pod", name, "--wait=false", "--grace-period=0", "--force")
            assert holds(), what

    # -- the end -----------------------------------------------------------------------------------
    def clear(self) -> None:
        """Delete everything this sample made and wait until no pod of it is left."""
        for text in self._applied:
            arguments = ("delete", "-n", self.namespace, "--ignore-not-found", "--wait=false")
            # Bad manifests are applied on purpose; what is not there needs no deletion.
            self.stack.kubectl(*arguments, "-f", "-", stdin=text, check=False)
        self._applied.clear()
        self.wait(self._is_swept, f"the end of all in {self.namespace}")

    def _is_swept(self) -> bool:
        remaining = 0
        for resource in OWNED_KINDS:
            for name, body in self.all(resource).items():
                remaining += 1
                if "deletionTimestamp" not in body["metadata"]:
                    self._delete(resource, name)
        return remaining == 0

    def _delete(self, resource: Resource, name: str) -> None:
        grace = 0 if resource is PODS else None
        try:
            self.installation.gateway.delete(
                resource, name, namespace=self.namespace, grace_period_s=grace
            )
        except NotFoundError:
            pass
        except KubeError as error:
            if error.permanent:
                raise


@contextmanager
def prepared_sample(installation: Installation, namespace: str) -> Iterator[Sample]:
    """Make the namespace with the service account that its pods need, and clear it at the end."""
    _create(installation, NAMESPACES, {"metadata": {"name": namespace}}, "")
    # A real cluster leaves this account to a controller.
    _create(installation, SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace)
    sample = Sample(installation=installation, namespace=namespace)
    try:
        yield sample
    finally:
        sample.clear()


def _create(installation: Installation, resource: Resource, body: Json, namespace: str) -> None:
    whole = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
    try:
        installation.gateway.create(resource, whole, namespace=namespace)
    except AlreadyExistsError:
        return


def _owner_names(body: Json) -> set[str]:
    return {owner["name"] for owner in body["metadata"].get("ownerReferences") or ()}
