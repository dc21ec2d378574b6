"""Edits of queues on a live cluster, with status writes between them and others at work on the same tree."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from kube.errors import (
    AlreadyExistsError,
    ConflictError,
    KubeError,
    NotFoundError,
    TooManyRequestsError,
)
from kube.gateway import Gateway
from kube.objects.meta import convert
from kube.resources import NAMESPACES, QUEUES
from queues import services
from queues.access.rights import Grant, Rights
from queues.editing import tree_lock
from queues.editing.tags import tag_of_body, tag_of_row
from queues.editing.write_requests import WriteRequest
from queues.errors import FieldOwnedError, QueuesError, StaleQueueError
from queues.mirror.rows import queue_row
from queues.mirror.views import QueueView
from queues.tree.hierarchy import problem_of
from queues.tree.shape import shapes_of
from tests.queues.live_cluster.test_admission import webhooks
from tests.queues.live_cluster.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)
TRIES = 20
ADMIN = Rights(username="ada", display_name="Ada", kind="session", grants=(Grant("admin"),))
_numbers = itertools.count(1)


def write_request(tag: str = "", **options: Any) -> WriteRequest:
    return WriteRequest(rights=ADMIN, now=timezone.now(), expected_tag=tag, **options)


@pytest.fixture
def names(gateway: Gateway) -> Iterator[Callable[[str], str]]:
    """Return unused names of queues; queues of these names are deleted at the end."""
    with suppress(AlreadyExistsError):
        gateway.create(NAMESPACES, {"metadata": {"name": tree_lock.NAMESPACE}})
    eventually(lambda: _is_listed(gateway), "queues are listed")
    number = next(_numbers)
    used: dict[str, None] = {}

    def name(text: str) -> str:
        used[f"edit-{number}-{text}"] = None
        return f"edit-{number}-{text}"

    yield name
    for text in used:
        with suppress(NotFoundError):
            gateway.delete(QUEUES, text)


def _is_listed(gateway: Gateway) -> bool:
    """A real API server answers 429 for a moment after a definition has come."""
    try:
        gateway.list(QUEUES, as_type=dict)
    except TooManyRequestsError:
        return False
    return True


def create(gateway: Gateway, name: str, parent: str = "") -> dict[str, Any]:
    edit = {"parent": parent} if parent else {}
    return services.queue_create(gateway, name=name, edit=edit, request=write_request()).body


def write_status(gateway: Gateway, name: str, cpu: int) -> None:
    status = {"status": {"requested": {"cpu": str(cpu)}}}
    gateway.patch(QUEUES, name, status, sub="status")


def at_once(*works: Callable[[], Any]) -> list[str]:
    """Run in threads, started together; return how each ended."""
    start, ends = threading.Barrier(len(works)), [""] * len(works)

    def run(place: int, work: Callable[[], Any]) -> None:
        start.wait()
        try:
            work()
            ends[place] = "done"
        except (QueuesError, KubeError) as error:
            ends[place] = type(error).__name__
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ends


def problems(gateway: Gateway) -> list[str]:
    tree = shapes_of(list(gateway.list(QUEUES, as_type=dict).items))
    return [problem for name in tree if (problem := problem_of(tree, name))]


def test_status_writes_leave_the_version_alone_and_edits_do_not(
    gateway: Gateway, names: Callable[[str], str]
) -> None:
    name = names("busy")
    tag = tag_of_body(create(gateway, name))
    for number in range(10):
        write_status(gateway, name, number + 1)
    body = services.queue_read(gateway, name)
    assert tag_of_body(body) == tag_of_row(queue_row(convert(body, QueueView))) == tag
    written = services.queue_update(
        gateway,
        name=name,
        edit={"priority": 7, "labels": {"team": "x"}},
        request=write_request(tag),
    ).body
    assert tag_of_body(written) not in ("", tag)
    with pytest.raises(StaleQueueError):
        services.queue_update(gateway, name=name, edit={"priority": 8}, request=write_request(tag))
    write_status(gateway, name, 99)
    services.queue_delete(gateway, name=name, request=write_request(tag_of_body(written)))
    with pytest.raises(NotFoundError):
        gateway.get(QUEUES, name, as_type=dict)


def test_an_edit_goes_through_while_the_status_is_written_without_pause(
    gateway: Gateway, names: Callable[[str], str]
) -> None:
    name, stop = names("hot"), threading.Event()
    create(gateway, name)

    def write() -> None:
        for number in itertools.count(1):
            if stop.wait(0.05):
                return
            write_status(gateway, name, number)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(10):
            tag = tag_of_body(services.queue_read(gateway, name))
            edit = {"priority": number}
            result = services.queue_update(
                gateway, name=name, edit=edit, request=write_request(tag)
            )
            assert result.body["spec"]["priority"] == number
    finally:
        stop.set()
        writer.join()


def test_moves_at_once_make_no_circle(gateway: Gateway, names: Callable[[str], str]) -> None:
    left, right = names("left"), names("right")
    for name in (left, right):
        create(gateway, name)

    def move(name: str, parent: str) -> Callable[[], Any]:
        tag = tag_of_body(services.queue_read(gateway, name))
        edit = {"parent": parent or None}
        return lambda: services.queue_update(
            gateway, name=name, edit=edit, request=write_request(tag)
        )

    for _try in range(TRIES):
        ends = at_once(move(left, right), move(right, left))
        assert sorted(ends) == ["HierarchyError", "done"]
        assert problems(gateway) == []
        for name in (left, right):
            move(name, "")()


def test_a_deletion_and_a_creation_below_at_once_make_no_orphan(
    gateway: Gateway, names: Callable[[str], str]
) -> None:
    parent, child = names("parent"), names("child")
    for _try in range(TRIES):
        tag = tag_of_body(create(gateway, parent))
        ends = at_once(
            lambda tag=tag: services.queue_delete(gateway, name=parent, request=write_request(tag)),
            lambda: create(gateway, child, parent),
        )
        assert sorted(ends) == ["HierarchyError", "done"]
        assert problems(gateway) == []
        for name in (child, parent):
            with suppress(NotFoundError):
                gateway.delete(QUEUES, name)


def test_moves_by_others_at_once_make_no_circle_either(
    gateway: Gateway, names: Callable[[str], str], tmp_path: Path
) -> None:
    left, right = names("left"), names("right")
    for name in (left, right):
        create(gateway, name)

    def put(name: str, parent: str | None) -> None:
        for _attempt in range(5):
            with suppress(ConflictError):
                gateway.patch(QUEUES, name, {"spec": {"parentQueue": parent}})
                return

    with webhooks(gateway, tmp_path):
        for _try in range(TRIES):
            ends = at_once(lambda: put(left, right), lambda: put(right, left))
            assert sorted(ends) == ["ForbiddenError", "done"]
            assert problems(gateway) == []
            for name in (left, right):
                put(name, None)


def test_an_apply_owns_its_fields_and_asks_before_it_takes_others(
    gateway: Gateway, names: Callable[[str], str]
) -> None:
    name = names("applied")

    def apply(priority: int, manager: str, *, force: bool = False, dry_run: bool = False) -> Any:
        return services.queue_apply(
            gateway,
            name=name,
            edit={"priority": priority, "quota": {"gpu": 1}},
            manager=manager,
            force=force,
            request=write_request(dry_run=dry_run),
        )

    assert apply(5, "ci", dry_run=True).is_written is False
    with pytest.raises(NotFoundError):
        gateway.get(QUEUES, name, as_type=dict)
    assert apply(5, "ci").is_written
    assert not apply(5, "ci").is_change
    with pytest.raises(FieldOwnedError):
        apply(6, "other")
    assert apply(6, "other", force=True).body["spec"]["priority"] == 6
