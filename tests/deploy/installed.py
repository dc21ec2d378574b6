"""Processes of an installed chart, started here from the Deployments in the cluster, as kubelets would in containers."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kaiweb.supervisor import ports
from kaiweb.supervisor.broker import broker_command, broker_url, write_broker_config
from tests.deploy.chart import Manifest, containers, main_container, processes
from tests.integration.stack import wait_until
from tests.real_cluster.cluster import RealCluster, die_with_parent
from tests.real_cluster.installation import account_kubeconfig, run_kubectl

NAMESPACE = "kai-scheduler"
PROGRAMS = Path(sys.executable).parent
START_S = 180.0
#: One command, also on a machine that shares its processors with much other work.
COMMAND_S = 600.0
#: The webhooks are registered by their URL on this machine: no network leads from the server to a Service.
NO_SERVICE = ("KAIWEB_ADMISSION_SERVICE", "KAIWEB_ADMISSION_PORT")


@dataclass(slots=True)
class Replica:
    """One container: its command and environment, and the process that runs them."""

    name: str
    command: Sequence[str]
    environment: dict[str, str]
    folder: Path
    web_port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )

    def kill(self) -> None:
        """End the container as a node failure does."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()

    def log_end(self) -> str:
        lines = (self.folder / "log").read_text(errors="replace").splitlines()[-15:]
        return f"== {self.name}\n" + "\n".join(lines)


