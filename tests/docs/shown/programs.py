"""The check of each program that a documentation page may show in a command; a program without one fails the test."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import kaiweb
from tests.docs.shown.kaiweb_commands import check_kaiweb, check_make
from tests.docs.shown.kubectl_commands import check_kubectl
from tests.docs.shown.options import arguments_of, listed_options
from tests.docs.shown.pages import ROOT
from tests.docs.shown.rest_commands import check_curl
from tests.docs.shown.shell import Command
from tests.real_cluster.build import HELM, cache_folder

#: Options of `docker build` and `docker compose` -> whether a value follows.
DOCKER_BUILD = {"-t": True, "--tag": True, "--target": True, "-f": True, "--file": True}
DOCKER_COMPOSE = {"--build": False, "-d": False, "--detach": False, "-v": False}
#: The name of the source distribution of this release, and of the folder that it unpacks to.
SDIST = f"kaiweb-{kaiweb.__version__}"
#: The user's own values, as the guide calls them.
OWN_VALUES = "my-values.yaml"
#: The file that sets the keys in Redis which the guide deletes.
LOCK_FILE = ROOT / "scheduler" / "loop" / "lock.py"
CHART = "deploy/helm/kaiweb"
#: Programs of the shell and the system; their arguments are not checked, since they do not depend on kaiweb.
SYSTEM = frozenset(
    {
        "base64",
        "cat",
        "cd",
        "cut",
        "date",
        "export",
        "for",
        "grep",
        "mkdir",
        "sleep",
        "tee",
        "umask",
    }
)


def check_helm(command: Command) -> None:
    verb, *words = command.words[1:]
    if not words:
        assert verb in {"install", "upgrade", "uninstall"}, (
            f"no rule for helm {verb} without arguments"
        )
        return
    binary = cache_folder() / "bin" / HELM.file_name
    if not os.access(binary, os.X_OK):
        pytest.skip(
            "helm is not built here (python -m tests.real_cluster.build): options not checked"
        )
    arguments = arguments_of(words, helm_options(binary, verb))
    assert arguments.positional[0] == "kaiweb", "the guide's release is kaiweb"
    assert arguments.positional[1:] == ([] if verb == "uninstall" else [CHART])
    assert arguments.value("-f", "--values") in {None, OWN_VALUES}


@cache
def helm_options(binary: Path, verb: str) -> dict[str, bool]:
    result = subprocess.run(
        [str(binary), verb, "--help"], capture_output=True, text=True, check=True
    )
    assert f"helm {verb} " in result.stdout, f"helm has no verb {verb}"
    return listed_options(result.stdout)


def check_docker(command: Command) -> None:
    verb, *words = command.words[1:]
    if verb == "compose":
        assert words[0] in {"up", "down", "logs", "pull", "ps"}, (
            f"no rule for docker compose {words[0]}"
        )
        arguments_of(words[1:], DOCKER_COMPOSE)
        return
    assert verb == "build", f"no rule for docker {verb}"
    arguments = arguments_of(words, DOCKER_BUILD)
    stages = re.findall(r"^FROM \S+ AS (\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert (arguments.value("--target") or stages[0]) in stages, "no such stage of the Dockerfile"
    image, _, tag = (arguments.value("-t", "--tag") or "").rpartition(":")
    values = (ROOT / CHART / "values.yaml").read_text()
    assert re.search(rf"\b{image.rpartition('/')[2]}\b", values), f"the chart uses no {image}"
    assert tag == kaiweb.__version__, f"tag {tag}, version {kaiweb.__version__}"
    assert arguments.positional in (["."], [SDIST]), f"no Dockerfile in {arguments.positional}"


def check_pip(command: Command) -> None:
    assert command.words[1] == "install", f"no rule for pip {command.words[1]}"
    options = {"--only-binary": True, "--require-hashes": False, "-r": True, "-q": False}
    for name in arguments_of(command.words[2:], options).positional:
        assert name == "kaiweb-*.whl", f"expected pip install kaiweb-*.whl, got {name}"


def check_python(command: Command) -> None:
    if command.words[1] != "-m":
        assert (ROOT / command.words[1]).is_file(), f"no file {command.words[1]}"
        return
    spec = importlib.util.find_spec(command.words[2])
    assert spec is not None, f"no module {command.words[2]}"
    source = Path(spec.origin or "").read_text()
    for word in command.words[3:]:
        assert not word.startswith("--") or f'"{word}"' in source, f"no option {word}"


def check_npm(command: Command) -> None:
    package = json.loads((ROOT / "frontend" / "web" / "package.json").read_text())
    assert command.words[1] == "run", f"no rule for npm {command.words[1]}"
    assert command.words[2] in package["scripts"], f"no script {command.words[2]}"


def check_tar(command: Command) -> None:
    expected = ("-xzf", f"{SDIST}.tar.gz")
    assert command.words[1:] == expected, f"expected {expected}, got {command.words[1:]}"


def check_pytest(command: Command) -> None:
    for word in command.words[1:]:
        assert word.startswith("-") or (ROOT / word.partition("::")[0]).exists(), f"no file {word}"


def check_celery(command: Command) -> None:
    arguments = arguments_of(command.words[1:], {"-A": True, "-Q": True})
    assert (arguments.value("-A"), arguments.positional) == ("kaiweb", ["worker"])


def check_redis_cli(command: Command) -> None:
    """Check that the key which a person is told to delete is one that the scheduler sets for its lock."""
    arguments = arguments_of(command.words[1:], {"-u": True})
    verb, key = arguments.positional
    assert (arguments.value("-u"), verb) == ("$REDIS_URL", "del")
    prefix = key.rpartition(":")[0]
    assert f'f"{prefix}:{{' in LOCK_FILE.read_text(), f"no key {prefix}"


RULES: dict[str, Callable[[Command], None]] = {
    "celery": check_celery,
    "curl": check_curl,
    "docker": check_docker,
    "helm": check_helm,
    "kaiweb": lambda command: check_kaiweb(command.words[1:]),
    "kubectl": check_kubectl,
    "make": lambda command: check_make(command.words[1:]),
    "npm": check_npm,
    "pip": check_pip,
    "pytest": check_pytest,
    "python": check_python,
    "python3": check_python,
    "redis-cli": check_redis_cli,
    "tar": check_tar,
    **dict.fromkeys(SYSTEM, lambda command: None),
}
#: First words by which inline code, or a line of a block without a language, is taken for a command and checked.
PROGRAMS = (RULES.keys() - SYSTEM) | {
    "ansible", "apt", "apt-get", "aws", "az", "bash", "brew", "celery", "chmod", "cp", "docker-compose", "etcdctl", "flux",
    "gcloud", "gh", "git", "go", "jq", "kind", "kustomize", "minikube", "mkdocs", "mv", "node", "npx", "openssl", "pg_dump",
    "pg_restore", "pipx", "podman", "psql", "redis-cli", "rm", "scp", "sed", "skopeo", "sqlite3", "ssh", "sudo", "systemctl",
    "uv", "uvx", "valkey-cli", "wget",
}  # fmt: skip
