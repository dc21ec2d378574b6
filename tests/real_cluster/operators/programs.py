"""Which operators are run, and how each is built and told where the cluster is.

    python -m tests.real_cluster.operators.programs            # builds those of the tests
    python -m tests.real_cluster.operators.programs --all      # builds all of them (`make operators`)

The custom resource definitions and webhooks come from the modules, so they are those of the same version.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.real_cluster.build import (
    ClusterUnavailableError,
    Program,
    cache_folder,
    ensure_program,
    go_command,
    go_mod_of,
)

#: Where the training operator reads its certificate; it has no flag for it.
TRAINING_CERTIFICATES = Path("/tmp/k8s-webhook-server/serving-certs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Free ports of this machine for one operator."""

    webhook: int
    metrics: int
    health: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One operator.

    Attributes
    ----------
    module : the Go module
    namespace : where it is installed
    overlay : the folder of its kustomization in the module: definitions, roles, webhooks; "" if it is not used
    account : the service account that it runs as; "" if it runs as the administrator
    definitions : files of custom resource definitions in the module, for those without an overlay
    flags : returns its arguments
    configuration : returns the text of the file that follows `--config`; "" if it reads none
    is_quick : whether it is built and run by `make test`
    """

    name: str
    module: str
    version: str
    package: str
    namespace: str
    flags: Callable[[Ports, Path], Sequence[str]]
    configuration: Callable[[Ports, Path], str] = lambda _ports, _certificates: ""
    overlay: str = ""
    account: str = ""
    definitions: Sequence[str] = ()
    is_quick: bool = False

    @property
    def program(self) -> Program:
        return Program(
            name=self.name,
            version=self.version,
            package=self.package,
            ldflags="",
            go_mod=lambda: go_mod_of(self.name, self.module, self.version),
        )

    def folder(self) -> Path:
        """Return the folder of the module's source, which Go keeps."""
        answer = go_command(
            "mod", "download", "-json", f"{self.module}@{self.version}", cwd=cache_folder()
        )
        return Path(json.loads(answer)["Dir"])

    def find(self) -> Path | None:
        """Return the program if it is in the cache."""
        path = cache_folder() / "bin" / self.program.file_name
        return path if os.access(path, os.X_OK) else None


def _configuration_of(group: str, namespace: str) -> Callable[[Ports, Path], str]:
    """Return what writes the configuration of JobSet or LeaderWorkerSet, which are told the same things."""

    def configuration(ports: Ports, certificates: Path) -> str:
        return json.dumps(
            {
                "apiVersion": f"{group}/v1alpha1",
                "kind": "Configuration",
                "leaderElection": {
                    "leaderElect": True,
                    "resourceNamespace": namespace,
                    # Shorter than by default, so that a test of the succession does not take half a minute.
                    "leaseDuration": "6s",
                    "renewDeadline": "4s",
                    "retryPeriod": "1s",
                },
                "webhook": {
                    "host": "127.0.0.1",
                    "port": ports.webhook,
                    "certDir": str(certificates),
                },
                "metrics": {"bindAddress": f"127.0.0.1:{ports.metrics}"},
                "health": {"healthProbeBindAddress": f"127.0.0.1:{ports.health}"},
                "internalCertManagement": {"enable": False},
            }
        )

    return configuration


JOBSET = Operator(
    name="jobset",
    module="sigs.k8s.io/jobset",
    version="v0.11.1",
    package="sigs.k8s.io/jobset",
    namespace="jobset-system",
    overlay="config/default",
    account="jobset-controller-manager",
    flags=lambda _ports, _certificates: (),
    configuration=_configuration_of("config.jobset.x-k8s.io", "jobset-system"),
    is_quick=True,
)
LEADER_WORKER_SET = Operator(
    name="lws",
    module="sigs.k8s.io/lws",
    version="v0.8.0",
    package="sigs.k8s.io/lws/cmd",
    namespace="lws-system",
    overlay="config/default",
    account="lws-controller-manager",
    flags=lambda _ports, _certificates: (),
    configuration=_configuration_of("config.lws.x-k8s.io", "lws-system"),
)
TRAINING = Operator(
    name="training-operator",
    module="github.com/kubeflow/training-operator",
    version="v1.9.3",
    package="github.com/kubeflow/training-operator/cmd/training-operator.v1",
    # Not all: its MPIJob is an older version of the one that the MPI operator defines.
    definitions=("manifests/base/crds/kubeflow.org_pytorchjobs.yaml",),
    namespace="kubeflow",
    flags=lambda ports, _certificates: (
        "--enable-scheme=pytorchjob",
        f"--metrics-bind-address=127.0.0.1:{ports.metrics}",
        f"--health-probe-bind-address=127.0.0.1:{ports.health}",
        f"--webhook-server-port={ports.webhook}",
    ),
)
MPI = Operator(
    name="mpi-operator",
    module="github.com/kubeflow/mpi-operator",
    version="v0.8.0",
    package="github.com/kubeflow/mpi-operator/cmd/mpi-operator",
    definitions=("manifests/base/kubeflow.org_mpijobs.yaml",),
    namespace="mpi-operator",
    flags=lambda _ports, _certificates: ("--kube-api-qps=50", "--kube-api-burst=100"),
)
OPERATORS = (JOBSET, LEADER_WORKER_SET, TRAINING, MPI)


if __name__ == "__main__":
    try:
        for operator in OPERATORS:
            if operator.is_quick or "--all" in sys.argv:
                print(ensure_program(operator.program))
    except ClusterUnavailableError as error:
        sys.exit(f"operators skipped: {error}")
