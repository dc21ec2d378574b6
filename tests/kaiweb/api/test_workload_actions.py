"""Hold, release and requeue over REST: annotations of the pod group, audited, answered once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from kube.errors import ForbiddenError, ServerError
from kube.resources import PODGROUPS, PODS, QUEUES
from queues.mirror.feed import Mirror
from queues.mirror.kinds import KINDS
from queues.mirror.writer import Writer
from queues.models import PodGroup, QuotaChange
from queues.workloads.holds import BY_MAX_RUN_TIME, Hold, annotations_of_hold
from tests.fakes.gateway import FakeGateway
from tests.kaiweb.api.conftest import NOON
from tests.queues.cluster_objects import a_group, a_pod, a_queue, listed, modified

pytestmark = pytest.mark.django_db
URL = "/api/v1/workloads/default/train"


@pytest.fixture
def groups(cluster: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> FakeGateway:
    """A cluster with pod group `train` in `physics`, of one waiting pod, and the mirror of it."""
    monkeypatch.setattr("kaiweb.api.views.workload_actions.gateway", lambda: cluster)
    meta = {"name": "train", "namespace": "default"}
    cluster.seed(PODGROUPS, {"metadata": meta, "spec": {"queue": "physics"}})
    queues = [a_queue("science"), a_queue("physics", parent="science")]
    show(listed(QUEUES, *queues), listed(PODGROUPS, a_group("train", queue="physics")))
    show(listed(PODS, a_pod("train-0", group="train")))
    return cluster


def show(*messages: Any) -> None:
    Mirror(KINDS, Writer(sleep=lambda _s: None), now=lambda: NOON).consume(messages)


def annotations(cluster: FakeGateway) -> dict[str, str]:
    stored: dict[str, str] = cluster.raw(PODGROUPS, "train", "default")["metadata"].get("annotations", {})  # fmt: skip
    return stored


def act(client: APIClient, verb: str, body: Any = None, query: str = "", **headers: str) -> Any:
    return client.post(f"{URL}/{verb}{query}", body or {}, format="json", headers=headers)


def test_a_hold_is_written_answered_and_audited(client: APIClient, groups: FakeGateway) -> None:
    until = (timezone.now() + timedelta(hours=2)).replace(microsecond=0)
    response = act(client, "hold", {"reason": "budget", "until": until.isoformat()})
    assert response.status_code == 200
    assert response.json()["hold"] == {"reason": "budget", "until": until.isoformat().replace("+00:00", ".000Z"), "by": ""}  # fmt: skip
    assert annotations(groups)["kaiweb.dev/hold"] == "budget"
    entry = client.get("/api/v1/audit?kind=workload").json()["items"][0]
    assert [entry[name] for name in ("action", "target", "queue", "state", "reason", "actor")] == [
        "hold", "default/train", "physics", "done", "budget", "ada",
    ]  # fmt: skip
    released = act(client, "release")
    assert (released.status_code, released.json()["hold"]) == (200, None)
    assert annotations(groups) == {}


def test_a_held_workload_says_so_in_list_and_explanation(
    client: APIClient, groups: FakeGateway
) -> None:
    annotations = annotations_of_hold(Hold("waits for the audit"))
    marks = {name: value for name, value in annotations.items() if value is not None}
    show(modified(PODGROUPS, a_group("train", 2, queue="physics", annotations=marks)))
    item = client.get(URL).json()
    assert item["hold"] == {"reason": "waits for the audit", "until": None, "by": ""}
    assert (item["reason"], item["reasonText"]) == ("Held", "Held by a person: waits for the audit")
    stages = {stage["stage"]: stage["state"] for stage in item["explain"]["stages"]}
    assert stages["grouped"] == "blocked"


def test_the_wait_after_a_maximum_run_time_is_shown_as_such_and_can_be_released(
    client: APIClient, groups: FakeGateway
) -> None:
    until = datetime(2126, 1, 1, tzinfo=UTC)
    annotations = annotations_of_hold(Hold("ran for its maximum of 1h0m0s", until, BY_MAX_RUN_TIME))
    marks = {**annotations, "kaiweb.dev/run-deadline": "2026-05-01T10:00:00Z"}
    show(modified(PODGROUPS, a_group("train", 2, queue="physics", annotations=marks)))
    item = client.get(URL).json()
    assert item["hold"]["by"] == "max-run-time"
    assert item["runDeadline"] == "2026-05-01T10:00:00.000Z"
    assert item["reasonText"] == "Held until 2126-01-01T00:00:00Z: ran for its maximum of 1h0m0s"
    assert act(client, "release").json()["hold"] is None


def test_a_hold_that_has_ended_is_shown_nowhere(client: APIClient, groups: FakeGateway) -> None:
    marks = {"kaiweb.dev/hold": "", "kaiweb.dev/hold-until": "2026-01-01T00:00:00Z"}
    show(modified(PODGROUPS, a_group("train", 2, queue="physics", annotations=marks)))
    item = client.get(URL).json()
    assert (item["reason"], item["hold"]) == ("NotEvaluated", None)


def test_a_requeue_may_hold_for_a_while(client: APIClient, groups: FakeGateway) -> None:
    response = act(client, "requeue", {"until": "2999-01-01T00:00:00Z"})
    assert response.status_code == 200
    assert response.json()["requeueBefore"] is not None
    assert set(annotations(groups)) == {
        "kaiweb.dev/requeue-before", "kaiweb.dev/hold", "kaiweb.dev/hold-until",
    }  # fmt: skip


def test_a_workload_whose_pods_nobody_creates_again_is_not_requeued(
    client: APIClient, groups: FakeGateway
) -> None:
    PodGroup.objects.update(owner_kind="Pod")
    assert act(client, "requeue").status_code == 409
    assert annotations(groups) == {}


def test_a_dry_run_writes_neither_cluster_nor_audit(client: APIClient, groups: FakeGateway) -> None:
    response = act(client, "hold", {"reason": "x"}, "?dryRun=true")
    assert response.json()["hold"] == {"reason": "x", "until": None, "by": ""}
    assert annotations(groups) == {}
    assert not QuotaChange.objects.exists()


def test_a_repeated_request_is_carried_out_once(client: APIClient, groups: FakeGateway) -> None:
    key = {"Idempotency-Key": "k1"}
    first = act(client, "requeue", **key)
    assert act(client, "requeue", **key).json() == first.json()
    assert QuotaChange.objects.count() == 1


@pytest.mark.parametrize(
    ("error", "state"), [(ForbiddenError("no"), "failed"), (ServerError("gone"), "unclear")]
)
def test_a_write_that_the_cluster_refuses_is_audited_as_such(
    client: APIClient, groups: FakeGateway, error: Exception, state: str
) -> None:
    groups.fail_next("patch", "podgroups", error)  # type: ignore[arg-type]
    assert act(client, "hold").status_code >= 400
    assert QuotaChange.objects.get().state == state


@pytest.mark.parametrize(
    "body",
    [{"reason": 1}, {"reason": "a\u0000"}, {"reason": "x" * 1025}, {"until": "tomorrow"},
     {"until": "2020-01-01T00:00:00Z"}, {"until": "2030-01-01T00:00:00"}, {"why": "x"}, [1]],
)  # fmt: skip
def test_a_body_that_cannot_be_read_is_refused(
    client: APIClient, groups: FakeGateway, body: Any
) -> None:
    assert act(client, "hold", body).status_code == 422
    assert annotations(groups) == {}
