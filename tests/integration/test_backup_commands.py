"""The commands of docs/operations/backup.md: from SQLite into PostgreSQL."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.integration.postgres import postgres_or_skip

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = (CHECKOUT / "docs" / "operations" / "backup.md").read_text()


def run(script: str, home: Path, database: str) -> None:
    """Run commands as an administrator types them."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "DJANGO_SETTINGS_MODULE": "kaiweb.settings.local",
        "KAIWEB_HOME": str(home),
        "DATABASE_URL": database,
    }
    result = subprocess.run(
        ["bash", "-ec", script],
        env=environment,
        cwd=home.parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def commands(heading: str) -> str:
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    (script,) = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    return str(script)


def test_users_move_from_sqlite_to_postgresql(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    run("kaiweb bootstrap --no-cluster", old, "")
    run(commands("Back up"), old, "")
    with postgres_or_skip() as url:
        run(commands("Restore"), new, url)
        with psycopg.connect(url) as connection:
            rows = connection.execute("SELECT username, is_superuser FROM auth_user").fetchall()
            connection.execute(
                "INSERT INTO auth_user (username, password, is_superuser, first_name, last_name, email,"
                " is_staff, is_active, date_joined) VALUES ('b', '', false, '', '', '', false, true, now())"
            )
    # The first user is not made again, and the numbers of new rows follow those of restored ones.
    assert rows == [("admin", True)]
    assert not (new / "admin-password").exists()
