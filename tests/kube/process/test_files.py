"""Files that only their owner can read, replaced as a whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kube.process.files import (
    kept_secret,
    private_folder,
    restrict,
    use_private_umask,
    write_private,
)


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """The umask of an ordinary log-in, which lets everybody read."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_written_file_is_private_and_replaces_the_old_one_as_a_whole(tmp_path: Path) -> None:
    file = tmp_path / "ports.json"
    file.write_text("old and longer")
    with file.open() as reader:
        write_private(file, "new")
        assert reader.read() == "old and longer"
    assert (file.read_text(), mode(file)) == ("new", 0o600)
    assert [path.name for path in tmp_path.iterdir()] == ["ports.json"]


def test_a_write_that_fails_leaves_the_old_file_and_no_scratch_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "ports.json"
    write_private(file, b"old")

    def full(_descriptor: int) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_private(file, b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["ports.json"]
    assert file.read_text() == "old"


def test_an_existing_folder_is_restricted_with_all_that_is_in_it(tmp_path: Path) -> None:
    home, outside = tmp_path / "home", tmp_path / "outside"
    (home / "logs").mkdir(parents=True)
    outside.write_text("not ours")
    for name in ("kaiweb.sqlite3", "kaiweb.sqlite3-wal", "logs/web.log", "run"):
        (home / name).write_text("x")
    (home / "run").chmod(0o755)
    (home / "link").symlink_to(outside)
    restrict(home)
    modes = {str(path.relative_to(home)): mode(path) for path in home.rglob("*")}
    assert (mode(home), modes) == (
        0o700,
        {
            "logs": 0o700,
            "kaiweb.sqlite3": 0o600,
            "kaiweb.sqlite3-wal": 0o600,
            "logs/web.log": 0o600,
            "run": 0o700,
            "link": 0o644,
        },
    )


def test_what_a_process_creates_is_private_from_the_start(tmp_path: Path) -> None:
    use_private_umask()
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    assert (mode(tmp_path / "folder"), mode(tmp_path / "file")) == (0o700, 0o600)


def test_a_private_folder_is_created_and_restricted(tmp_path: Path) -> None:
    assert mode(private_folder(tmp_path / "a" / "b")) == 0o700
    (tmp_path / "open").mkdir()
    assert mode(private_folder(tmp_path / "open")) == 0o700


def test_a_secret_is_created_once_and_then_read(tmp_path: Path) -> None:
    words = iter(("first", "second"))
    file = tmp_path / "home" / "secret-key"
    assert kept_secret(file, lambda: next(words)) == "first"
    assert kept_secret(file, lambda: next(words)) == "first"
    assert (mode(file), mode(file.parent)) == (0o600, 0o700)
    assert [path.name for path in file.parent.iterdir()] == ["secret-key"]
