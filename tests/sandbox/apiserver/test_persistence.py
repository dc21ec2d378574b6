"""Objects on disk: what a restart brings back, and versions that are never handed out twice."""

from __future__ import annotations

from pathlib import Path

from sandbox.apiserver.persistence import VERSION_GAP, Persistence
from sandbox.apiserver.server import Server, Settings
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
    kept = (await first.get(f"{MAPS}/kept")).ok()
    version = first.store.version
    stop(first)

    second = start(tmp_path)
    assert (await second.get(f"{MAPS}/kept")).ok() == kept
    assert (await second.get(f"{MAPS}/gone")).code == 404
    assert (await second.get(f"{WIDGETS}/w")).ok()["kind"] == "Widget"
    assert second.store.version == version
    assert second.token == first.token
    made = (await second.post(MAPS, configmap("new"))).ok(201)
    assert int(made["metadata"]["resourceVersion"]) == version + 1
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
    # a killed process neither flushes nor marks the file complete; its thread dies with it
    first.server.journal._write(first.server.journal._connect())
    second = start(tmp_path)
    assert second.store.version >= version + VERSION_GAP
    assert (await second.get(f"{MAPS}/a")).ok()["metadata"]["name"] == "a"
    stop(second)
    stop(first)


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
