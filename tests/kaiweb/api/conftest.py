"""A logged-in caller, a fake cluster, and the mirror that follows it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from kaiweb.planning import simulations
from kube.resources import NODES, PODGROUPS, QUEUES
from queues.access import tokens
from queues.mirror.feed import ListMessage, Mirror
from queues.mirror.kinds import KINDS
from queues.mirror.views import QueueView
from queues.mirror.writer import Writer
from queues.models import Role, RoleBinding
from tests.fakes.gateway import FakeGateway
from tests.queues.cluster_objects import a_group, a_node, a_queue, listed

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


# ---- a cluster for calls of every operation: a queue inside, at the border of and outside the subtree `science`

QUEUE_AT = {"inside": "physics", "border": "science", "outside": "product"}


@pytest.fixture
def mirrored(db: None) -> None:
    """The mirror of `renew`'s cluster, with a node."""
    mirror = Mirror(KINDS, Writer(sleep=lambda _s: None), now=lambda: NOON)
    groups = [a_group(f"in-{queue}", namespace="team", queue=queue) for queue in QUEUE_AT.values()]
    queues = [a_queue("science"), a_queue("physics", parent="science"), a_queue("product")]
    mirror.consume([listed(QUEUES, *queues), listed(NODES, a_node("n1")), listed(PODGROUPS, *groups)])  # fmt: skip


Renew = Callable[[], FakeGateway]


@pytest.fixture
def renew(monkeypatch: pytest.MonkeyPatch) -> Renew:
    """Give every view a new cluster."""
    current = [FakeGateway(now=NOON)]
    for name, module in tuple(sys.modules.items()):
        if name.startswith("kaiweb.") and hasattr(module, "gateway"):
            monkeypatch.setattr(module, "gateway", lambda: current[0])
    monkeypatch.setattr("kaiweb.api.views.queues.MIRROR_WAIT_S", 0.0)
    monkeypatch.setattr(simulations, "send", lambda pk: simulations.run(pk, current[0], timezone.now))  # fmt: skip

    def new_cluster() -> FakeGateway:
        current[0] = FakeGateway(now=NOON)
        current[0].seed(
            QUEUES, queue_body("science"), queue_body("physics", "science"), queue_body("product")
        )
        for queue in QUEUE_AT.values():
            meta = {"name": f"in-{queue}", "namespace": "team"}
            current[0].seed(PODGROUPS, {"metadata": meta, "spec": {"queue": queue}})
        return current[0]

    return new_cluster
