"""Garbage collection and namespaces: background, foreground, orphan, absent owners, emptying."""

from __future__ import annotations

import asyncio

import pytest

from sandbox.apiserver.lifecycle import gc
from tests.sandbox.apiserver.conftest import InProcess, configmap, owned, pod, settled

MAPS = "/api/v1/namespaces/default/configmaps"


def exists(cluster: InProcess, name: str, storage: str = "configmaps") -> bool:
    return cluster.store.get(storage, "default", name) is not None


async def family(cluster: InProcess, *children: str, blocks: bool = False) -> None:
    owner = (await cluster.post(MAPS, configmap("owner"))).ok(201)
    for child in children:
        (await cluster.post(MAPS, owned(configmap(child), owner, blocks=blocks))).ok(201)


async def test_background_takes_dependents_of_dependents(running: InProcess) -> None:
    await family(running, "child")
    child = (await running.get(f"{MAPS}/child")).ok()
    (await running.post(MAPS, owned(configmap("grandchild"), child))).ok(201)
    (await running.delete(f"{MAPS}/owner")).ok()
    await settled(lambda: not exists(running, "child") and not exists(running, "grandchild"))


async def test_dependent_with_another_living_owner_stays(running: InProcess) -> None:
    await family(running, "child")
    other = (await running.post(MAPS, configmap("other"))).ok(201)
    child = (await running.get(f"{MAPS}/child")).ok()
    second = owned(configmap("x"), other)["metadata"]["ownerReferences"]
    both = child["metadata"]["ownerReferences"] + second
    await running.patch(f"{MAPS}/child", {"metadata": {"ownerReferences": both}})
    await running.delete(f"{MAPS}/owner")
    entry = running.store.collection("configmaps").entries["default", "child"]
    await settled(
        lambda: (
            running.store.get("configmaps", "default", "child").owners  # type: ignore[union-attr]
            == (other["metadata"]["uid"],)
        )
    )
    assert len(entry.owners) == 2


async def test_foreground_owner_waits_for_blocking_dependents(running: InProcess) -> None:
    await family(running, "child", blocks=True)
    with_finalizer = {"metadata": {"finalizers": ["example.com/hold"]}}
    await running.patch(f"{MAPS}/child", with_finalizer)
    answer = (await running.delete(f"{MAPS}/owner", {"propagationPolicy": "Foreground"})).ok()
    assert answer["metadata"]["finalizers"] == ["foregroundDeletion"]
    await settled(lambda: running.store.get("configmaps", "default", "child").terminating)  # type: ignore[union-attr]
    assert exists(running, "owner")
    await running.patch(f"{MAPS}/child", {"metadata": {"finalizers": None}})
    await settled(lambda: not exists(running, "owner"))
    assert not exists(running, "child")


async def test_orphan_leaves_dependents_without_their_reference(running: InProcess) -> None:
    await family(running, "child")
    (await running.delete(f"{MAPS}/owner", {"propagationPolicy": "Orphan"})).ok()
    await settled(lambda: not exists(running, "owner"))
    child = (await running.get(f"{MAPS}/child")).ok()
    assert "ownerReferences" not in child["metadata"]


async def test_jobs_orphan_their_pods_unless_told_otherwise(running: InProcess) -> None:
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    body = {
        "metadata": {"name": "j"},
        "spec": {
            "template": {
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
            }
        },
    }
    job = (await running.post(jobs, body)).ok(201)
    await running.post("/api/v1/namespaces/default/pods", owned(pod("p"), job))
    answer = await running.delete(f"{jobs}/j")
    assert "child pods are preserved by default" in answer.headers["warning"]
    await settled(lambda: not exists(running, "j", "jobs.batch"))
    assert exists(running, "p", "pods")


async def test_object_with_an_absent_owner_is_collected(
    running: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gc, "_ABSENT_OWNER_GRACE_S", 0.01)
    ghost = {**configmap("ghost"), "metadata": {"name": "ghost", "uid": "no-such-uid"}}
    (await running.post(MAPS, owned(configmap("child"), ghost))).ok(201)
    await settled(lambda: not exists(running, "child"))


async def test_many_dependents_do_not_stall_requests(running: InProcess) -> None:
    await family(running, *(f"c{number}" for number in range(200)))
    await running.delete(f"{MAPS}/owner")
    await asyncio.sleep(0)
    (await running.get("/api/v1/namespaces/default")).ok()
    await settled(lambda: not running.store.collection("configmaps").listing("default"))


async def test_namespace_is_emptied_before_it_goes(running: InProcess) -> None:
    await running.post("/api/v1/namespaces", {"metadata": {"name": "team"}})
    assert running.store.get("serviceaccounts", "team", "default") is not None
    body = {**configmap("a"), "metadata": {"name": "a", "finalizers": ["example.com/hold"]}}
    (await running.post("/api/v1/namespaces/team/configmaps", body)).ok(201)
    answer = (await running.delete("/api/v1/namespaces/team")).ok()
    assert answer["status"]["phase"] == "Terminating"
    refused = await running.post("/api/v1/namespaces/team/configmaps", configmap("late"))
    refused.refused(
        403,
        'configmaps "late" is forbidden: unable to create new content in namespace team because it '
        "is being terminated",
    )
    await settled(lambda: running.store.get("serviceaccounts", "team", "default") is None)
    assert running.store.get("namespaces", "", "team") is not None
    await running.patch("/api/v1/namespaces/team/configmaps/a", {"metadata": {"finalizers": None}})
    await settled(lambda: running.store.get("namespaces", "", "team") is None)
