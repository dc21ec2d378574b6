"""The file with which the terminal finds the installation."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from kaiweb.terminal.access import FILE
from kaiweb.terminal_access import write_terminal_access
from queues.access import tokens
from queues.models import ApiToken

pytestmark = pytest.mark.django_db
URL = "http://127.0.0.1:8000"


@pytest.fixture
def admin() -> User:
    return User.objects.create_superuser("admin", password="long enough for this")


def test_the_file_is_private_and_its_token_opens_the_api(admin: User, tmp_path: Path):
    file = write_terminal_access(tmp_path, URL)

    assert file == tmp_path / FILE
    assert file.stat().st_mode & 0o777 == 0o600
    content = json.loads(file.read_text())
    token = tokens.find(content["token"], timezone.now())
    assert content["url"] == URL
    assert token is not None
    assert (token.user, token.scopes) == (admin, ["admin"])


@pytest.mark.usefixtures("admin")
def test_a_second_start_keeps_the_token(tmp_path: Path):
    write_terminal_access(tmp_path, URL)
    before = (tmp_path / FILE).read_text()

    write_terminal_access(tmp_path, URL)

    assert (tmp_path / FILE).read_text() == before


@pytest.mark.usefixtures("admin")
@pytest.mark.parametrize("cause", ["another address", "ends soon", "revoked", "broken file"])
def test_a_token_that_no_longer_serves_is_replaced_and_revoked(tmp_path: Path, cause: str):
    file = write_terminal_access(tmp_path, URL)
    assert file is not None
    first = ApiToken.objects.get()
    if cause == "another address":
        file.write_text(file.read_text().replace("8000", "8001"))
    elif cause == "ends soon":
        ApiToken.objects.update(expires_at=timezone.now() + timedelta(days=6))
    elif cause == "revoked":
        ApiToken.objects.update(revoked_at=timezone.now())
    else:
        file.write_text("[]")

    write_terminal_access(tmp_path, URL)

    secret = json.loads(file.read_text())["token"]
    second = tokens.find(secret, timezone.now())
    assert second is not None
    assert second.pk != first.pk
    assert list(ApiToken.objects.filter(revoked_at=None)) == [second]


def test_without_the_first_user_there_is_no_file(tmp_path: Path):
    (tmp_path / FILE).write_text("old")

    assert write_terminal_access(tmp_path, URL) is None
    assert not (tmp_path / FILE).exists()
