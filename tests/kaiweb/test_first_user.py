"""The generated password is shown until somebody changes it."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from kaiweb.first_user import create_first_user, first_password

pytestmark = pytest.mark.django_db


def test_the_first_user_is_created_once_with_a_private_password_file(tmp_path: Path) -> None:
    file = create_first_user(tmp_path)
    assert file == tmp_path / "admin-password"
    assert file.stat().st_mode & 0o777 == 0o600
    assert first_password(tmp_path) == file.read_text().strip()
    assert create_first_user(tmp_path) is None


def test_a_password_from_the_environment_is_used_and_written_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAIWEB_ADMIN_PASSWORD", "from a Secret of the cluster")
    assert create_first_user(tmp_path) is None
    assert User.objects.get(username="admin").check_password("from a Secret of the cluster")
    assert list(tmp_path.iterdir()) == []


def test_a_password_that_was_changed_is_not_shown_any_more(tmp_path: Path) -> None:
    create_first_user(tmp_path)
    user = User.objects.get(username="admin")
    user.set_password("another one, chosen by hand")
    user.save()
    assert first_password(tmp_path) is None
    user.delete()
    assert first_password(tmp_path) is None


def test_bootstrap_restricts_a_home_that_others_could_read(tmp_path: Path, settings: Any) -> None:
    settings.KAIWEB_HOME = tmp_path
    tmp_path.chmod(0o755)
    (tmp_path / "old").write_text("")
    (tmp_path / "old").chmod(0o644)
    call_command("bootstrap", "--no-cluster", stdout=StringIO())
    readable = [path for path in [tmp_path, *tmp_path.rglob("*")] if path.stat().st_mode & 0o077]
    assert readable == []
