"""The wheel in an empty environment: `kaiweb up` without Node and compilers, then a gang runs (`make dist-check`)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kaiweb.supervisor import ports
from tests.integration.stack import Stack, kubectl_path, wait_until

ROOT = Path(__file__).resolve().parents[2]
WHEEL = os.environ.get("KAIWEB_TEST_WHEEL", "")
pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not WHEEL, reason="no wheel: run `make dist-check`"),
]
GANG = """
apiVersion: batch/v1
kind: Job
metadata:
  name: gang
  labels: {kai.scheduler/queue: default-queue}
  annotations: {kai.scheduler/batch-min-member: "2"}
spec:
  parallelism: 2
  completions: 2
  template:
    metadata: {labels: {kai.scheduler/queue: default-queue}}
    spec:
      schedulerName: kai-scheduler
      restartPolicy: Never
      containers:
      - {name: main, image: any, resources: {limits: {nvidia.com/gpu: 4}}}
"""


def install(folder: Path) -> Path:
    """Install the wheel with the locked versions, none of them built here; return the folder of programs."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    locked = re.findall(
        r"^[\w.-]+==[^\s\\]+(?: ;[^\\]+)?",
        (ROOT / "requirements/run.txt").read_text(),
        re.MULTILINE,
    )
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(locked))
    # fmt: off
    subprocess.run(
        [
            str(folder / "bin" / "pip"), "install", "--quiet", "--no-compile", "--only-binary", ":all:",
            "--constraint", str(constraints), str(Path(WHEEL).resolve()),
        ],
        check=True,
    )
    # fmt: on
    return folder / "bin"


def test_a_gang_runs_on_an_installed_wheel(tmp_path: Path):
    programs = install(tmp_path / "venv")
    port = ports.pick()
    # No Node, no compiler and no setting of the developer: only the installed programs.
    environment = {
        "PATH": str(programs), "HOME": str(tmp_path), "DEMO": "0", "KAIWEB_PORT": str(port),
    }  # fmt: skip
    log = tmp_path / "up.log"
    with log.open("w") as stream:
        process = subprocess.Popen(
            [str(programs / "kaiweb"), "up"],
            env=environment,
            cwd=tmp_path,
            stdout=stream,
            stderr=stream,
        )
    stack = Stack(
        home=tmp_path / ".local" / "state" / "kaiweb",
        url=f"http://127.0.0.1:{port}",
        environment=environment,
        process=process,
    )
    try:
        wait_until(lambda: "kaiweb is up" in log.read_text(), what="the start", timeout_s=90)
        subprocess.run(
            [kubectl_path(), "--kubeconfig", str(stack.kubeconfig), "apply", "-f", "-"],
            input=GANG, text=True, check=True,
        )  # fmt: skip
        wait_until(
            lambda: (
                [pod["status"]["phase"] for pod in stack.objects("pods", "-l", "job-name=gang")]
                == ["Running", "Running"]
            ),
            what="the gang",
        )
        shown = subprocess.run(
            [str(programs / "kaiweb"), "why", "default/gang"],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert "Nothing keeps it." in shown.stdout
    finally:
        stack.stop()
