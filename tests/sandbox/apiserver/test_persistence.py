"""Objects on disk: what a restart brings back, and versions that are never handed out twice.

What is not in the database yet is in files beside it, the tail (`sandbox.apiserver.storage.tail`).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sandbox.apiserver.server import Server, Settings
from sandbox.apiserver.storage.persistence import VERSION_GAP, HomeInUseError, Persistence
from tests.sandbox.apiserver.conftest import InProcess, configmap, widget, widget_definition

MAPS = "/api/v1/namespaces/default/configmaps"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


def start(home: Path) -> InProcess:
    server = Server(Settings(home=home))
    server.journal.start()
    return InProcess(server)


def stop(cluster: InProcess) -> None:
    cluster.server.journal.stop(cluster.store.version)


async def test_restart_brings_objects_versions_and_custom_kinds_back(tmp_path: Path) -> None:
    first = start(tmp_path)
    await first.post(MAPS, configmap("kept", a="1"))
    await first.post(MAPS, configmap("gone"))
    await first.patch(f"{MAPS}/kept", {"data": {"a": "2"}})
    await first.delete(f"{MAPS}/gone")
    (await first.post(CRDS, widget_definition({"type": "object"}))).ok(201)
    (await first.post(WIDGETS, widget("w"))).ok(201)
    before = (await first.get(f"{MAPS}/kept")).ok()
    version = first.store.version
    stop(first)

    second = start(tmp_path)
    assert (await second.get(f"{MAPS}/kept")).ok() == before
    assert (await second.get(f"{MAPS}/gone")).code == 404
    assert (await second.get(f"{WIDGETS}/w")).ok()["kind"] == "Widget"
    assert second.store.version == version
    assert second.token == first.token
    created = (await second.post(MAPS, configmap("new"))).ok(201)
    assert int(created["metadata"]["resourceVersion"]) == version + 1
    stop(second)


async def test_watch_from_before_the_restart_must_list_again(tmp_path: Path) -> None:
    first = start(tmp_path)
    old = (await first.post(MAPS, configmap("a"))).ok(201)["metadata"]["resourceVersion"]
    await first.post(MAPS, configmap("b"))
    stop(first)
    second = start(tmp_path)
    async with second.watch(f"{MAPS}?resourceVersion={old}") as events:
        event = await events.get()
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
    stop(second)


async def test_after_a_kill_versions_skip_ahead(tmp_path: Path) -> None:
    first = start(tmp_path)
    await first.post(MAPS, configmap("a"))
    version = first.store.version
    await asyncio.sleep(0.3)  # the thread of `server.journal` writes every 50 ms
    # As a kill leaves it: a database that was not closed. It is a copy, because the first server locks its home.
    shutil.copytree(tmp_path, tmp_path / "copy")
    stop(first)
    second = start(tmp_path / "copy")
    assert second.store.version >= version + VERSION_GAP
    assert (await second.get(f"{MAPS}/a")).ok()["metadata"]["name"] == "a"
    stop(second)


def test_home_belongs_to_one_server(tmp_path: Path) -> None:
    first = start(tmp_path)
    with pytest.raises(HomeInUseError, match=rf"is in use by the sandbox with pid {os.getpid()}"):
        Server(Settings(home=tmp_path))
    stop(first)
    stop(start(tmp_path))


def test_changes_that_could_not_be_saved_are_saved_with_the_next_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(Settings(home=tmp_path / "home", persistent=False))
    entry = server.store.get("namespaces", "", "default")
    journal = Persistence(tmp_path / "objects.sqlite3")
    journal.load()
    journal.record("namespaces", ("", "default"), entry)
    with monkeypatch.context() as patched:
        patched.setattr(journal, "_save", _full_disk)
        with closing(journal._connect()) as connection:
            journal._write(connection)
    assert "could not save 1 changes" in caplog.text
    journal.start()
    journal.stop(7)
    _, rows = Persistence(tmp_path / "objects.sqlite3").load()
    assert [row[2] for row in rows] == ["default"]


def _full_disk(*arguments: object) -> None:
    raise sqlite3.OperationalError("database or disk is full")


def test_only_the_newest_state_of_a_key_is_written(tmp_path: Path) -> None:
    server = Server(Settings(home=tmp_path / "home", persistent=False))
    entry = server.store.get("namespaces", "", "default")
    assert entry is not None
    journal = Persistence(tmp_path / "objects.sqlite3")
    assert journal.load() == (1, [])
    journal.record("namespaces", ("", "gone"), entry)
    journal.record("namespaces", ("", "gone"), None)
    journal.record("namespaces", ("", "default"), entry)
    journal.start()
    journal.stop(7)
    version, rows = Persistence(tmp_path / "objects.sqlite3").load()
    assert version == 7
    assert rows == [("namespaces", "", "default", entry.version, entry.raw)]


async def test_a_kill_loses_no_write_that_was_answered(tmp_path: Path) -> None:
    home, killed_home = tmp_path / "home", tmp_path / "killed"
    home.mkdir()
    first = InProcess(Server(Settings(home=home)))  # its thread never starts: all stays in the tail
    await first.post(MAPS, configmap("stays", a="1"))
    await first.post(MAPS, configmap("goes"))
    await first.patch(f"{MAPS}/stays", {"data": {"a": "2"}})
    await first.delete(f"{MAPS}/goes")
    shutil.copytree(home, killed_home)
    newest_tail = max(killed_home.glob("*.tail.*"))
    newest_tail.write_bytes(newest_tail.read_bytes() + b"\x00\x00\x01\x00cut off")

    second = start(killed_home)
    assert (await second.get(f"{MAPS}/stays")).ok()["data"] == {"a": "2"}
    assert (await second.get(f"{MAPS}/goes")).code == 404
    assert not list(killed_home.glob("*.tail.*"))
    stop(second)


async def test_what_is_saved_leaves_no_tail_behind(tmp_path: Path) -> None:
    first = start(tmp_path)
    for number in range(3):
        await first.post(MAPS, configmap(f"m{number}"))
        await asyncio.sleep(0.12)
    stop(first)
    assert not list(tmp_path.glob("*.tail.*"))
