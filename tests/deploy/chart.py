"""Render the chart with the real helm."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
CHART = DEPLOY / "helm" / "kaiweb"
NAMESPACE = "kai-scheduler"
#: Helm logs that the folders with CRDs and roles are links.
LINK_NOTE = "found symbolic link"

Manifest = dict[str, Any]


class HelmError(Exception):
    """Helm refused; the message is what it printed."""


def run_helm(helm: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """Run helm and return what it prints."""
    result = subprocess.run(
        [str(helm), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **(environment or {})},
    )
    if result.returncode:
        lines = [line for line in result.stderr.splitlines() if LINK_NOTE not in line]
        raise HelmError("\n".join([*lines, result.stdout]))
    return result.stdout


def rendered(helm: Path, *settings: str, namespace: str = NAMESPACE) -> list[Manifest]:
    """Return the objects of the chart; `settings` are `key=value` as for `--set`."""
    flags = [flag for setting in settings for flag in ("--set", setting)]
    text = run_helm(helm, "template", "kaiweb", str(CHART), "-n", namespace, *flags)
    return documents(text)


def documents(text: str) -> list[Manifest]:
    return [document for document in yaml.safe_load_all(text) if document]


def files(folder: Path) -> list[Manifest]:
    """Return all objects in the YAML files of a folder."""
    return [doc for file in sorted(folder.glob("*.yaml")) for doc in documents(file.read_text())]


def of_kind(objects: Iterable[Manifest], kind: str) -> dict[str, Manifest]:
    """Return the objects of one kind by name."""
    return {item["metadata"]["name"]: item for item in objects if item["kind"] == kind}


def containers(workload: Manifest) -> list[Manifest]:
    """Return all containers of a Deployment, StatefulSet or Job."""
    spec = workload["spec"]["template"]["spec"]
    return [*spec.get("initContainers", ()), *spec["containers"]]


def processes(objects: Iterable[Manifest]) -> dict[str, Manifest]:
    """Return the Deployments of kaiweb's own processes by process."""
    return {
        item["metadata"]["labels"]["kaiweb/process"]: item
        for item in objects
        if item["kind"] == "Deployment" and "kaiweb/process" in item["metadata"]["labels"]
    }


def main_container(deployment: Manifest) -> Manifest:
    container: Manifest = deployment["spec"]["template"]["spec"]["containers"][0]
    return container


def variables(container: Manifest) -> dict[str, str]:
    """Return the variables with a value of their own."""
    return {item["name"]: item["value"] for item in container["env"] if "value" in item}
