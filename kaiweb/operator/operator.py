"""Follow Config and SchedulingShards: write the file of desired processes, and conditions on the objects.

One pass a second, and one at every change. A pass reads the store, the files of the installation and the ports.
It writes the wanted file and the conditions when they change, and never a spec. While the API server is away
the store keeps the last known objects, so that nothing is stopped.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from django.db import DatabaseError

from kaiweb.operator.conditions import RECONCILING, ObjectState, beginning, conditions
from kaiweb.operator.deployments import ClusterDeployments
from kaiweb.operator.desired import desired_processes, has_scale_adjuster, is_enabled
from kaiweb.operator.probe import ProbeResult
from kaiweb.supervisor.desired import (
    DesiredProcesses,
    read_desired,
    scheduling_process,
    shards_among,
    write_desired,
)
from kaiweb.supervisor.layout import BEAT, BINDING, CONTROLLERS_PROCESS, WEB_PROCESS
from kube.conditions import ConditionState, merged_conditions
from kube.errors import KubeError, NotFoundError, UnauthorizedError
from kube.gateway import EventType, Gateway
from kube.objects.config import Config, ConfigSpec, SchedulingShard
from kube.objects.meta import KubeObject, convert
from kube.process.progress import WAIT_S, track
from kube.resources import CONFIGS, CRDS, SHARDS, Resource
from kube.store import Store
from kube.watch import Reflector
from scheduler.settings.shard import CONFIG_NAME

log = logging.getLogger(__name__)

PASS_S = 1.0
DEPENDENCY_S = 30.0
PROMETHEUS_CRD = "prometheuses.monitoring.coreos.com"
FOLLOWED: tuple[tuple[Resource, type[KubeObject]], ...] = (
    (CONFIGS, Config),
    (SHARDS, SchedulingShard),
)


def components_of(spec: ConfigSpec) -> dict[str, str]:
    """Return KAI's enabled components by the name KAI uses, each with the process that does its work."""
    parts = (
        ("PodGrouper", CONTROLLERS_PROCESS, is_enabled(spec.pod_grouper.service)),
        ("Binder", BINDING, is_enabled(spec.binder.service)),
        ("QueueController", CONTROLLERS_PROCESS, is_enabled(spec.queue_controller.service)),
        ("PodGroupController", CONTROLLERS_PROCESS, is_enabled(spec.pod_group_controller.service)),
        ("NodeScaleAdjuster", CONTROLLERS_PROCESS, has_scale_adjuster(spec)),
        ("KAIAdmission", WEB_PROCESS, True),
    )
    return {name: process for name, process, is_used in parts if is_used}


class Probe(Protocol):
    """Finds out which processes are up."""

    def look(self, shards: tuple[str, ...], now: float, /) -> ProbeResult: ...


