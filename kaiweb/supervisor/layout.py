"""The processes of an installation, and the order in which they start.

    wave 0   broker, embedded cluster (API server)
    wave 1   web, mirror, controllers, simulated nodes and workloads
    wave 2   workers, the beat and the operator, which need the tables and the cluster's kinds

Some of them depend on the cluster: there is a scheduler for each SchedulingShard, and Config kai-config sets flags
(`DesiredProcesses`, written by the operator).

Between wave 0 and 1 `kaiweb bootstrap` migrates the database and applies the custom resource definitions.

In a real cluster no process should run with the rights of an administrator. With `KAIWEB_ACCOUNTS=<folder>` every
process has the kubeconfig of its own service account (deploy/rbac); only bootstrap and the simulators, which act
as kubelets, use that of the installation.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from kaiweb.settings import env
from kaiweb.supervisor import ports
from kaiweb.supervisor.broker import broker_command, broker_url
from kaiweb.supervisor.desired import (
    DEFAULT_SHARD,
    DesiredProcesses,
    can_be_process,
    scheduling_process,
)
from kaiweb.supervisor.process import ProcessSpec
from kube.keys import SHARD_TASK_PREFIX
from queues.cluster import IN_CLUSTER
from queues.mirror.part import Part

#: Where the simulators serve the utilisation of their GPUs, as the Prometheus of a real cluster would.
UTILISATION_PORT = "utilisation"
EMBEDDED_PORTS = ("broker", "cluster", "scheduler-metrics", "controller-metrics", UTILISATION_PORT)
#: The service accounts of the processes; `<account>.kubeconfig` in the folder KAIWEB_ACCOUNTS. The controllers have
#: that of KAI's pod grouper, so that a role which lets it read a further kind of workload reaches ours.
WEB, CONTROLLERS, SCHEDULER, BINDER = "web", "pod-grouper", "scheduler", "binder"
OPERATOR = "operator"
#: Processes that other modules refer to.
WEB_PROCESS, CONTROLLERS_PROCESS, BINDING, BEAT = "web", "controllers", "binding", "beat"
#: The values that the simulators accept as --nodes; repeated here, because nothing imports the sandbox.
NODES = re.compile(r"demo|none|[0-9]{1,5}x[0-9]{1,3}")
BROKER = "broker"
#: By the command: in a burst the rows of the dashboard come after the binds.
NICENESS = {"mirror_cluster": 5}
MIRROR_WORKERS, MOST_MIRROR_WORKERS = "KAIWEB_MIRROR_WORKERS", 16
ACCOUNTS = (WEB, CONTROLLERS, SCHEDULER, BINDER, OPERATOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The choices of the environment."""

    home: Path
    web_port: int
    #: By name; ports of further shards are added at run time.
    ports: dict[str, int]
    redis_url: str
    kubeconfig: Path
    #: The folder with the kubeconfigs of the processes; None if all use that of the installation.
    accounts: Path | None
    has_own_broker: bool
    has_sandbox: bool
    #: Whether the embedded cluster serves Workloads of Kubernetes' gang API.
    serves_gangs: bool
    has_simulators: bool
    has_demo_stream: bool
    #: The simulated nodes: a profile name, or e.g. 500x8.
    nodes: str
    #: These have a scheduler also without a SchedulingShard.
    shards: tuple[str, ...]
    #: Among how many processes the mirror is divided.
    mirror_workers: int = 1

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment variables that every process of this installation gets."""
        return {
            "KAIWEB_HOME": str(self.home),
            "KAIWEB_PORT": str(self.web_port),
            "REDIS_URL": self.redis_url,
            "KUBECONFIG": str(self.kubeconfig),
            "PYTHONUNBUFFERED": "1",
            # Ten processes share the cores: BLAS threads would only compete with each other.
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
        }

    def environment_of(self, account: str) -> dict[str, str]:
        """Return the variables of a process that talks to the cluster as one of `ACCOUNTS`."""
        if self.accounts is None:
            return self.environment
        return {
            **self.environment,
            "KAIWEB_KUBECONFIG": str(_kubeconfig_of(self.accounts, account)),
        }


def read_installation(home: Path, ports: dict[str, int]) -> Installation:
    """Read the choices from the environment; see README for the variables.

    Raises
    ------
    EnvError : a value that cannot be parsed; `check_environment` checks the rest
    """
    redis_url = env.text("REDIS_URL")
    external = env.text("KAIWEB_KUBECONFIG")
    accounts = env.text("KAIWEB_ACCOUNTS")
    return Installation(
        home=home,
        web_port=env.port("KAIWEB_PORT", 8000),
        ports=ports,
        redis_url=redis_url or broker_url(port=ports["broker"], home=home),
        kubeconfig=Path(external) if external else home / "kubeconfig",
        accounts=Path(accounts) if accounts else None,
        has_own_broker=not redis_url,
        has_sandbox=not external,
        serves_gangs=env.flag("KAIWEB_GANGS", False),
        has_simulators=not external or env.flag("KAIWEB_SIMULATE", False),
        has_demo_stream=env.flag("DEMO", True),
        nodes=env.text("KAIWEB_NODES", "demo"),
        shards=tuple(env.shards()),
        mirror_workers=env.number(MIRROR_WORKERS, 1),
    )


def check_environment() -> None:
    """Check the variables that name shards, nodes and files of the cluster.

    Raises
    ------
    EnvError : a value that no process could use
    """
    for shard in env.shards():
        if not can_be_process(shard):
            raise env.EnvError(f"KAIWEB_SHARDS: expected names that are DNS labels, got {shard!r}")
    _check_mirror_workers()
    nodes = env.text("KAIWEB_NODES", "demo")
    if not NODES.fullmatch(nodes):
        raise env.EnvError(
            f"KAIWEB_NODES: expected demo, none or <nodes>x<GPUs>, e.g. 500x8, got {nodes!r}"
        )
    kubeconfig = env.text("KAIWEB_KUBECONFIG")
    if kubeconfig not in ("", IN_CLUSTER) and not Path(kubeconfig).is_file():
        raise env.EnvError(f"KAIWEB_KUBECONFIG: expected a file, got {kubeconfig}")
    accounts = env.text("KAIWEB_ACCOUNTS")
    for account in ACCOUNTS if accounts else ():
        if not _kubeconfig_of(Path(accounts), account).is_file():
            raise env.EnvError(
                f"KAIWEB_ACCOUNTS: expected {account}.kubeconfig in {accounts}, found none"
            )


def _check_mirror_workers() -> None:
    count = env.number(MIRROR_WORKERS, 1)
    if not 1 <= count <= MOST_MIRROR_WORKERS:
        raise env.EnvError(f"{MIRROR_WORKERS}: expected 1 to {MOST_MIRROR_WORKERS}, got {count}")
    if count > 1 and not env.text("DATABASE_URL"):
        raise env.EnvError(
            f"{MIRROR_WORKERS}: expected 1, got {count}: SQLite has one writer at a time; several need PostgreSQL"
            " (DATABASE_URL)"
        )


def shards_of(plan: Installation, desired: DesiredProcesses) -> list[str]:
    """Return the shards that have a scheduler."""
    return sorted({*plan.shards, *desired.shards})


def metrics_port_name(shard: str) -> str:
    """Return the name in ports.json of the port where a shard's scheduler serves metrics."""
    return "scheduler-metrics" if shard == DEFAULT_SHARD else f"scheduler-metrics-{shard}"


