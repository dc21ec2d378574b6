"""Every write of the API as a dry run: the status of the write itself, and nothing written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import orjson
import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import transaction
from rest_framework.test import APIClient

from kaiweb.api import document
from tests.fakes.gateway import FakeGateway
from tests.kaiweb.api.conftest import Renew
from tests.kaiweb.api.rights.callers import INSIDE, OUTSIDE, World
from tests.kaiweb.api.rights.operations import OPERATIONS
from tests.kaiweb.api.rights.test_rights_matrix import send

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("mirrored")]

#: Writes without a dry run: simulations and previews change nothing outside their own record, and the others answer
#: with a secret that is used at once.
WITHOUT = {
    "createSimulation", "checkWorkload", "previewChange", "createLiveTicket", "exchangeToken",
}  # fmt: skip
#: Deletions in the cluster, whose dry run shows the difference.
SHOWN_DELETIONS = {"deleteQueue", "deleteShard"}
#: In the table there is nothing that they would change.
UNCHANGED = {"retryNodeBinds"}


def _writes() -> Iterator[tuple[str, frozenset[str]]]:
    paths = orjson.loads(document.document().body)["paths"]
    for methods in paths.values():
        for method, operation in methods.items():
            if method != "get":
                names = frozenset(entry["name"] for entry in operation.get("parameters", ()))
                yield operation["operationId"], names


WRITES = dict(_writes())
DRY = sorted(set(WRITES) - WITHOUT)


@pytest.fixture
def users(db: None) -> dict[str, User]:
    return {name: User.objects.create_superuser(name) for name in ("admin", "olga")}


class _UndoneError(Exception):
    """Ends the transaction of one request."""


def _answer(world: World, operation: str, query: str) -> tuple[int, str, str]:
    """Return the status of a request, and what is in the cluster and the database before and after it; undo it."""
    client = APIClient()
    client.force_login(world.user)
    try:
        with transaction.atomic():
            call = OPERATIONS[operation].call(world)
            joint = "&" if call.query else "?"
            before = _everything(world.cluster)
            status = send(client, operation, replace(call, query=f"{call.query}{joint}{query}"))
            after = _everything(world.cluster)
            raise _UndoneError
    except _UndoneError:
        return status, before, after


def _everything(cluster: FakeGateway) -> str:
    rows: dict[str, Any] = {
        model._meta.label: list(model.objects.order_by("pk").values())  # type: ignore[attr-defined]  # django-stubs: every model has it
        for model in apps.get_models()
        if model._meta.app_label
        in ("queues", "kaiweb", "usage", "notifications", "scheduler", "auth")
    }
    objects = {str(key): body for key, body in cluster.objects.items()}
    return json.dumps([rows, objects], default=str, sort_keys=True)


def test_every_other_write_has_a_dry_run() -> None:
    assert {name for name, parameters in WRITES.items() if "dryRun" not in parameters} == WITHOUT


@pytest.mark.parametrize("operation", DRY)
@pytest.mark.parametrize("place", [INSIDE, OUTSIDE])
def test_a_dry_run_answers_as_the_write_and_changes_nothing(
    operation: str, place: str, users: dict[str, User], renew: Renew
) -> None:
    def world() -> World:
        return World(user=users["admin"], other=users["olga"], place=place, cluster=renew())

    status, before, after = _answer(world(), operation, "dryRun=false")
    dry_status, dry_before, dry_after = _answer(world(), operation, "dryRun=true")
    assert dry_after == dry_before
    is_shown = operation in SHOWN_DELETIONS and status == 204
    assert dry_status == (200 if is_shown else status)
    if status < 300 and operation not in UNCHANGED:
        assert after != before
