"""The commands that the guides show (their `sh` blocks), run as they stand on a running installation."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]
ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "docs/start.md", "docs/guides/terminal.md", "docs/guides/ci-pipelines.md")
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


QUEUE = """
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: team-a}
spec: {parentQueue: default-parent-queue, resources: {gpu: {quota: 0, limit: -1}}}
"""


@pytest.fixture(autouse=True)
def queue_of_the_guides(stack: Stack) -> Iterator[None]:
    stack.kubectl("apply", "-f", "-", stdin=QUEUE)
    yield
    stack.kubectl("delete", "queue", "team-a", "--wait=false")


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_guide_work(stack: Stack, tmp_path: Path, page: str):
    blocks = BLOCK.findall((ROOT / page).read_text())
    access = json.loads((stack.home / "terminal.json").read_text())
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    script = tmp_path / "commands.sh"
    script.write_text("\n".join(blocks))

    done = subprocess.run(
        ["bash", "-euxo", "pipefail", str(script)],
        cwd=tmp_path,
        env={
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "KUBECONFIG": str(stack.kubeconfig),
            "KAIWEB_HOME": str(stack.home),
            "KAIWEB_URL": access["url"],
            "KAIWEB_TOKEN": access["token"],
        },
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )

    assert blocks
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