@dataclass(slots=True)
class Operator:
    """The operator of one installation.

    Parameters
    ----------
    environment : the variables of the installation
    forget : deletes stored results of all shards but those it is called with
    deployments : makes the schedulers Deployments; None where a supervisor runs them
    cycle_fault : returns why the running scheduler of a shard finishes no cycles; "" if it does
    """

    gateway: Gateway
    home: Path
    probe: Probe
    environment: Mapping[str, str]
    forget: Callable[[Collection[str]], None]
    cycle_fault: Callable[[str], str] = lambda _shard: ""
    store: Store = field(default_factory=lambda: Store([kind for kind, _ in FOLLOWED]))
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], datetime] = lambda: datetime.now(UTC)
    failure: str = ""
    deployments: ClusterDeployments | None = None
    _desired: DesiredProcesses | None = None
    _remaining: frozenset[str] = frozenset()
    #: (When it was checked, whether its kinds are installed).
    _has_prometheus: tuple[float, bool] = (float("-inf"), False)
    _changed: threading.Event = field(default_factory=threading.Event)

    def run(self, stop: threading.Event) -> None:
        """Follow the objects until `stop` is set or credentials are refused; then `failure` is the reason."""
        self.store.subscribe(self._on_change)
        for resource, as_type in FOLLOWED:
            # The kinds are not optional: bootstrap has installed their definitions.
            reflector: Reflector[Any] = Reflector(self.gateway, resource, as_type, self.store)
            reflector.start(stop, on_fatal=partial(self._fail, stop))
        while not stop.is_set():
            track().beat("looking at shards and processes", WAIT_S)
            if self.store.is_synced():
                self.pass_once()
            self._changed.wait(PASS_S)
            self._changed.clear()

    def pass_once(self) -> None:
        """Bring the wanted file and all conditions up to date."""
        config: Config | None = self.store.get(CONFIGS, CONFIG_NAME)
        shards = dict(self.store.view().of(SHARDS, SchedulingShard))
        before = self._desired or self._read_desired()
        desired, problems = desired_processes(config, shards, before, self.environment)
        if desired != self._desired:
            self._desired = desired
            write_desired(self.home, desired)
            log.info("desired shards: %s", ", ".join(desired.shards))
        if self.deployments is not None:
            self.deployments.apply(desired, shards, self.clock(), config)
        probed = self.probe.look(desired.shards, self.clock())
        self._forget_all_but({*desired.shards, *shards_among(probed.process_names)})
        if config is not None:
            self._write_conditions(CONFIGS, config, self._config_state(config, probed))
        for name, shard in shards.items():
            fault = self.cycle_fault(name) if scheduling_process(name) in probed.up else ""
            state = _shard_state(shard, problems.get(name, ""), probed, desired.off, fault)
            self._write_conditions(SHARDS, shard, state)

    def _forget_all_but(self, shards: Collection[str]) -> None:
        """Delete stored results of stopped schedulers.

        Parameters
        ----------
        shards : those with a scheduler, also one that is being stopped, because it may still write
        """
        if self._remaining == shards:
            return
        try:
            self.forget(shards)
        except DatabaseError as error:
            log.warning("could not delete results of stopped schedulers, will retry: %s", error)
        else:
            self._remaining = frozenset(shards)

    def _read_desired(self) -> DesiredProcesses:
        try:
            return read_desired(self.home)
        except ValueError as error:
            log.error("cannot read the wanted file, starting from an empty one: %s", error)
            return DesiredProcesses()

    def _config_state(self, config: Config, probed: ProbeResult) -> ObjectState:
        parts = components_of(config.spec)
        return ObjectState(
            generation=config.metadata.generation,
            problem=self.deployments.refusal if self.deployments is not None else "",
            is_applied=probed.is_applied,
            missing=[name for name, process in parts.items() if process not in probed.up],
            reasons={name: probed.faults.get(process, "") for name, process in parts.items()},
            unmet=self._unmet_dependencies(config.spec),
        )

    def _unmet_dependencies(self, spec: ConfigSpec) -> list[str]:
        """Return what the cluster lacks: only the Prometheus operator can run a Prometheus for us."""
        prometheus = spec.prometheus
        if not prometheus.enabled or prometheus.external_prometheus_url:
            return []
        checked_at, is_installed = self._has_prometheus
        if self.clock() - checked_at > DEPENDENCY_S:
            try:
                self.gateway.get(CRDS, PROMETHEUS_CRD, as_type=KubeObject)
                is_installed = True
            except NotFoundError:
                is_installed = False
            except KubeError as error:
                log.warning("cannot check for the Prometheus operator: %s", error)
            self._has_prometheus = (self.clock(), is_installed)
        return [] if is_installed else ["KAI-prometheus is missing prometheus operator"]

    def _write_conditions(
        self, resource: Resource, value: Config | SchedulingShard, state: ObjectState
    ) -> None:
        """Write the conditions that changed; those of a new generation begin with Reconciling alone."""
        try:
            if not _has_begun(value):
                value = self._patch(resource, value, beginning(state.generation))
            self._patch(resource, value, conditions(state))
        except NotFoundError:
            log.debug("%s %s was deleted", resource.kind, value.metadata.name)
        except UnauthorizedError:
            raise
        except KubeError as error:
            log.warning(
                "cannot write conditions of %s %s: %s", resource.kind, value.metadata.name, error
            )

    def _patch(
        self,
        resource: Resource,
        value: Config | SchedulingShard,
        conditions: Mapping[str, ConditionState],
    ) -> Config | SchedulingShard:
        merged = merged_conditions(value.status.conditions, conditions, self.wall())
        if merged is None:
            return value
        body = {"status": {"conditions": merged}}
        answer = self.gateway.patch(resource, value.metadata.name, body, sub="status")
        updated: Config | SchedulingShard = convert(answer, type(value))
        self.store.assume(resource, updated)
        return updated

    def _on_change(self, _resource: Resource, _event: EventType, _value: KubeObject) -> None:
        self._changed.set()

    def _fail(self, stop: threading.Event, error: KubeError) -> None:
        self.failure = str(error)
        stop.set()
        self._changed.set()


def _shard_state(
    shard: SchedulingShard,
    problem: str,
    probed: ProbeResult,
    off: Collection[str],
    cycle_fault: str,
) -> ObjectState:
    process = scheduling_process(shard.metadata.name)
    needed = set() if process in off else {process, BEAT}
    faults = [f"{name}: {probed.faults[name]}" for name in sorted(needed & probed.faults.keys())]
    return ObjectState(
        generation=shard.metadata.generation,
        problem=problem,
        is_applied=probed.is_applied,
        missing=[] if needed <= probed.up and not cycle_fault else ["Scheduler"],
        reasons={"Scheduler": "; ".join(faults) or cycle_fault},
    )


def _has_begun(value: Config | SchedulingShard) -> bool:
    """Return whether conditions were written for the present generation."""
    return any(
        condition.type == RECONCILING and condition.observed_generation == value.metadata.generation
        for condition in value.status.conditions
    )