@dataclass(slots=True)
class Installed:
    """All replicas of the Deployments of a release.

    Attributes
    ----------
    server : the address under which the replicas reach the API server; its own if empty
    environment : further variables of every replica
    """

    cluster: RealCluster
    folder: Path
    database: str
    broker: str
    server: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    replicas: list[Replica] = field(default_factory=list)

    def start(self) -> None:
        """Run the Job, then start every replica of every Deployment."""
        self._bootstrap()
        for process, deployment in processes(self.objects("deployment")).items():
            for number in range(deployment["spec"].get("replicas", 1)):
                replica = self._replica(f"{process}-{number}", deployment)
                replica.start()
                self.replicas.append(replica)

    def roll(self, rest: Callable[[float], None]) -> None:
        """Replace all replicas by those of the present Deployments, in the way that each Deployment names.

        Parameters
        ----------
        rest : waits so many seconds and tends the replicas meanwhile
        """
        self._bootstrap()
        for process, deployment in processes(self.objects("deployment")).items():
            has_surge = deployment["spec"]["strategy"]["type"] == "RollingUpdate"
            for number in range(deployment["spec"].get("replicas", 1)):
                old = self.replica(f"{process}-{number}")
                new = self._replica(f"{process}-{number}", deployment, suffix="-next")
                if not has_surge:
                    self.replicas.remove(old)
                    old.stop()
                new.start()
                self._await_started(new, deployment, rest)
                if has_surge:
                    self.replicas.remove(old)
                    old.stop()
                self.replicas.append(new)

    def _await_started(
        self, replica: Replica, deployment: Manifest, rest: Callable[[float], None]
    ) -> None:
        """Wait for the startup probe of a replica, as a kubelet does."""
        program, *arguments = main_container(deployment)["startupProbe"]["exec"]["command"]
        deadline = time.monotonic() + START_S
        while subprocess.run(
            [str(PROGRAMS / program), *arguments],
            env=replica.environment,
            capture_output=True,
            check=False,
        ).returncode:
            assert time.monotonic() < deadline, replica.log_end()
            rest(1.0)

    def stop(self) -> None:
        for replica in self.replicas:
            if replica.process is not None and replica.process.poll() is None:
                replica.process.terminate()
        for replica in self.replicas:
            replica.stop()
        self.replicas.clear()

    def tend(self) -> None:
        """Start what has ended again, as a kubelet does."""
        for replica in self.replicas:
            if replica.process is not None and replica.process.poll() is not None:
                replica.start()

    def replica(self, name: str) -> Replica:
        (match,) = (replica for replica in self.replicas if replica.name == name)
        return match

    def objects(self, *arguments: str) -> list[Manifest]:
        namespace = () if "-n" in arguments or "-A" in arguments else ("-n", NAMESPACE)
        text = run_kubectl(self.cluster, "get", *arguments, *namespace, "-o", "json")
        body: Manifest = json.loads(text)
        items: list[Manifest] = body.get("items", [body])
        return items

    def await_that(self, holds: Callable[[], Any], what: str, timeout_s: float = 60.0) -> float:
        """Wait while containers that end are started again; return the seconds it took."""
        began = time.monotonic()

        def tended() -> Any:
            self.tend()
            return holds()

        try:
            wait_until(tended, what=what, timeout_s=timeout_s, every_s=0.5)
        except AssertionError as error:
            logs = "\n".join(replica.log_end() for replica in self.replicas)
            raise AssertionError(f"{error}\n{logs}") from error
        return time.monotonic() - began

    def is_ready(self) -> bool:
        """Return whether every web process says that the whole installation does its work."""
        return all(not self.unready(replica) for replica in self.replicas if replica.web_port)

    def unready(self, replica: Replica) -> str:
        """Return what `/readyz` of one web process complains of."""
        url = f"http://127.0.0.1:{replica.web_port}/readyz"
        try:
            with urllib.request.urlopen(url, timeout=5):
                return ""
        except urllib.error.HTTPError as error:
            return error.read().decode()
        except OSError as error:
            return str(error)

    def kaiweb(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of kaiweb as the administrator."""
        return subprocess.run(
            [str(PROGRAMS / "kaiweb"), *arguments],
            env={
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "kaiweb.settings.local",
                "KAIWEB_HOME": str(self.folder / "admin"),
                "KAIWEB_KUBECONFIG": str(self.cluster.kubeconfig),
                "DATABASE_URL": self.database,
                "REDIS_URL": self.broker,
            },
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )

    def _bootstrap(self) -> None:
        (job,) = self.objects("job")
        (container,) = containers(job)
        account = job["spec"]["template"]["spec"]["serviceAccountName"]
        environment = self._environment("bootstrap", container, account)
        result = subprocess.run(
            [str(PROGRAMS / container["command"][0]), *container["command"][1:]],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert result.returncode == 0, result.stderr

    def _replica(self, name: str, deployment: Manifest, *, suffix: str = "") -> Replica:
        container = main_container(deployment)
        pod = deployment["spec"]["template"]["spec"]
        account = pod["serviceAccountName"] if pod["automountServiceAccountToken"] else ""
        environment = self._environment(name + suffix, container, account)
        program, *arguments = container["command"]
        port = ports.pick()
        is_web = "serve" in arguments
        if is_web:
            arguments[arguments.index("0.0.0.0")] = "127.0.0.1"
            arguments[arguments.index("8000")] = str(port)
        arguments = [part.replace("0.0.0.0:8080", f"127.0.0.1:{port}") for part in arguments]
        if "KAIWEB_SCHEDULER_METRICS_PORT" in environment:
            environment["KAIWEB_SCHEDULER_METRICS_PORT"] = str(port)
            environment["KAIWEB_SCHEDULER_METRICS_HOST"] = "127.0.0.1"
        return Replica(
            name=name,
            command=[str(PROGRAMS / program), *arguments],
            environment=environment,
            folder=self.folder / (name + suffix),
            web_port=port if is_web else 0,
        )

    def _environment(self, name: str, container: Manifest, account: str) -> dict[str, str]:
        environment = {"PATH": f"{PROGRAMS}:{os.environ['PATH']}", **self.environment}
        for item in container["env"]:
            if item["name"] not in NO_SERVICE:
                reference = item.get("valueFrom", {}).get("secretKeyRef")
                environment[item["name"]] = (
                    self._secret(reference["key"]) if reference else item.get("value", "")
                )
        home = self.folder / name
        home.mkdir(parents=True, exist_ok=True)
        kubeconfig = home / "kubeconfig"
        if account:
            account_kubeconfig(kubeconfig, self.cluster, account, self.server)
        return {**environment, "KAIWEB_HOME": str(home), "KAIWEB_KUBECONFIG": str(kubeconfig)}

    def _secret(self, key: str) -> str:
        (secret,) = self.objects("secret", "kaiweb")
        return base64.b64decode(secret["data"][key]).decode()


@dataclass(slots=True)
class Broker:
    """A Redis or Valkey with a password that keeps nothing on disk."""

    url: str
    folder: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server, empty."""
        self.process = subprocess.Popen(
            broker_command(self.folder), stdout=subprocess.DEVNULL, preexec_fn=die_with_parent
        )

    def kill(self) -> None:
        """End the server with SIGKILL; all that it held is lost."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()


@contextmanager
def running_broker(folder: Path) -> Iterator[Broker]:
    """Start a broker and yield it."""
    folder.mkdir(parents=True, exist_ok=True)
    port = ports.pick()
    write_broker_config(port=port, home=folder)
    broker = Broker(url=broker_url(port=port, home=folder), folder=folder)
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


def machine_values(database: str, broker: str) -> dict[str, Any]:
    """Return values with the stores of this machine and two replicas of what may have two."""
    return {
        "global": {"gpuSharing": True},
        "admission": {"gpuFractionRuntimeClassName": ""},
        "postgresql": {"enabled": False, "url": database},
        "redis": {"enabled": False, "url": broker},
        "web": {"replicas": 2, "sslRedirect": False},
        "binder": {"replicas": 2},
        "podgrouper": {"replicas": 2},
        "scheduler": {"replicas": 2},
    }


@contextmanager
def simulated_nodes(
    cluster: RealCluster, nodes: str, *, has_controller_manager: bool = False
) -> Iterator[None]:
    """Play kubelets and, unless a real controller manager runs, the controllers of workloads."""
    log = (cluster.folder / "simulators.log").open("wb")
    extent = "--kubelets-only" if has_controller_manager else "--garbage-collector"
    process = subprocess.Popen(
        [
            sys.executable, "-m", "sandbox.simulate", "--kubeconfig", str(cluster.kubeconfig),
            "--nodes", nodes, "--no-stream", extent,
        ],
        stdout=log, stderr=log, preexec_fn=die_with_parent,
    )  # fmt: skip
    try:
        yield
    finally:
        process.terminate()
        process.wait(15)
        log.close()
