"""Follow Config and SchedulingShards: write down which processes are wanted, and on the objects how they stand.

One pass a second, and one at every change. A pass reads the store, the files of the installation and the
ports; it writes the wanted file when it changes, and conditions when they change. Specs are never written.
When the API server is away the store keeps what it knew, so nothing is stopped.
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
from typing import Any

from django.db import DatabaseError

from kaiweb.operator.conditions import RECONCILING, Outlook, beginning, conditions
from kaiweb.operator.probe import Probe, Seen
from kaiweb.operator.wishes import has_scale_adjuster, is_on, wanted_of
from kaiweb.supervisor.layout import BEAT, BINDING, CONTROLLERS_PROCESS, WEB_PROCESS
from kaiweb.supervisor.wanted import (
    Wanted,
    read_wanted,
    scheduling_process,
    shards_among,
    write_wanted,
)
from kube.conditions import Said, merged_conditions
from kube.errors import KubeError, NotFoundError, UnauthorizedError
from kube.gateway import EventType, Gateway
from kube.objects.config import Config, ConfigSpec, SchedulingShard
from kube.objects.meta import KubeObject, convert
from kube.progress import WAIT_S, track
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
    """Return KAI's components of the Config, by the name it gives them, and the process each lives in."""
    parts = (
        ("PodGrouper", CONTROLLERS_PROCESS, is_on(spec.pod_grouper.service)),
        ("Binder", BINDING, is_on(spec.binder.service)),
        ("QueueController", CONTROLLERS_PROCESS, is_on(spec.queue_controller.service)),
        ("PodGroupController", CONTROLLERS_PROCESS, is_on(spec.pod_group_controller.service)),
        ("NodeScaleAdjuster", CONTROLLERS_PROCESS, has_scale_adjuster(spec)),
        ("KAIAdmission", WEB_PROCESS, True),
    )
    return {name: process for name, process, runs in parts if runs}


