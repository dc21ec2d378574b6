"""The commands that the guides show (their `sh` blocks), and the pipelines of the CI guide, run as they stand.

They run on an installation, with a token that may as much as the CI guide says.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.shown.code import is_shell
from tests.docs.shown.pages import ROOT, blocks
from tests.e2e.rest import Session
from tests.integration.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]
CI = "docs/guides/ci.md"
PAGES = (
    "README.md",
    "docs/start.md",
    "docs/guides/terminal.md",
    "docs/guides/submit-a-workload.md",
    "docs/guides/replay-a-cycle.md",
    CI,
)
#: Pages whose commands change what other tests need: kubectl asks the server to check them, and keeps nothing.
TRIED_PAGES = (
    "act-on-workloads", "broken-gangs-first", "gpu-models", "in-quota-reclaim", "maximum-run-time", "node-pools",
    "user-fairness", "what-if",
)  # fmt: skip
TRY = 'kubectl() { command kubectl "$@" --dry-run=server; }'
YAML_BLOCK = re.compile(r"^## ([^\n]+)\n\n```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CI_SCOPES = ["read", "simulate", "queues:write"]
QUEUES = """
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: department}
spec: {resources: {gpu: {quota: 16, limit: -1}}}
---
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: team-a}
spec: {parentQueue: department, resources: {gpu: {quota: 0, limit: -1}}}
"""
#: What the tried pages take for granted.
OBJECTS = (
    *(
        {
            "apiVersion": "scheduling.run.ai/v2",
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": {"parentQueue": "department", "resources": {"gpu": {"quota": 0, "limit": -1}}},
        }
        for name in ("research", "vision", "physics", "biology")
    ),
    {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "train"},
        "spec": {"queue": "research", "minMember": 1},
    },
    {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {
            "suspend": True,
            "template": {
                "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "any"}]}
            },
        },
    },
)


@pytest.fixture(autouse=True)
def queues_of_the_guides(stack: Stack) -> Iterator[None]:
    """The queues that the guides edit, as an earlier run of the pipeline has applied them."""
    stack.kubectl("apply", "--server-side", "--field-manager=ci", "-f", "-", stdin=QUEUES)
    yield
    stack.kubectl("delete", "queue", "team-a", "department", "--wait=false")


@pytest.fixture(scope="module")
def ci_token(stack: Stack) -> str:
    body = {"name": "pipeline", "scopes": CI_SCOPES}
    token: str = Session(stack).call("POST", "tokens", body)[0]["token"]
    return token


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_guide_work(stack: Stack, tmp_path: Path, page: str, ci_token: str):
    scripts = [code.text for code in blocks(ROOT / page) if code.language == "sh"]
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    token = ci_token if page == CI else _admin_token(stack)
    assert scripts
    _run("\n".join(scripts), stack, tmp_path, {"KAIWEB_TOKEN": token})


@pytest.fixture
def tried_objects(stack: Stack) -> Iterator[None]:
    manifests = yaml.safe_dump_all(OBJECTS)
    stack.kubectl("apply", "-f", "-", stdin=manifests)
    yield
    stack.kubectl("delete", "--wait=false", "-f", "-", stdin=manifests)


def test_the_server_accepts_the_edits_that_guides_show(
    stack: Stack, tmp_path: Path, tried_objects: None
):
    node = stack.objects("nodes")[0]["metadata"]["name"]
    scripts = [
        "\n".join(
            code.text for code in blocks(ROOT / "docs" / "guides" / f"{page}.md") if is_shell(code)
        )
        for page in TRIED_PAGES
    ]
    assert all(scripts)
    script = "\n".join(scripts).replace("podgroup NAME", "podgroup train").replace("gpu-7", node)
    # curl ends with an error where the server refuses.
    (tmp_path / ".curlrc").write_text("fail\nsilent\n")
    unreadable = (
        """! kubectl annotate queue research kaiweb.dev/gpu-models='{"A": {"quota": "many"}}'"""
    )
    _run(
        f"{TRY}\n{script}\n{unreadable} || exit 1",
        stack,
        tmp_path,
        {"URL": stack.url, "TOKEN": _admin_token(stack)},
    )


@pytest.mark.parametrize("system", ["GitHub Actions", "GitLab"])
def test_the_pipelines_of_the_ci_guide_work(
    stack: Stack, tmp_path: Path, system: str, ci_token: str
):
    pipelines = dict(YAML_BLOCK.findall((ROOT / CI).read_text()))
    assert set(pipelines) == {"GitHub Actions", "GitLab"}
    commands = _commands(yaml.safe_load(pipelines[system]))
    assert sum("kaiweb queues" in command for command in commands) == 2
    # kaiweb is installed already, from the checkout.
    script = "\n".join(['pip() { test -n "$*"; }', *commands])
    pipeline = {"GITHUB_SHA": "0123abc", "CI_PIPELINE_ID": "7"}
    _run(script, stack, tmp_path, {"KAIWEB_TOKEN": ci_token, **pipeline})
    quota = stack.objects("queue", "team-a")[0]["spec"]["resources"]["gpu"]["quota"]
    assert quota == 8


def _commands(pipeline: dict[str, Any]) -> list[str]:
    """Return the commands of all jobs of a pipeline, those of the main branch too."""
    if "jobs" in pipeline:
        steps = [step for job in pipeline["jobs"].values() for step in job["steps"]]
        return [step["run"] for step in steps if "run" in step]
    return [command for job in pipeline.values() for command in job["script"]]


def _admin_token(stack: Stack) -> str:
    access: dict[str, str] = json.loads((stack.home / "terminal.json").read_text())
    return access["token"]


def _run(text: str, stack: Stack, folder: Path, variables: dict[str, str]) -> None:
    script = folder / "commands.sh"
    script.write_text(text)
    result = subprocess.run(
        ["bash", "-euxo", "pipefail", str(script)],
        cwd=folder,
        env={
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "KUBECONFIG": str(stack.kubeconfig),
            "KAIWEB_HOME": str(stack.home),
            "KAIWEB_URL": stack.url,
            **variables,
        },
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
