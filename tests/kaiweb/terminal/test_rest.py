"""The client: how it finds the API, what it sends, and what its errors say."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kaiweb.terminal.access import FILE, Access, read_access
from kaiweb.terminal.errors import TerminalError
from kaiweb.terminal.rest import Rest

PAGES = {
    "/api/v1/queues?limit=1000": {"items": [{"name": "a"}], "next": "c1"},
    "/api/v1/queues?limit=1000&cursor=c1": {"items": [{"name": "b"}], "next": None},
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.headers["Authorization"] != "Bearer kw_right":
            self._send(401, {"detail": "The bearer token is unknown, expired or revoked."})
        elif self.path == "/api/v1/page":
            self._send_text(200, "<html>")
        elif self.path in PAGES:
            self._send(200, PAGES[self.path])
        else:
            self._send(404, {"detail": "queue 'x' does not exist"})

    def _send(self, status: int, body: object) -> None:
        self._send_text(status, json.dumps(body))

    def _send_text(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_list_is_read_to_its_last_page(url: str):
    assert Rest(Access(url, "kw_right")).items("queues") == [{"name": "a"}, {"name": "b"}]


@pytest.mark.parametrize(
    ("token", "path", "message"),
    [
        ("kw_wrong", "queues", "unknown, expired or revoked. (401)\n  create a token in the dashboard"),
        ("kw_right", "queues/x", "queue 'x' does not exist (404)"),
        ("kw_right", "page", "expected JSON, got something else\n  is KAIWEB_URL the address of kaiweb?"),
    ],
)  # fmt: skip
def test_an_error_says_what_to_do(url: str, token: str, path: str, message: str):
    with pytest.raises(TerminalError) as refused:
        Rest(Access(url, token)).get(path)

    assert message in refused.value.format_message()


def test_a_server_that_is_not_there_is_named_with_the_command_that_starts_one():
    with pytest.raises(TerminalError) as refused:
        Rest(Access("http://127.0.0.1:9", "kw")).get("queues")

    assert "no answer from http://127.0.0.1:9: " in refused.value.format_message()
    assert "`make run`" in refused.value.format_message()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / FILE).write_text('{"url": "http://127.0.0.1:8000", "token": "kw_file"}')
    return tmp_path


def test_the_file_of_the_state_folder_is_used_without_variables(home: Path):
    access = read_access({"KAIWEB_HOME": str(home)})

    assert access == Access("http://127.0.0.1:8000", "kw_file")


def test_variables_win_over_the_file(home: Path):
    env = {"KAIWEB_HOME": str(home), "KAIWEB_URL": "https://kai/", "KAIWEB_TOKEN": "kw_env"}

    assert read_access(env) == Access("https://kai", "kw_env")


def test_a_token_alone_is_for_the_address_of_the_file(home: Path):
    env = {"KAIWEB_HOME": str(home), "KAIWEB_TOKEN": "kw_env"}

    assert read_access(env) == Access("http://127.0.0.1:8000", "kw_env")


def test_the_token_of_the_file_is_not_sent_to_another_address(home: Path):
    with pytest.raises(TerminalError, match="no token for https://kai"):
        read_access({"KAIWEB_HOME": str(home), "KAIWEB_URL": "https://kai"})


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "KAIWEB_URL is not set"), ("{}", "expected an object with url and token"), ("[1", "expected an object")],
)  # fmt: skip
def test_without_access_the_error_names_the_file(tmp_path: Path, content: str | None, message: str):
    if content is not None:
        (tmp_path / FILE).write_text(content)

    with pytest.raises(TerminalError, match=message) as refused:
        read_access({"KAIWEB_HOME": str(tmp_path)})

    assert str(tmp_path / FILE) in refused.value.message
    assert "KAIWEB_TOKEN" in refused.value.advice


def test_an_address_without_scheme_is_refused(home: Path):
    with pytest.raises(TerminalError, match="expected http:// or https://, got 'kai:8000'"):
        read_access({"KAIWEB_HOME": str(home), "KAIWEB_URL": "kai:8000"})


def test_a_command_starts_without_django():
    check = (
        "import sys, kaiweb.terminal.program; "
        "sys.exit(any(m.partition('.')[0] in ('django', 'kubernetes', 'celery') for m in sys.modules))"
    )

    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(shell: str):
    from click.testing import CliRunner

    from kaiweb.terminal.program import terminal

    result = CliRunner().invoke(terminal, ["completion", shell])

    assert "_KAIWEB_COMPLETE" in result.output
    assert result.exit_code == 0


def test_kubectl_gets_completions_and_a_directive(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    from kaiweb.terminal.program import kubectl_completion

    monkeypatch.setattr(sys, "argv", ["kubectl_complete-kai", "or"])

    kubectl_completion()

    assert capsys.readouterr().out == "order\n:4\n"