@dataclass(slots=True)
class Operator:
    """The operator of one installation.

    Parameters
    ----------
    environment : the installation's variables
    forget : told which shards have a scheduler when others have ended
    cycle_fault : returns why a shard's scheduler does no work though it runs; "" if it does
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
    _wanted: Wanted | None = None
    _kept: frozenset[str] = frozenset()
    _has_prometheus: tuple[float, bool] = (float("-inf"), False)
    _changed: threading.Event = field(default_factory=threading.Event)

    def run(self, stop: threading.Event) -> None:
        """Follow and make passes until `stop` is set, or credentials are refused (then `failure` says so)."""
        self.store.subscribe(self._heard)
        for resource, as_type in FOLLOWED:
            # Without the definitions there is nothing to follow; bootstrap brings them.
            reflector: Reflector[Any] = Reflector(self.gateway, resource, as_type, self.store)
            reflector.start(stop, on_fatal=partial(self._fail, stop))
        while not stop.is_set():
            track().beat("looking at shards and processes", WAIT_S)
            if self.store.is_synced():
                self.pass_once()
            self._changed.wait(PASS_S)
            self._changed.clear()

    def pass_once(self) -> None:
        """Make the wanted file and all conditions true once."""
        config: Config | None = self.store.get(CONFIGS, CONFIG_NAME)
        shards = dict(self.store.view().of(SHARDS, SchedulingShard))
        before = self._wanted or self._read()
        wanted, problems = wanted_of(config, shards, before, self.environment)
        if wanted != self._wanted:
            self._wanted = wanted
            write_wanted(self.home, wanted)
            log.info("wanted: shards %s", ", ".join(wanted.shards))
        seen = self.probe.look(wanted.shards, self.clock())
        self._forget_all_but({*wanted.shards, *shards_among(seen.listed)})
        if config is not None:
            self._tell(CONFIGS, config, self._config_outlook(config, seen))
        for name, shard in shards.items():
            fault = self.cycle_fault(name) if scheduling_process(name) in seen.up else ""
            outlook = _shard_outlook(shard, problems.get(name, ""), seen, wanted.off, fault)
            self._tell(SHARDS, shard, outlook)

    def _forget_all_but(self, kept: Collection[str]) -> None:
        """Hand on who is left once somebody has ended: while a scheduler lives it still has things to say."""
        if self._kept == kept:
            return
        try:
            self.forget(kept)
        except DatabaseError as error:
            log.warning("what ended schedulers have said stays for now: %s", error)
        else:
            self._kept = frozenset(kept)

    def _read(self) -> Wanted:
        try:
            return read_wanted(self.home)
        except ValueError as error:
            log.error("begin anew: %s", error)
            return Wanted()

    def _config_outlook(self, config: Config, seen: Seen) -> Outlook:
        parts = components_of(config.spec)
        return Outlook(
            generation=config.metadata.generation,
            is_adopted=seen.is_adopted,
            missing=[name for name, process in parts.items() if process not in seen.up],
            reasons={name: seen.faults.get(process, "") for name, process in parts.items()},
            unmet=self._unmet(config.spec),
        )

    def _unmet(self, spec: ConfigSpec) -> list[str]:
        """Return what the cluster lacks; we run no Prometheus of our own, its operator does."""
        prometheus = spec.prometheus
        if not prometheus.enabled or prometheus.external_prometheus_url:
            return []
        asked_at, has_it = self._has_prometheus
        if self.clock() - asked_at > DEPENDENCY_S:
            try:
                self.gateway.get(CRDS, PROMETHEUS_CRD, as_type=KubeObject)
                has_it = True
            except NotFoundError:
                has_it = False
            except KubeError as error:
                log.warning("cannot look for Prometheus: %s", error)
            self._has_prometheus = (self.clock(), has_it)
        return [] if has_it else ["KAI-prometheus is missing prometheus operator"]

    def _tell(self, resource: Resource, value: Config | SchedulingShard, outlook: Outlook) -> None:
        """Write the conditions that changed; a new generation is greeted with Reconciling first."""
        try:
            if not _was_met(value):
                value = self._write(resource, value, beginning(outlook.generation))
            self._write(resource, value, conditions(outlook))
        except NotFoundError:
            log.debug("%s %s went away", resource.kind, value.metadata.name)
        except UnauthorizedError:
            raise
        except KubeError as error:
            log.warning("conditions of %s %s: %s", resource.kind, value.metadata.name, error)

    def _write(
        self, resource: Resource, value: Config | SchedulingShard, said: Mapping[str, Said]
    ) -> Config | SchedulingShard:
        written = merged_conditions(value.status.conditions, said, self.wall())
        if written is None:
            return value
        body = {"status": {"conditions": written}}
        answer = self.gateway.patch(resource, value.metadata.name, body, sub="status")
        told: Config | SchedulingShard = convert(answer, type(value))
        self.store.assume(resource, told)
        return told

    def _heard(self, _resource: Resource, _event: EventType, _value: KubeObject) -> None:
        self._changed.set()

    def _fail(self, stop: threading.Event, error: KubeError) -> None:
        self.failure = str(error)
        stop.set()
        self._changed.set()


def _shard_outlook(
    shard: SchedulingShard, problem: str, seen: Seen, off: Collection[str], cycle_fault: str
) -> Outlook:
    process = scheduling_process(shard.metadata.name)
    needed = set() if process in off else {process, BEAT}
    faults = [f"{name}: {seen.faults[name]}" for name in sorted(needed & seen.faults.keys())]
    return Outlook(
        generation=shard.metadata.generation,
        problem=problem,
        is_adopted=seen.is_adopted,
        missing=[] if needed <= seen.up and not cycle_fault else ["Scheduler"],
        reasons={"Scheduler": "; ".join(faults) or cycle_fault},
    )


def _was_met(value: Config | SchedulingShard) -> bool:
    return any(
        condition.type == RECONCILING and condition.observed_generation == value.metadata.generation
        for condition in value.status.conditions
    )
