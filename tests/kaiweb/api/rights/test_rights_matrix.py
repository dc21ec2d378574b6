"""Every operation of the API × every kind of caller × inside, at the border of and outside the subtree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from django.contrib.auth.models import User
from django.db import transaction
from rest_framework.test import APIClient

from kaiweb.api import document
from queues.models import Role, RoleBinding
from tests.kaiweb.api.conftest import Renew
from tests.kaiweb.api.rights.callers import (
    CALLERS,
    INSIDE,
    PLACES,
    SCOPES,
    Call,
    World,
    token_of,
)
from tests.kaiweb.api.rights.operations import OPERATIONS

pytestmark = pytest.mark.django_db


class _UndoneError(Exception):
    """Ends the transaction of one request."""


def _routes() -> Mapping[str, tuple[str, str]]:
    """Return operation -> (method, path), from the OpenAPI document."""
    paths = orjson.loads(document.document().body)["paths"]
    return {
        operation["operationId"]: (method, path)
        for path, methods in paths.items()
        for method, operation in methods.items()
    }


ROUTES = _routes()


@pytest.fixture
def users(db: None) -> dict[str, User]:
    """The users behind the callers; `olga`, an editor elsewhere, owns what belongs to others."""
    rows = {name: User.objects.create_user(name) for name in ("viewer", "editor", "olga")}
    rows["admin"] = User.objects.create_superuser("admin")
    RoleBinding.objects.create(user=rows["editor"], role=Role.EDITOR, subtree="science")
    RoleBinding.objects.create(user=rows["olga"], role=Role.EDITOR, subtree="product")
    return rows


@pytest.fixture
def clients(users: dict[str, User]) -> dict[str, APIClient]:
    clients = {name: APIClient() for name in CALLERS}
    for name in ("viewer", "editor", "admin"):
        clients[name].force_login(users[name])
    for name in SCOPES:
        secret = token_of(users["admin"], name)
        clients[name].credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return clients


def send(client: APIClient, operation: str, call: Call) -> int:
    method, path = ROUTES[operation]
    address = path.format(**call.path) + call.query
    response: Any = client.generic(
        method.upper(),
        address,
        b"" if call.body is None else orjson.dumps(call.body),
        content_type="application/json",
        headers=dict(call.headers),
    )
    status: int = response.status_code
    return status


def test_every_operation_has_a_row() -> None:
    assert set(OPERATIONS) == set(ROUTES), "add a row to tests/kaiweb/api/rights/operations.py"


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
@pytest.mark.usefixtures("mirrored")
def test_who_may_call_it(
    operation: str, users: dict[str, User], clients: dict[str, APIClient], renew: Renew
) -> None:
    row = OPERATIONS[operation]
    wrong = []
    for caller in CALLERS:
        for place in PLACES if row.has_place else (INSIDE,):
            user = users.get(caller, users["admin"])
            world = World(user=user, other=users["olga"], place=place, cluster=renew())
            status = _status(clients[caller], operation, world)
            refusal = 401 if caller == "anonymous" else 403
            expected = row.ok if place in row.allowed[caller] else (refusal,)
            if status not in expected:
                wrong.append(f"{caller}, {place}: expected {expected}, got {status}")
    assert wrong == []


def _status(client: APIClient, operation: str, world: World) -> int:
    """Return the status of one request, and undo it."""
    status = 0
    try:
        with transaction.atomic():
            status = send(client, operation, OPERATIONS[operation].call(world))
            raise _UndoneError
    except _UndoneError:
        return status