def specs_with_ports(plan: Installation, desired: DesiredProcesses) -> list[ProcessSpec]:
    """Return the processes, after choosing a metrics port for each further shard."""
    names = tuple(metrics_port_name(shard) for shard in shards_of(plan, desired))
    missing = tuple(name for name in names if name not in plan.ports)
    plan.ports.update(ports.remembered(plan.home, missing))
    return specs(plan, desired)


def specs(plan: Installation, desired: DesiredProcesses) -> list[ProcessSpec]:
    """Return the processes of the installation; `plan.ports` has a port for each shard's metrics."""
    listing = _Listing(plan, desired)
    _add_servers(listing)
    _add_cluster_followers(listing)
    _add_workers(listing)
    return listing.specs


@dataclass(slots=True)
class _Listing:
    """The processes listed so far; a disabled one is left out."""

    plan: Installation
    desired: DesiredProcesses
    specs: list[ProcessSpec] = field(default_factory=list)

    def add(self, name: str, wave: int, *command: str, account: str = WEB, **more: str) -> None:
        """Add a process.

        Parameters
        ----------
        account : one of `ACCOUNTS`
        more : variables besides those of the installation and of `wanted`
        """
        if name in self.desired.off:
            return
        spec = ProcessSpec(
            name=name,
            wave=wave,
            command=(*command, *self.desired.arguments.get(name, ())),
            env={
                **self.plan.environment_of(account),
                **more,
                **self.desired.environment.get(name, {}),
            },
            broker_port=self.plan.ports["broker"] if name == BROKER else 0,
            niceness=max(NICENESS.get(word, 0) for word in command),
        )
        self.specs.append(spec)

    def add_kaiweb(self, name: str, wave: int, *arguments: str, account: str) -> None:
        """Add a process that runs a management command."""
        self.add(name, wave, sys.executable, "-m", "kaiweb", *arguments, account=account)

    def add_mirror(self) -> None:
        """Add the workers of the mirror; one alone needs no arguments."""
        count = self.plan.mirror_workers
        for index in range(count):
            division = () if count == 1 else ("--worker", str(index), "--workers", str(count))
            name = Part(index, count).named("mirror")
            self.add_kaiweb(name, 1, "mirror_cluster", *division, account=WEB)

    def add_worker(self, name: str, queue: str, account: str, **more: str) -> None:
        """Add a Celery worker of one queue."""
        self.add(
            name, 2, sys.executable, "-m", "celery", "-A", "kaiweb", "worker",
            "-Q", queue, "-n", f"{name}@%h", "-P", "solo", "-l", "WARNING",
            "--without-gossip", "--without-mingle", account=account, **more,
        )  # fmt: skip


