"""The operator in a cluster: a Deployment for the scheduler of each shard, and which Deployments are available.

The chart renders the Deployments of all other processes, and of the shards that its values name. For any other shard
the operator applies the chart's template, a ConfigMap, with the name of the shard in it. What it wants is also
written into a ConfigMap, which beat and the web processes mount (`KAIWEB_WANTED`).
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from kaiweb.operator.probe import ProbeResult
from kaiweb.supervisor.desired import DESIRED_FILE, DesiredProcesses, as_json, scheduling_process
from kube.errors import KubeError, NotFoundError, UnauthorizedError
from kube.gateway import Gateway, PatchOptions, PatchType, Selectors
from kube.keys import SYSTEM_NAMESPACE
from kube.objects.config import SchedulingShard
from kube.resources import CONFIGMAPS, DEPLOYMENTS, SERVICES, SHARDS, Resource

log = logging.getLogger(__name__)

PROCESS_LABEL = "kaiweb/process"
MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "kaiweb-operator"
TEMPLATE_HASH = "kaiweb.dev/template-hash"
TEMPLATE = "kaiweb-scheduler-template"
WANTED = "kaiweb-wanted"
#: Stands for the name of the shard in the template.
PLACEHOLDER = "__shard__"
#: How often what others changed in our Deployments is set right again.
REPAIR_S = 60.0
APPLIED: Mapping[str, Resource] = {"Deployment": DEPLOYMENTS, "Service": SERVICES}

Manifest = dict[str, Any]


@dataclass(slots=True)
class ClusterDeployments:
    """Makes Deployments, and looks at them as `ProcessProbe` looks at processes."""

    gateway: Gateway
    namespace: str = SYSTEM_NAMESPACE
    _desired: DesiredProcesses = field(default_factory=DesiredProcesses)
    _last: ProbeResult = field(
        default_factory=lambda: ProbeResult(
            process_names=frozenset(), up=frozenset(), is_applied=False
        )
    )
    _published: str = ""
    _applied_at: dict[str, tuple[str, float]] = field(default_factory=dict)

    def apply(
        self, desired: DesiredProcesses, shards: Mapping[str, SchedulingShard], now: float
    ) -> None:
        """Create, repair and delete the Deployments of shards; errors of the cluster are logged and tried again.

        Parameters
        ----------
        shards : the objects, which own their Deployments: the cluster deletes those of a deleted shard
        """
        self._desired = desired
        try:
            self._publish(desired)
            self._apply_shards(desired, shards, now)
        except UnauthorizedError:
            raise
        except KubeError as error:
            log.warning("the Deployments of shards cannot be brought up to date: %s", error)

    def look(self, shards: tuple[str, ...], _now: float) -> ProbeResult:
        """Report which processes have a Deployment, and which of these are available."""
        try:
            deployments = {_process(item): item for item in self._deployments()}
        except UnauthorizedError:
            raise
        except KubeError as error:
            log.warning("the Deployments cannot be listed: %s", error)
            return self._last
        faults = {
            process: fault
            for process, item in deployments.items()
            if (fault := unavailable(item) or self._unlike(process, item))
        }
        wanted = {scheduling_process(shard) for shard in shards} - set(self._desired.off)
        self._last = ProbeResult(
            process_names=frozenset(deployments),
            up=frozenset(deployments.keys() - faults.keys()),
            is_applied=wanted <= deployments.keys(),
            faults=faults,
        )
        return self._last

    def _publish(self, desired: DesiredProcesses) -> None:
        text = json.dumps(as_json(desired), indent=1, sort_keys=True)
        if text == self._published:
            return
        body = {
            "apiVersion": CONFIGMAPS.api_version,
            "kind": CONFIGMAPS.kind,
            "metadata": {"name": WANTED, "namespace": self.namespace},
            "data": {DESIRED_FILE: text},
        }
        self._patch(CONFIGMAPS, body)
        self._published = text

    def _apply_shards(
        self, desired: DesiredProcesses, shards: Mapping[str, SchedulingShard], now: float
    ) -> None:
        existing = {_process(item): item for item in self._deployments()}
        ours = {process for process, item in existing.items() if _is_ours(item)}
        wanted = {
            scheduling_process(shard): shard
            for shard in desired.shards
            if scheduling_process(shard) not in desired.off
        }
        for process in sorted(ours - wanted.keys()):
            self._delete(existing[process])
        missing = {
            process: shard
            for process, shard in wanted.items()
            if process in ours or process not in existing
        }
        if missing:
            template = self._template()
            for process, shard in missing.items():
                self._apply_shard(process, shard, template, shards.get(shard), now)

    def _apply_shard(
        self,
        process: str,
        shard: str,
        template: str,
        owner: SchedulingShard | None,
        now: float,
    ) -> None:
        digest = hashlib.sha256(template.encode()).hexdigest()[:16]
        last_digest, applied_at = self._applied_at.get(process, ("", 0.0))
        if digest == last_digest and now - applied_at < REPAIR_S:
            return
        for body in from_template(template, shard):
            metadata = body["metadata"]
            metadata.setdefault("labels", {})[MANAGED_BY] = MANAGER
            metadata.setdefault("annotations", {})[TEMPLATE_HASH] = digest
            if owner is not None:
                metadata["ownerReferences"] = [_reference(owner)]
            self._patch(APPLIED[body["kind"]], body)
        self._applied_at[process] = (digest, now)

    def _template(self) -> str:
        """Return the text of the template.

        Raises
        ------
        KubeError : the chart has not made it
        """
        body = self.gateway.get(CONFIGMAPS, TEMPLATE, as_type=dict, namespace=self.namespace)
        text: str = (body.get("data") or {}).get("shard.yaml", "")
        if not text:
            raise NotFoundError(f"config map {self.namespace}/{TEMPLATE} has no shard.yaml")
        return text

    def _delete(self, item: Manifest) -> None:
        name = item["metadata"]["name"]
        log.info("deleting Deployment %s, whose shard is gone or disabled", name)
        self._applied_at.pop(_process(item), None)
        for resource in APPLIED.values():
            try:
                self.gateway.delete(resource, name, namespace=self.namespace)
            except NotFoundError:
                log.debug("%s %s is gone already", resource.kind, name)

    def _deployments(self) -> list[Manifest]:
        listing = self.gateway.list(
            DEPLOYMENTS,
            as_type=dict,
            namespace=self.namespace,
            selectors=Selectors(labels=PROCESS_LABEL),
        )
        return list(listing.items)

    def _patch(self, resource: Resource, body: Manifest) -> None:
        self.gateway.patch(
            resource,
            body["metadata"]["name"],
            body,
            namespace=self.namespace,
            patch_type=PatchType.APPLY,
            options=PatchOptions(field_manager=MANAGER, force=True),
        )

    def _unlike(self, process: str, item: Manifest) -> str:
        """Return which setting of the Config the process was not started with; "" if there is none."""
        container = item["spec"]["template"]["spec"]["containers"][0]
        command = [*container.get("command", ()), *container.get("args", ())]
        variables = {entry["name"]: entry.get("value") for entry in container.get("env", ())}
        unlike = [flag for flag in self._desired.arguments.get(process, ()) if flag not in command]
        unlike += [
            name
            for name, value in self._desired.environment.get(process, {}).items()
            if not _equal(variables.get(name), value)
        ]
        if not unlike:
            return ""
        return f"it was not started with {', '.join(unlike)} of kai-config; run helm upgrade"


def from_template(template: str, shard: str) -> Iterator[Manifest]:
    """Yield the objects of one shard."""
    for body in yaml.safe_load_all(template.replace(PLACEHOLDER, shard)):
        if body:
            yield body


def unavailable(deployment: Manifest) -> str:
    """Return why a Deployment is not available in KAI's sense; "" if it is."""
    status, replicas = deployment.get("status") or {}, deployment["spec"].get("replicas", 1)
    if status.get("observedGeneration", 0) < deployment["metadata"].get("generation", 0):
        return "its Deployment has not been looked at yet"
    updated = status.get("updatedReplicas", 0)
    if updated != replicas:
        return f"{updated} of {replicas} pods are of the present version"
    conditions = {item["type"]: item for item in status.get("conditions", ())}
    if conditions.get("Available", {}).get("status") != "True":
        return f"{status.get('availableReplicas', 0)} of {replicas} pods are available"
    return ""


def _process(item: Manifest) -> str:
    process: str = item["metadata"]["labels"][PROCESS_LABEL]
    return process


def _is_ours(item: Manifest) -> bool:
    return bool(item["metadata"]["labels"].get(MANAGED_BY) == MANAGER)


def _reference(owner: SchedulingShard) -> Manifest:
    return {
        "apiVersion": SHARDS.api_version,
        "kind": SHARDS.kind,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _equal(have: str | None, want: str) -> bool:
    """Compare two values; JSON is compared by its meaning."""
    if have == want:
        return True
    try:
        return bool(json.loads(have or "") == json.loads(want))
    except ValueError:
        return False
