"""Log-in, log-out and the shell of the app."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from frontend.dashboard.assets import NoBuildError, load_assets

pytestmark = pytest.mark.django_db
MANIFEST = {
    "index.html": {
        "file": "assets/index-AbCd1234.js",
        "css": ["assets/index-1.css"],
        "imports": ["_v.js"],
    },
    "_v.js": {"file": "assets/v-9.js", "css": ["assets/v.css"], "imports": ["_w.js"]},
    "_w.js": {"file": "assets/w-9.js", "imports": ["_v.js"]},
}


@pytest.fixture
def dist(tmp_path: Path, settings: Any) -> Path:
    (tmp_path / "manifest.json").write_text(json.dumps(MANIFEST))
    settings.FRONTEND_DIST = tmp_path
    return tmp_path


@pytest.fixture
def user() -> User:
    return User.objects.create_user("ada", password="a-long-password")


def test_every_page_of_the_app_is_the_shell(dist: Path, user: User) -> None:
    browser = Client()
    browser.force_login(user)
    for path in ("/", "/queues", "/workloads/a/b/why", "/nodes?pool=x"):
        response = browser.get(path)
        assert response.status_code == 200
        assert b'src="/static/assets/index-AbCd1234.js"' in response.content
    assert "csrftoken" in browser.cookies
    html = browser.get("/").content.decode()
    boot = re.search(r'<script id="kaiweb-boot" type="application/json">(.+?)</script>', html)
    assert boot is not None
    assert json.loads(boot[1])["me"]["username"] == "ada"


def test_the_shell_escapes_what_people_called_themselves(dist: Path, user: User) -> None:
    user.first_name = "</script><script>alert(1)</script>"
    user.save()
    browser = Client()
    browser.force_login(user)
    assert "<script>alert(1)" not in browser.get("/").content.decode()


def test_the_manifest_names_styles_and_modules_once_each(dist: Path) -> None:
    assets = load_assets(dist, "/static/")
    assert assets.styles == ("/static/assets/index-1.css", "/static/assets/v.css")
    assert assets.preloads == ("/static/assets/v-9.js", "/static/assets/w-9.js")


def test_without_a_build_the_page_says_what_to_do(
    tmp_path: Path, settings: Any, user: User
) -> None:
    settings.FRONTEND_DIST = tmp_path
    browser = Client()
    browser.force_login(user)
    response = browser.get("/")
    assert (response.status_code, b"make setup" in response.content) == (503, True)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(NoBuildError, match=r"no entry 'index\.html'"):
        load_assets(tmp_path, "/static/")


def test_unauthenticated_users_are_sent_to_the_log_in_and_back(dist: Path, user: User) -> None:
    browser = Client(enforce_csrf_checks=True)
    assert browser.get("/queues?q=a")["Location"] == "/login?next=/queues%3Fq%3Da"
    form = browser.get("/login?next=/queues").content.decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)
    assert token is not None
    data = {"csrfmiddlewaretoken": token[1], "username": "ada", "next": "/queues"}
    wrong = browser.post("/login", {**data, "password": "no"})
    assert (wrong.status_code, b'role="alert"' in wrong.content) == (200, True)
    right = browser.post("/login", {**data, "password": "a-long-password"})
    assert (right.status_code, right["Location"]) == (302, "/queues")
    assert browser.get("/queues").status_code == 200


def test_a_log_in_never_leads_to_another_site(user: User) -> None:
    data = {"username": "ada", "password": "a-long-password", "next": "https://evil.example/"}
    assert Client().post("/login", data)["Location"] == "/"


def test_log_out_needs_a_post_and_ends_the_session(dist: Path, user: User) -> None:
    browser = Client()
    browser.force_login(user)
    assert browser.get("/logout").status_code == 405
    assert browser.post("/logout")["Location"] == "/login"
    assert browser.get("/")["Location"] == "/login?next=/"


@pytest.mark.parametrize("path", ["/api/v2/x", "/static/none.js", "/metricsx"])
def test_what_is_not_ours_is_not_the_shell(dist: Path, user: User, path: str) -> None:
    browser = Client()
    browser.force_login(user)
    assert browser.get(path).status_code == 404