def _add_servers(listing: _Listing) -> None:
    plan = listing.plan
    if plan.has_own_broker:
        listing.add(BROKER, 0, *broker_command(plan.home))
    if plan.has_sandbox:
        listing.add(
            "cluster", 0, sys.executable, "-m", "sandbox.apiserver",
            "--home", str(plan.home), "--port", str(plan.ports["cluster"]),
            *(["--gangs"] if plan.serves_gangs else []),
        )  # fmt: skip


def _add_cluster_followers(listing: _Listing) -> None:
    plan = listing.plan
    listing.add_kaiweb(WEB_PROCESS, 1, "serve", account=WEB)
    listing.add_mirror()
    metrics_address = f"127.0.0.1:{plan.ports['controller-metrics']}"
    listing.add_kaiweb(
        CONTROLLERS_PROCESS, 1, "run_controllers", "--metrics-bind-address", metrics_address,
        account=CONTROLLERS,
    )  # fmt: skip
    if plan.has_simulators:
        stream = () if plan.has_demo_stream else ("--no-stream",)
        # The embedded API server collects garbage itself; a bare kube-apiserver does not.
        garbage = () if plan.has_sandbox else ("--garbage-collector",)
        listing.add(
            "simulators", 1, sys.executable, "-m", "sandbox.simulate",
            "--kubeconfig", str(plan.kubeconfig), "--nodes", plan.nodes,
            "--utilisation-port", str(plan.ports[UTILISATION_PORT]), *stream, *garbage,
        )  # fmt: skip


def _add_workers(listing: _Listing) -> None:
    plan = listing.plan
    for shard in shards_of(plan, listing.desired):
        listing.add_worker(
            scheduling_process(shard),
            f"{SHARD_TASK_PREFIX}{shard}",
            SCHEDULER,
            KAIWEB_SCHEDULER_METRICS_PORT=str(plan.ports[metrics_port_name(shard)]),
        )
    listing.add_worker(BINDING, "binding", BINDER)
    prometheus = env.text("KAIWEB_PROMETHEUS_URL")
    if plan.has_simulators and not prometheus:
        prometheus = f"http://127.0.0.1:{plan.ports[UTILISATION_PORT]}"
    listing.add_worker("worker", "default", WEB, KAIWEB_PROMETHEUS_URL=prometheus)
    # Simulations read what a scheduler reads, and must not delay anything else.
    listing.add_worker("simulations", "simulations", SCHEDULER)
    listing.add_kaiweb("operator", 2, "run_operator", account=OPERATOR)
    listing.add(
        BEAT, 2, sys.executable, "-m", "celery", "-A", "kaiweb", "beat", "-l", "WARNING",
        "--pidfile", "",
    )  # fmt: skip


def _kubeconfig_of(folder: Path, account: str) -> Path:
    return folder / f"{account}.kubeconfig"
