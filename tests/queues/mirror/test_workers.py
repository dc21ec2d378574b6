"""Several workers of the mirror leave the tables that one worker leaves, whatever is killed in between."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.postgres import postgres_or_skip

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

SEED = "1"


def test_killed_and_divided_anew_several_workers_write_the_tables_of_one(
    tmp_path: Path,
) -> None:
    with postgres_or_skip() as url:
        run = subprocess.run(
            [
                sys.executable,
                "-m",
                "tests.queues.mirror.workers",
                "check",
                SEED,
                str(tmp_path),
            ],
            env={**os.environ, "KAIWEB_TEST_DATABASE_URL": url},
            capture_output=True,
            text=True,
            timeout=380,
        )
    log = tmp_path / "workers.log"
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr[-3000:]}\n{log.read_text()[-3000:]}"
