"""Log-in of the terminal with the ID token of a pipeline."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kaiweb.terminal.access import Access, read_access
from kaiweb.terminal.errors import TerminalError

PAGE = "https://kaiweb.example.com"
GITHUB = {
    "ACTIONS_ID_TOKEN_REQUEST_URL": "https://github.example/token?api=2",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "s3cret",
}


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Stands for kaiweb, which takes the token `good`, and for GitHub, which gives it."""
    requests: list[Any] = []

    class Pool:
        def __init__(self, **_options: Any) -> None:
            pass

        def __enter__(self) -> Pool:
            return self

        def __exit__(self, *_error: object) -> None:
            pass

        def request(self, method: str, url: str, *, body: str, **_options: Any) -> Any:
            requests.append((method, url, json.loads(body)))
            is_good = json.loads(body)["token"] == "good"
            content = {"token": "kw_x"} if is_good else {"detail": "no rule is for it"}
            return SimpleNamespace(status=201 if is_good else 403, data=json.dumps(content))

    def github(method: str, url: str, *, headers: Any, **_options: Any) -> Any:
        requests.append((method, url, headers["Authorization"]))
        return SimpleNamespace(data=b'{"value": "good"}')

    monkeypatch.setattr("kaiweb.terminal.exchange.PoolManager", Pool)
    monkeypatch.setattr("kaiweb.terminal.pipeline.urllib3.request", github)
    return requests


def access(tmp_path: Path, url: str = PAGE, **env: str) -> Access:
    return read_access({"KAIWEB_URL": url, "KAIWEB_HOME": str(tmp_path), **env})


def test_an_id_token_is_exchanged(tmp_path: Path, sent: list[Any]) -> None:
    assert access(tmp_path, KAIWEB_ID_TOKEN="good") == Access(PAGE, "kw_x")
    assert sent == [("POST", f"{PAGE}/api/v1/tokens:exchange", {"token": "good"})]


def test_a_job_of_github_actions_asks_for_its_id_token(tmp_path: Path, sent: list[Any]) -> None:
    assert access(tmp_path, **GITHUB) == Access(PAGE, "kw_x")
    audience = "https%3A%2F%2Fkaiweb.example.com"
    assert sent[0] == ("GET", f"{GITHUB['ACTIONS_ID_TOKEN_REQUEST_URL']}&audience={audience}", "Bearer s3cret")  # fmt: skip


def test_a_token_goes_before_an_id_token(tmp_path: Path, sent: list[Any]) -> None:
    assert access(tmp_path, KAIWEB_TOKEN="kw_y", KAIWEB_ID_TOKEN="good").token == "kw_y"
    assert sent == []


def test_a_refusal_says_why_and_what_to_do(tmp_path: Path, sent: list[Any]) -> None:
    with pytest.raises(
        TerminalError, match=r"refuses the ID token .*: no rule is for it"
    ) as raised:
        access(tmp_path, KAIWEB_ID_TOKEN="bad")
    assert "KAIWEB_CI_RULES" in raised.value.advice


def test_an_id_token_is_not_sent_in_the_open(tmp_path: Path, sent: list[Any]) -> None:
    with pytest.raises(TerminalError, match="expected https://"):
        access(tmp_path, "http://kaiweb.example.com", KAIWEB_ID_TOKEN="good")
    assert sent == []
