"""The set-up of a fresh machine: what README tells a person to type, and which program installs the packages."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from tests.release import first_hour

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def install() -> ModuleType:
    spec = importlib.util.spec_from_file_location("install", ROOT / "requirements" / "install.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_commands_of_readme_end_with_a_gang_and_an_explained_job():
    lines = first_hour.commands((ROOT / "README.md").read_text())

    assert lines[0].startswith("export KUBECONFIG=$PWD/.kaiweb/kubeconfig ")
    assert lines[1] == "make kubectl"
    for words in ("queues what-if", "queues set", "job/gang", "kaiweb why default/next"):
        assert any(words in line for line in lines), words


def test_a_command_keeps_what_the_one_before_it_exported_and_its_times_are_written(tmp_path: Path):
    commands = tmp_path / "commands.sh"
    commands.write_text(first_hour.script(["export ANSWER='a b'", 'test "$ANSWER" = "a b"']))

    result = subprocess.run(
        ["bash", commands], env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, check=False
    )

    assert result.returncode == 0
    times = [line.split() for line in (tmp_path / "times").read_text().splitlines()]
    assert [len(columns) for columns in times] == [3, 3]


def test_a_command_that_fails_ends_the_run(tmp_path: Path):
    commands = tmp_path / "commands.sh"
    commands.write_text(first_hour.script(["false", "echo reached"]))

    result = subprocess.run(
        ["bash", commands], env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert result.returncode == 1
    assert "failed: false" in result.stderr
    assert "reached\n" not in result.stdout


@pytest.mark.parametrize(("seconds", "code"), [(300.0, 0), (300.1, 1)])
def test_more_than_five_minutes_are_a_failure(seconds: float, code: int):
    lines: list[str] = []

    assert first_hour.report([first_hour.Step("make run", seconds, 1.0)], lines.append) == code
    assert lines[2] == f"{seconds:8.1f}     1.0  all"


def test_the_index_and_the_certificates_of_pip_are_those_of_uv(install: ModuleType):
    listed = (
        "global.index-url='https://pypi.example.com/simple'\n"
        "global.cert='/etc/ssl/company.crt'\n"
        ":env:.find-links='/a /b'\n"
        ":env:.disable-pip-version-check='1'\n"
        "download.cert='/not/for/install'\n"
    )

    variables = install.uv_environment(install.read_settings(listed))

    assert variables == {
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_DEFAULT_INDEX": "https://pypi.example.com/simple",
        "SSL_CERT_FILE": "/etc/ssl/company.crt",
        "UV_FIND_LINKS": "/a,/b",
    }


def test_a_setting_that_uv_does_not_know_leaves_the_work_to_pip(install: ModuleType):
    assert install.uv_environment({"client-cert": "/a"}) is None


def test_the_version_of_uv_is_that_of_the_development_environment():
    pinned = (ROOT / "requirements" / "uv.txt").read_text()

    assert pinned.startswith("uv==")
    assert pinned.rstrip() in (ROOT / "requirements" / "dev.txt").read_text()
