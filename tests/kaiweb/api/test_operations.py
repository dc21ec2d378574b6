"""What goes on after a request has one address, whether it is a simulation or an apply of a change set."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from kaiweb.models import ChangeSet, ChangeSetState, Simulation, SimulationState
from kaiweb.planning import simulations

pytestmark = pytest.mark.django_db
URL = "/api/v1/operations"


def a_simulation(author: User, state: str, **columns: Any) -> Simulation:
    values = {"created_at": timezone.now(), **columns}
    return Simulation.objects.create(author=author, state=state, **values)


def a_change(author: User, state: str, **columns: Any) -> ChangeSet:
    now = timezone.now()
    values = {"created_at": now, "changed_at": now, "title": "t", **columns}
    return ChangeSet.objects.create(author=author, state=state, **values)


def listed(client: APIClient, query: str = "") -> list[tuple[str, str]]:
    items = client.get(f"{URL}{query}").json()["items"]
    return [(item["id"], item["state"]) for item in items]


def test_a_started_simulation_names_its_operation(
    client: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulations, "send", lambda _pk: None)
    started = client.post("/api/v1/simulations", {}, format="json")
    pk = started.json()["id"]
    assert started.status_code == 202
    assert started.headers["Link"] == f'<{URL}/simulation-{pk}>; rel="monitor"'
    response = client.get(f"{URL}/simulation-{pk}")
    body = response.json()
    assert (body["kind"], body["state"], body["author"]) == ("simulation", "queued", "ada")
    assert (body["resource"], body["finishedAt"]) == (f"/api/v1/simulations/{pk}", None)
    assert response.headers["Retry-After"] == "1"


def test_what_is_under_way_can_be_listed(client: APIClient, admin: User) -> None:
    now = timezone.now()
    running = a_simulation(admin, SimulationState.RUNNING)
    finished = a_simulation(admin, SimulationState.DONE, created_at=now - timedelta(hours=1))
    applying = a_change(admin, ChangeSetState.APPLYING, changed_at=now + timedelta(seconds=1))
    failed = a_change(
        admin, ChangeSetState.ROLLED_BACK, changed_at=now - timedelta(hours=2), error="no"
    )
    a_change(admin, ChangeSetState.DRAFT)
    a_change(admin, ChangeSetState.APPLIED, changed_at=now - timedelta(days=8))
    under_way = [(f"change-{applying.pk}", "running"), (f"simulation-{running.pk}", "running")]
    ended = [(f"simulation-{finished.pk}", "done"), (f"change-{failed.pk}", "failed")]
    assert listed(client) == [*under_way, *ended]
    assert listed(client, "?state=queued,running") == under_way
    assert listed(client, "?state=queued&state=failed") == ended[1:]
    assert client.get(f"{URL}?state=draft").status_code == 400
    assert client.get(f"{URL}/change-{failed.pk}").json()["error"] == "no"


def test_a_simulation_without_a_worker_has_failed(client: APIClient, admin: User) -> None:
    lost = timezone.now() - simulations.LOST_AFTER - timedelta(seconds=1)
    row = a_simulation(admin, SimulationState.RUNNING, created_at=lost)
    assert client.get(f"{URL}/simulation-{row.pk}").json()["state"] == "failed"


def test_the_answer_can_be_held_until_the_end(
    client: APIClient, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = a_simulation(admin, SimulationState.RUNNING)

    def wait(has_ended: Any, *, timeout_s: float) -> bool:
        assert (timeout_s, has_ended()) == (5, False)
        Simulation.objects.filter(pk=row.pk).update(state=SimulationState.DONE)
        return bool(has_ended())

    monkeypatch.setattr("kaiweb.api.views.operations.wait_until", wait)
    response = client.get(f"{URL}/simulation-{row.pk}", headers={"Prefer": "wait=5"})
    assert (response.json()["state"], "Retry-After" in response.headers) == ("done", False)


@pytest.mark.parametrize("name", ["simulation-1", "change-1", "x", "change-", "simulation-999999999999999999999"])  # fmt: skip
def test_an_operation_that_is_none_is_not_found(client: APIClient, name: str) -> None:
    assert client.get(f"{URL}/{name}").status_code == 404


def test_a_draft_is_no_operation(client: APIClient, admin: User) -> None:
    row = a_change(admin, ChangeSetState.DRAFT)
    assert client.get(f"{URL}/change-{row.pk}").status_code == 404
