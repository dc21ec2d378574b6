"""Build kube-apiserver, kube-controller-manager, etcd and helm from their Go modules, once per version, into a cache.

No registry ships these binaries as a package, but the Go module proxy carries their sources. Each is
built in a tiny module of its own whose only requirement is the program: kube-apiserver additionally
needs a `replace` line for every staging module, because its go.mod points them at folders that exist
only in its own repository. Checksums are verified by Go itself (its checksum database).

    python -m tests.real_cluster.build        # builds what is missing, prints the folder

The cache is `$KAIWEB_CACHE/real-cluster` (default `.cache/real-cluster` in the checkout). Where Go is absent
the script says so and does nothing: the real cluster serves tests only, kaiweb runs without it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

KUBERNETES_VERSION = "v1.35.4"
STAGING_VERSION = "v0.35.4"
ETCD_VERSION = "v3.6.16"
HELM_VERSION = "v3.22.0"
CHECKOUT = Path(__file__).resolve().parents[2]


class ClusterUnavailableError(Exception):
    """No real kube-apiserver can be run on this machine; the message names what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One Go program: what to build and the module file it needs."""

    name: str
    version: str
    package: str
    ldflags: str
    go_mod: Callable[[], str]

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    """Where the two programs are."""

    kube_apiserver: Path
    etcd: Path


def cache_folder() -> Path:
    """Return the cache folder of the binaries; respects KAIWEB_CACHE."""
    return Path(os.environ.get("KAIWEB_CACHE") or CHECKOUT / ".cache") / "real-cluster"


def find_binaries() -> Binaries | None:
    """Return the binaries if both versions are in the cache already, without building."""
    paths = [cache_folder() / "bin" / program.file_name for program in PROGRAMS]
    if not all(os.access(path, os.X_OK) for path in paths):
        return None
    return Binaries(kube_apiserver=paths[0], etcd=paths[1])


def ensure_binaries(say: Callable[[str], None] = print) -> Binaries:
    """Build what is missing and return the binaries.

    Raises
    ------
    ClusterUnavailableError : no Go on PATH, or a build failed (the text carries the end of its output)
    """
    match = find_binaries()
    if match is not None:
        return match
    if shutil.which("go") is None:
        raise ClusterUnavailableError(
            "a real kube-apiserver needs the Go toolchain on PATH to build kube-apiserver and etcd, which is not there"
        )
    (cache_folder() / "bin").mkdir(parents=True, exist_ok=True)
    for program in PROGRAMS:
        _build(program, say)
    built = find_binaries()
    if built is None:
        raise ClusterUnavailableError(f"the build left no binaries in {cache_folder() / 'bin'}")
    return built


def ensure_program(program: Program, say: Callable[[str], None] = print) -> Path:
    """Build one program unless it is in the cache; return where it is.

    Raises
    ------
    ClusterUnavailableError : no Go on PATH, or the build failed
    """
    target = cache_folder() / "bin" / program.file_name
    if os.access(target, os.X_OK):
        return target
    if shutil.which("go") is None:
        raise ClusterUnavailableError(
            f"{program.name} is built with the Go toolchain, which is not on PATH"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    _build(program, say)
    return target


def is_built(program: Program) -> bool:
    """Return whether a program is in the cache, without building it."""
    return os.access(cache_folder() / "bin" / program.file_name, os.X_OK)


def _build(program: Program, say: Callable[[str], None]) -> None:
    target = cache_folder() / "bin" / program.file_name
    if target.exists():
        say(f"real cluster: {program.file_name} is in the cache")
        return
    module = cache_folder() / f"module-{program.name}"
    module.mkdir(parents=True, exist_ok=True)
    say(f"real cluster: building {program.name} {program.version} (minutes the first time)")
    (module / "go.mod").write_text(program.go_mod())
    started = time.monotonic()
    unfinished = target.with_suffix(f".{os.getpid()}.part")
    go_command(
        "build", "-trimpath", "-ldflags", f"-s -w {program.ldflags}",
        "-o", str(unfinished), program.package,
        cwd=module,
    )  # fmt: skip
    # Renamed at the end, so that an interrupted build never leaves a half-written program behind.
    unfinished.rename(target)
    size_mb = target.stat().st_size / 1e6
    say(
        f"real cluster: built {target.name} in {time.monotonic() - started:.0f} s, {size_mb:.0f} MB"
    )


def go_command(*args: str, cwd: Path) -> str:
    """Run one go command; the module file may be completed by it (-mod=mod)."""
    flags = f"{os.environ.get('GOFLAGS', '')} -mod=mod -buildvcs=false".strip()
    env = os.environ | {"GOFLAGS": flags, "CGO_ENABLED": "0", "GOWORK": "off"}
    result = subprocess.run(
        ["go", *args], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        tail = "\n".join(result.stderr.splitlines()[-15:])
        raise ClusterUnavailableError(f"go {args[0]} failed with {result.returncode}:\n{tail}")
    return result.stdout


def _kubernetes_go_mod() -> str:
    answer = go_command(
        "mod", "download", "-json", f"k8s.io/kubernetes@{KUBERNETES_VERSION}", cwd=cache_folder()
    )
    upstream = Path(json.loads(answer)["GoMod"]).read_text()
    staging = sorted(set(re.findall(r"^\s*(k8s\.io/\S+) => \./staging/", upstream, re.MULTILINE)))
    replaces = "".join(f"\t{name} => {name} {STAGING_VERSION}\n" for name in staging)
    return (
        f"module kaiweb/real-cluster/apiserver\n\n{_go_directive(upstream)}\n\n"
        f"require k8s.io/kubernetes {KUBERNETES_VERSION}\n\nreplace (\n{replaces})\n"
    )


def go_mod_of(name: str, module: str, version: str) -> str:
    """Return the module file of a program whose module needs no `replace` lines."""
    answer = go_command("mod", "download", "-json", f"{module}@{version}", cwd=cache_folder())
    upstream = Path(json.loads(answer)["GoMod"]).read_text()
    return (
        f"module kaiweb/real-cluster/{name}\n\n{_go_directive(upstream)}\n\n"
        f"require {module} {version}\n"
    )


def _go_directive(upstream: str) -> str:
    match = re.search(r"^go \S+$", upstream, re.MULTILINE)
    if match is None:
        raise ClusterUnavailableError("the upstream module file names no Go version")
    return match.group()


#: Without these a program reports v0.0.0-master and client tools misjudge what it can do.
KUBERNETES_LDFLAGS = (
    f"-X k8s.io/component-base/version.gitVersion={KUBERNETES_VERSION}"
    " -X k8s.io/component-base/version.gitMajor=1"
    f" -X k8s.io/component-base/version.gitMinor={KUBERNETES_VERSION.split('.')[1]}"
)
PROGRAMS = (
    Program(
        name="kube-apiserver",
        version=KUBERNETES_VERSION,
        package="k8s.io/kubernetes/cmd/kube-apiserver",
        ldflags=KUBERNETES_LDFLAGS,
        go_mod=_kubernetes_go_mod,
    ),
    Program(
        name="etcd",
        version=ETCD_VERSION,
        package="go.etcd.io/etcd/server/v3",
        ldflags="",
        go_mod=lambda: go_mod_of("etcd", "go.etcd.io/etcd/server/v3", ETCD_VERSION),
    ),
)


#: Garbage collection, Jobs, Deployments and the end of namespaces; only the tests that install the chart use it.
CONTROLLER_MANAGER = Program(
    name="kube-controller-manager",
    version=KUBERNETES_VERSION,
    package="k8s.io/kubernetes/cmd/kube-controller-manager",
    ldflags=KUBERNETES_LDFLAGS,
    go_mod=_kubernetes_go_mod,
)
#: Renders and checks the chart (tests/deploy); the real cluster does not need it.
HELM = Program(
    name="helm",
    version=HELM_VERSION,
    package="helm.sh/helm/v3/cmd/helm",
    # Without these it takes the cluster that `helm template` imagines for Kubernetes 1.20.
    ldflags=(
        f"-X helm.sh/helm/v3/internal/version.version={HELM_VERSION}"
        + "".join(
            f" -X helm.sh/helm/v3/pkg/{package}.k8sVersionMajor=1"
            f" -X helm.sh/helm/v3/pkg/{package}.k8sVersionMinor={KUBERNETES_VERSION.split('.')[1]}"
            for package in ("chartutil", "lint/rules")
        )
    ),
    go_mod=lambda: go_mod_of("helm", "helm.sh/helm/v3", HELM_VERSION),
)


if __name__ == "__main__":
    try:
        print(ensure_binaries().kube_apiserver.parent)
        print(ensure_program(CONTROLLER_MANAGER))
        print(ensure_program(HELM))
    except ClusterUnavailableError as error:
        sys.exit(f"real cluster skipped: {error}")
