"""With `KAIWEB_READING=granted` nobody sees queues outside the own subtrees: not by name, not in lists, not in simulations."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.urls import resolve
from django.utils import timezone
from rest_framework.test import APIClient

from binder.models import BindRequest
from kaiweb.api.base import Shows
from kaiweb.models import ChangeSet, Simulation, SimulationState
from queues.models import AuditKind, Node, Pod, PodGroup, QuotaChange, RoleBinding
from scheduler.models import EvictionRecord, SessionRecord
from tests.kaiweb.api.conftest import Renew, token_client
from tests.kaiweb.api.rights.callers import INSIDE, OUTSIDE, PLACES, World
from tests.kaiweb.api.rights.operations import OPERATIONS
from tests.kaiweb.api.rights.test_rights_matrix import ROUTES, send

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("mirrored")]
HIDDEN = "product"


@pytest.fixture(autouse=True)
def granted_only(settings: Any) -> None:
    settings.KAIWEB_READING = "granted"


def user_with(role: str, subtree: str, name: str = "tess") -> User:
    user, _is_new = User.objects.get_or_create(username=name)
    RoleBinding.objects.create(user=user, role=role, subtree=subtree)
    return user


@pytest.fixture
def team() -> APIClient:
    """A log-in with the role of a viewer of science."""
    client = APIClient()
    client.force_login(user_with("viewer", "science"))
    return client


def is_about_a_queue(operation: str, world: World) -> bool:
    call = OPERATIONS[operation].call(world)
    return world.queue in f"{call.path} {call.query}" or operation.endswith("Change")


def view_of(operation: str, world: World) -> Any:
    call = OPERATIONS[operation].call(world)
    view: Any = resolve(ROUTES[operation][1].format(**call.path)).func
    return view.view_class


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_what_is_outside_does_not_exist(operation: str, renew: Renew) -> None:
    editor = user_with("editor", "science")
    client, other = APIClient(), User.objects.create_user("olga")
    client.force_login(editor)
    row, wrong = OPERATIONS[operation], []
    for place in PLACES:
        with transaction.atomic():
            world = World(user=editor, other=other, place=place, cluster=renew())
            if not is_about_a_queue(operation, world):
                return
            is_shown = view_of(operation, world).shows is not Shows.NOTHING
            status = send(client, operation, row.call(world))
            transaction.set_rollback(True)
        expected: tuple[int, ...] = (404,)
        if not is_shown:
            expected = (403,)
        elif place != OUTSIDE:
            expected = row.ok if place in row.allowed["editor"] else (403,)
        elif ROUTES[operation][0] == "post" and operation == "createChange":
            expected = (404,)
        if status not in expected:
            wrong.append(f"{place}: expected {expected}, got {status}")
    assert wrong == []


def a_full_cluster(author: User) -> None:
    """Rows of every kind about the hidden queue, each with its name in them."""
    now, group = timezone.now(), f"team/in-{HIDDEN}"
    Node.objects.filter(name="n1").update(gpus=2, gpus_healthy=2)
    Pod.objects.create(
        key=f"{group}-0", namespace="team", name=f"in-{HIDDEN}-0", group=group, node="n1",
        phase="Running", gpu=1, devices=[0], uid="p", version=1, created_at=now,
    )  # fmt: skip
    for position, name in enumerate((HIDDEN, "physics"), start=1):
        PodGroup.objects.filter(key=f"team/in-{name}").update(position=position)
    BindRequest.objects.create(
        key=f"{group}-0", namespace="team", name=f"in-{HIDDEN}-0", pod=f"{group}-0", node="n1",
        uid="b", version=1, created_at=now,
    )  # fmt: skip
    for kind in AuditKind.values:
        QuotaChange.objects.create(
            kind=kind, queue=HIDDEN, target=f"x-{HIDDEN}", action="update", actor="ada", at=now
        )
    move = {"workload": group, "queue": HIDDEN, "evictor": "team/in-physics", "evictorQueue": "physics"}  # fmt: skip
    back = {"workload": "team/in-physics", "queue": "physics", "evictor": group, "evictorQueue": HIDDEN}  # fmt: skip
    rest = {"action": "reclaim", "kind": "evict", "pods": 1, "refused": 0, "gpu": 1.0, "nodes": ["n1"], "text": f"for {HIDDEN}"}  # fmt: skip
    session = SessionRecord.objects.create(
        shard="default", number=1, started_at=now, duration_ms=1, snapshot_ms=1, commit_ms=1,
        decisions=[{**move, **rest}, {**back, **rest}],
    )  # fmt: skip
    for entry in (move, back):
        EvictionRecord.objects.create(
            session=session.pk, at=now, shard="default", rule="reclaim", workload=entry["workload"],
            queue=entry["queue"], evictor=entry["evictor"], evictor_queue=entry["evictorQueue"],
            pods=1, gpu=1, text=f"for {HIDDEN}",
        )  # fmt: skip
    simulation = Simulation.objects.create(
        author=author, created_at=now, state=SimulationState.DONE,
        question={"queues": [{"name": HIDDEN, "edit": {}}]},
    )  # fmt: skip
    ChangeSet.objects.create(
        author=author, title=f"edit {HIDDEN}", preview=simulation, created_at=now, changed_at=now,
        edits=[{"name": HIDDEN, "action": "update", "edit": {"priority": 2}}], tags={},
    )  # fmt: skip


@pytest.mark.parametrize(
    "operation", sorted(name for name in OPERATIONS if ROUTES[name][0] == "get")
)
def test_no_answer_names_what_is_outside(operation: str, team: APIClient, renew: Renew) -> None:
    other = User.objects.create_user("olga")
    a_full_cluster(other)
    world = World(
        user=User.objects.get(username="tess"), other=other, place=INSIDE, cluster=renew()
    )
    if operation in ("getSession", "listSessionDecisions"):
        path = {"id": SessionRecord.objects.get().pk}
        address = ROUTES[operation][1].format(**path)
    else:
        call = OPERATIONS[operation].call(world)
        address = ROUTES[operation][1].format(**call.path) + call.query
    answer = team.get(address)
    assert answer.status_code in (200, 202, 403, 404)
    body = answer.content if not answer.streaming else b""
    assert HIDDEN.encode() not in body.replace(b"nvidia.com/gpu.product", b"")
    if answer.status_code == 200 and operation in ("listWorkloads", "listQueues", "getOrder"):
        assert b"physics" in body


def test_an_admin_and_a_viewer_of_everything_see_everything(renew: Renew) -> None:
    renew()
    for role, subtree in (("admin", ""), ("viewer", "")):
        client = APIClient()
        client.force_login(user_with(role, subtree, f"{role}-of-all"))
        names = {item["name"] for item in client.get("/api/v1/queues").json()["items"]}
        assert names == {"science", "physics", "product"}
        assert client.get("/api/v1/me").json()["seesOnly"] is None


def test_a_user_without_a_role_may_read_nothing(renew: Renew) -> None:
    client = APIClient()
    client.force_login(User.objects.create_user("nobody"))
    answer = client.get("/api/v1/queues")
    assert (answer.status_code, "no role" in answer.json()["detail"]) == (403, True)


def test_a_token_narrows_what_its_owner_sees(renew: Renew) -> None:
    renew()
    owner = user_with("admin", "", "ada")
    narrowed = token_client(owner, ["read"], subtree="physics")
    names = [item["name"] for item in narrowed.get("/api/v1/queues").json()["items"]]
    assert names == ["physics"]
    assert narrowed.get("/api/v1/queues/science").status_code == 404
    assert narrowed.get("/api/v1/me").json()["seesOnly"] == ["physics"]


def test_who_waits_ahead_outside_is_counted_and_not_named(team: APIClient, renew: Renew) -> None:
    a_full_cluster(User.objects.create_user("olga"))
    order = team.get("/api/v1/workloads/team/in-physics/explain").json()["order"]
    assert (order["position"], order["ahead"]) == (2, [])


def test_a_device_held_by_others_keeps_its_size(team: APIClient, renew: Renew) -> None:
    a_full_cluster(User.objects.create_user("olga"))
    device = team.get("/api/v1/nodes/n1").json()["devices"][0]
    assert (device["state"], device["holders"]) == (
        "whole", [{"pod": "", "workload": "", "queue": "", "gpu": 1}],
    )  # fmt: skip


@pytest.mark.parametrize("name", [HIDDEN, "nowhere"])
@pytest.mark.parametrize(
    "question",
    [
        lambda name: {"queues": [{"name": name, "edit": {"priority": 2}}]},
        lambda name: {"queues": [{"name": "physics", "edit": {"parent": name}}]},
        lambda name: {"workloads": {"add": [{"name": "w", "queue": name, "gpu": 1}]}},
        lambda name: {"workloads": {"remove": [f"team/in-{name}"]}},
        lambda name: {
            "workloads": {
                "manifests": [
                    {"kind": "Pod", "metadata": {"labels": {"kai.scheduler/queue": name}}}
                ]
            }
        },
    ],
    ids=["edit", "parent", "add", "remove", "manifest"],
)
def test_a_simulation_knows_no_queue_outside(
    team: APIClient, renew: Renew, name: str, question: Any
) -> None:
    renew()
    answer = team.post("/api/v1/simulations", question(name), format="json")
    assert answer.status_code == 422
    assert f"{name}' does not exist" in answer.json()["detail"]


def test_the_answer_of_a_simulation_names_no_queue_outside(team: APIClient, renew: Renew) -> None:
    renew()
    answer = team.post("/api/v1/simulations", {"queues": []}, format="json").json()
    assert {row["queue"] for row in answer["answer"]["shares"]} == {"science", "physics"}
    assert HIDDEN not in str(answer)


def test_a_draft_about_a_queue_outside_is_refused_as_unknown(renew: Renew) -> None:
    renew()
    client = APIClient()
    client.force_login(user_with("editor", "science"))
    for edit in ({"name": HIDDEN, "edit": {"priority": 2}}, {"name": "new", "action": "create", "edit": {"parent": HIDDEN}}):  # fmt: skip
        answer = client.post("/api/v1/changes", {"edits": [edit]}, format="json")
        assert (answer.status_code, answer.json()["detail"]) == (
            404, f"queue '{HIDDEN}' does not exist",
        )  # fmt: skip
