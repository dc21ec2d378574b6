"""A process whose credentials are refused ends with its own exit code."""

from __future__ import annotations

import subprocess
import sys

from kube.process.fatal import UNAUTHORIZED_EXIT

SCRIPT = "from kube.errors import UnauthorizedError as E; from kube.process.fatal import end_process as end; end(E('401'))"


def test_end_process_logs_the_refusal_and_exits_with_code_3() -> None:
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert ended.returncode == UNAUTHORIZED_EXIT == 3
    assert ended.stderr == "the cluster refuses our credentials: 401\n"
