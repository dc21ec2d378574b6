"""A cluster in memory for the doctor, and an API server that answers reviews."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kaiweb.doctor.finding import Check, ClusterContext, Finding
from kube.gateway import Body
from kube.resources import LEASES, SELF_SUBJECT_REVIEWS, SUBJECT_ACCESS_REVIEWS, Resource
from tests.fakes.gateway import FakeGateway

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DEPLOY = Path(__file__).resolve().parents[3] / "deploy"


def stamp(*, seconds_ago: float = 0.0) -> str:
    return (NOW - timedelta(seconds=seconds_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(slots=True)
class ReviewingGateway(FakeGateway):
    """Answers reviews of rights, and dates objects in a dry run."""

    user: str = "admin"
    is_allowed: Callable[[str, dict[str, str]], bool] = lambda _user, _attributes: True
    clock: datetime = NOW
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def create(
        self, resource: Resource, body: Body, *, namespace: str = "", dry_run: bool = False
    ) -> dict[str, Any]:
        if resource == SELF_SUBJECT_REVIEWS:
            return {"status": {"userInfo": {"username": self.user}}}
        if resource.group == "authorization.k8s.io":
            is_other = resource == SUBJECT_ACCESS_REVIEWS
            user = body["spec"]["user"] if is_other else self.user
            attributes = body["spec"]["resourceAttributes"]
            self.asked.append((user, attributes))
            return {"status": {"allowed": self.is_allowed(user, attributes)}}
        if resource == LEASES and dry_run:
            return {"metadata": {"creationTimestamp": self.clock.strftime("%Y-%m-%dT%H:%M:%SZ")}}
        return super(ReviewingGateway, self).create(
            resource, body, namespace=namespace, dry_run=dry_run
        )


def context(gateway: FakeGateway) -> ClusterContext:
    return ClusterContext(gateway=gateway, deploy=DEPLOY, now=lambda: NOW)


def findings(check: Check, gateway: FakeGateway) -> list[Finding]:
    return list(check(context(gateway)))


def lines(check: Check, gateway: FakeGateway) -> list[str]:
    """Return each finding as one line."""
    return [f"{item.severity}: {item.subject}: {item.text}" for item in findings(check, gateway)]


def body(kind: Resource, name: str, *, namespace: str = "", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, **more.pop("metadata", {})}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **more}
