"""A logged-in caller, a fake cluster, and the mirror that follows it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from kube.resources import QUEUES
from queues.access import tokens
from queues.mirror.feed import ListMessage, Mirror
from queues.mirror.kinds import KINDS
from queues.mirror.views import QueueView
from queues.mirror.writer import Writer
from queues.models import Role, RoleBinding
from tests.fakes.gateway import FakeGateway

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


def queue_body(name: str, parent: str = "", **gpu: Any) -> dict[str, Any]:
    amounts = {"quota": 0, "limit": -1, "overQuotaWeight": 1}
    spec: dict[str, Any] = {
        "resources": {"gpu": {**amounts, **gpu}, "cpu": dict(amounts), "memory": dict(amounts)}
    }
    if parent:
        spec["parentQueue"] = parent
    return {
        "apiVersion": "scheduling.run.ai/v2", "kind": "Queue",
        "metadata": {"name": name}, "spec": spec,
    }  # fmt: skip


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, db: None) -> FakeGateway:
    """A cluster with science > physics, biology, and product."""
    fake = FakeGateway(now=NOON)
    fake.seed(
        QUEUES,
        queue_body("science", quota=20),
        queue_body("physics", "science", quota=12, limit=16),
        queue_body("biology", "science", quota=8),
        queue_body("product", quota=10),
    )
    monkeypatch.setattr("kaiweb.api.views.queues.gateway", lambda: fake)
    monkeypatch.setattr("kaiweb.api.views.queues.MIRROR_WAIT_S", 0.0)
    return fake


@pytest.fixture
def sync(cluster: FakeGateway) -> Callable[[], None]:
    """Bring the mirror up to date."""

    def follow() -> None:
        mirror = Mirror(KINDS, Writer(sleep=lambda _s: None), now=lambda: NOON)
        mirror.consume([ListMessage(QUEUES, cluster.list(QUEUES, as_type=QueueView))])

    follow()
    return follow


@pytest.fixture
def admin(db: None) -> User:
    return User.objects.create_superuser("ada", password="a-long-password")


@pytest.fixture
def client(admin: User) -> APIClient:
    """An admin with a bearer token."""
    return token_client(admin, ["admin"])


@pytest.fixture
def editor(db: None) -> APIClient:
    """An editor of what is below science."""
    user = User.objects.create_user("emmy")
    RoleBinding.objects.create(user=user, role=Role.EDITOR, subtree="science")
    return token_client(user, ["read", "queues:write"])


@pytest.fixture
def viewer(db: None) -> APIClient:
    return token_client(User.objects.create_user("vera"), ["read"])


def token_client(user: User, scopes: list[str], **options: Any) -> APIClient:
    values = {"name": "test", "subtree": "", "expires_at": None, "now": timezone.now(), **options}
    _row, secret = tokens.create(user=user, scopes=scopes, **values)
    api_client = APIClient()
    api_client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return api_client
