"""The operator in a cluster: it applies what the chart installed as `kai-config` asks, and looks whether it is available.

The chart renders the Deployments of all processes, and of the shards that its values name; it keeps their text in a
ConfigMap, from which the operator brings back what others changed or deleted (`rendering.py`). For any other shard it
applies the chart's template, another ConfigMap, with the name of the shard in it. What it wants is also written into a
ConfigMap, which beat and the web processes mount (`KAIWEB_WANTED`).
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
from kaiweb.operator.rendering import (
    MANAGED_BY,
    MANAGER,
    PROCESS_LABEL,
    budgets_of,
    equal_settings,
    render,
    with_config,
)
from kaiweb.supervisor.desired import DESIRED_FILE, DesiredProcesses, as_json, scheduling_process
from kube.errors import (
    BadRequestError,
    ForbiddenError,
    InvalidError,
    KubeError,
    NotFoundError,
    UnauthorizedError,
)
from kube.gateway import Gateway, PatchOptions, PatchType, Selectors
from kube.keys import SYSTEM_NAMESPACE
from kube.objects.config import Config, ConfigSpec, SchedulingShard
from kube.resources import (
    CONFIGMAPS,
    CONFIGS,
    DEPLOYMENTS,
    POD_DISRUPTION_BUDGETS,
    SERVICE_MONITORS,
    SERVICES,
    SHARDS,
    Resource,
)

log = logging.getLogger(__name__)

TEMPLATE_HASH = "kaiweb.dev/template-hash"
TEMPLATE = "kaiweb-scheduler-template"
PROCESS_TEMPLATES = "kaiweb-process-templates"
OPERATOR = "operator"
WANTED = "kaiweb-wanted"
#: Stands for the name of the shard in the template.
PLACEHOLDER = "__shard__"
#: How often what others changed in our Deployments is set right again.
REPAIR_S = 60.0
#: How soon what the cluster refused is tried again.
RETRY_S = 10.0
APPLIED: Mapping[str, Resource] = {
    "Deployment": DEPLOYMENTS,
    "Service": SERVICES,
    "PodDisruptionBudget": POD_DISRUPTION_BUDGETS,
    "ServiceMonitor": SERVICE_MONITORS,
}

Manifest = dict[str, Any]


@dataclass(slots=True)
class ClusterDeployments:
    """Applies objects, and looks at Deployments as `ProcessProbe` looks at processes."""

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
    #: What the processes were last applied for, and when they are applied again.
    _applied_for: tuple[ConfigSpec, DesiredProcesses] | None = None
    _next_at: float = float("-inf")
    #: What the cluster refused of the processes' objects; "" if nothing.
    refusal: str = ""

    def apply(
        self,
        desired: DesiredProcesses,
        shards: Mapping[str, SchedulingShard],
        now: float,
        config: Config | None = None,
    ) -> None:
        """Create, repair and delete what the Config and shards ask for; errors are logged and tried again.

        Parameters
        ----------
        shards : the objects, which own their Deployments: the cluster deletes those of a deleted shard
        config : without one what the chart installed is left as it is
        """
        self._desired = desired
        spec = config.spec if config is not None else ConfigSpec()
        try:
            self._publish(desired)
            if config is not None and self._is_due(spec, desired, now):
                self._apply_processes(config, desired, now)
            self._apply_shards(desired, spec, shards, now)
        except UnauthorizedError:
            raise
        except KubeError as error:
            log.warning("the Deployments cannot be brought up to date: %s", error)

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
        expected_processes = {scheduling_process(shard) for shard in shards} - set(
            self._desired.off
        )
        self._last = ProbeResult(
            process_names=frozenset(deployments),
            up=frozenset(deployments.keys() - faults.keys()),
            is_applied=expected_processes <= deployments.keys(),
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

    def _is_due(self, spec: ConfigSpec, desired: DesiredProcesses, now: float) -> bool:
        return self._applied_for != (spec, desired) or now >= self._next_at

    def _apply_processes(self, config: Config, desired: DesiredProcesses, now: float) -> None:
        """Apply the chart's objects; one that the cluster refuses stays as it is and holds up no other."""
        self._applied_for, self._next_at = (config.spec, desired), now + RETRY_S
        try:
            templates = self._texts(PROCESS_TEMPLATES)
        except NotFoundError:
            log.debug("the chart keeps no templates: its Deployments follow helm upgrade only")
            return
        if OPERATOR not in {_process(item) for item in self._deployments()}:
            log.info("the operator's own Deployment is gone: the release is being removed")
            return
        rendered = render(templates, config.spec, desired)
        refusals = []
        for body in rendered.wanted:
            if body["metadata"].get("labels", {}).get(MANAGED_BY) == MANAGER:
                body["metadata"]["ownerReferences"] = [_reference(CONFIGS, config)]
            try:
                self._patch(APPLIED[body["kind"]], body)
            except NotFoundError as error:
                # Without the Prometheus operator nobody knows its kinds; a condition says so.
                log.debug("%s: %s", body["kind"], error)
            except (BadRequestError, ForbiddenError, InvalidError) as error:
                refusals.append(f"{body['kind']} {body['metadata']['name']}: {error}")
        for body in rendered.unwanted:
            self._delete_object(body)
        self._delete_old_budgets(
            {
                body["metadata"]["name"]
                for body in rendered.wanted
                if body["kind"] == POD_DISRUPTION_BUDGETS.kind
            }
        )
        self.refusal = "; ".join(refusals)
        if refusals:
            log.warning("the cluster refuses what kai-config asks for: %s", self.refusal)
        else:
            self._next_at = now + REPAIR_S

    def _delete_old_budgets(self, wanted: set[str]) -> None:
        """Delete budgets that a former Config had turned on; those of shards go with their shard."""
        listing = self.gateway.list(
            POD_DISRUPTION_BUDGETS,
            as_type=dict,
            namespace=self.namespace,
            selectors=Selectors(labels=f"{MANAGED_BY}={MANAGER}"),
        )
        for body in listing.items:
            owners = {owner["kind"] for owner in body["metadata"].get("ownerReferences") or ()}
            if CONFIGS.kind in owners and body["metadata"]["name"] not in wanted:
                self._delete_object({**body, "kind": POD_DISRUPTION_BUDGETS.kind})

    def _delete_object(self, body: Manifest) -> None:
        resource, name = APPLIED[body["kind"]], body["metadata"]["name"]
        try:
            self.gateway.delete(resource, name, namespace=self.namespace)
            log.info("deleted %s %s, which kai-config does not want", resource.kind, name)
        except NotFoundError:
            log.debug("%s %s is gone already", resource.kind, name)

    def _apply_shards(
        self,
        desired: DesiredProcesses,
        spec: ConfigSpec,
        shards: Mapping[str, SchedulingShard],
        now: float,
    ) -> None:
        existing = {_process(item): item for item in self._deployments()}
        own_processes = {process for process, item in existing.items() if _is_ours(item)}
        shard_by_process = {
            scheduling_process(shard): shard
            for shard in desired.shards
            if scheduling_process(shard) not in desired.off
        }
        for process in sorted(own_processes - shard_by_process.keys()):
            self._delete(existing[process])
        missing = {
            process: shard
            for process, shard in shard_by_process.items()
            if process in own_processes or process not in existing
        }
        if missing:
            template = self._template()
            for process, shard in missing.items():
                bodies = [
                    with_config(body, spec, desired) for body in from_template(template, shard)
                ]
                bodies += budgets_of(bodies, [], spec)
                self._apply_shard(process, bodies, shards.get(shard), now)

    def _apply_shard(
        self,
        process: str,
        bodies: list[Manifest],
        owner: SchedulingShard | None,
        now: float,
    ) -> None:
        digest = hashlib.sha256(json.dumps(bodies, sort_keys=True).encode()).hexdigest()[:16]
        last_digest, applied_at = self._applied_at.get(process, ("", 0.0))
        if digest == last_digest and now - applied_at < REPAIR_S:
            return
        for body in bodies:
            metadata = body["metadata"]
            metadata.setdefault("labels", {})[MANAGED_BY] = MANAGER
            metadata.setdefault("annotations", {})[TEMPLATE_HASH] = digest
            if owner is not None:
                metadata["ownerReferences"] = [_reference(SHARDS, owner)]
            self._patch(APPLIED[body["kind"]], body)
        self._applied_at[process] = (digest, now)

    def _template(self) -> str:
        """Return the text of the template.

        Raises
        ------
        KubeError : the chart has not made it
        """
        text = self._texts(TEMPLATE).get("shard.yaml", "")
        if not text:
            raise NotFoundError(f"config map {self.namespace}/{TEMPLATE} has no shard.yaml")
        return text

    def _texts(self, name: str) -> dict[str, str]:
        body = self.gateway.get(CONFIGMAPS, name, as_type=dict, namespace=self.namespace)
        return dict(body.get("data") or {})

    def _delete(self, item: Manifest) -> None:
        name = item["metadata"]["name"]
        log.info("deleting Deployment %s, whose shard is gone or disabled", name)
        self._applied_at.pop(_process(item), None)
        for resource in (DEPLOYMENTS, SERVICES, POD_DISRUPTION_BUDGETS):
            self._delete_object({"kind": resource.kind, "metadata": {"name": name}})

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
            if not equal_settings(variables.get(name), value)
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


def _reference(resource: Resource, owner: Config | SchedulingShard) -> Manifest:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
