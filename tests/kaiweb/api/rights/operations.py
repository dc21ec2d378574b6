"""Every operation of the API with the rule that decides who may call it, and a request that succeeds if allowed.

`test_rights_matrix` compares the table with the OpenAPI document, so a new operation needs a row here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from binder.models import BindRequest
from kaiweb.models import ChangeSet, ChangeSetState, Simulation, SimulationState
from kaiweb.notifications.models import Webhook
from kaiweb.notifications.webhook_writes import tag_of as webhook_tag
from kaiweb.planning import change_sets
from kaiweb.planning.change_sets import tags_of
from kaiweb.shards.reading import tag_of_shard
from kaiweb.usage import tiers
from kaiweb.usage.models import GpuPrice, Span
from kaiweb.usage.price_writes import tag_of as price_tag
from kaiweb.usage.prices import currency
from kube.resources import NODES, SHARDS, TOPOLOGIES
from queues.access import tokens
from queues.editing.policies import change_policy, tag_of
from queues.models import Node, Pod, Role, RoleBinding
from scheduler.models import EvictionRecord, SessionRecord
from scheduler.tools.simulate.what_if.question import QueueEdit
from tests.kaiweb.api.rights.callers import (
    ACCESS,
    ADMIN,
    ADMIN_LOGIN,
    DRAFT,
    EDIT,
    EVERYBODY,
    INSIDE,
    LOGGED_IN,
    LOGIN,
    NODE_WORK,
    PLACE,
    READ,
    SIMULATE,
    USE,
    WORK,
    Call,
    Row,
    World,
)


def _queue(world: World) -> Call:
    return Call(path={"name": world.queue})


def _edit_of(world: World) -> Call:
    body = {"displayName": "renamed"}
    return Call(path={"name": world.queue}, body=body, headers=world.tag())


def _replacement_of(world: World) -> Call:
    parent = "science" if world.place == INSIDE else None
    body = {"displayName": "renamed", "parent": parent}
    return Call(path={"name": world.queue}, body=body, headers=world.tag())


def _tree(world: World) -> Call:
    child = {"name": "fresh", "quota": {"gpu": 0}}
    return Call(path={"root": world.queue}, body={"name": world.queue, "children": [child]})


def _workload(world: World) -> Call:
    return Call(path={"namespace": "team", "name": f"in-{world.queue}"})


def _change(world: World, author: User, state: str = "draft") -> ChangeSet:
    edits = [QueueEdit(name=world.queue, edit={"displayName": "renamed"})]
    now, bodies = timezone.now(), change_sets.live_queues(world.cluster)
    return ChangeSet.objects.create(
        author=author, title="t", state=state, created_at=now, changed_at=now,
        edits=[{"name": edit.name, "action": "update", "edit": edit.edit} for edit in edits],
        tags=tags_of(bodies, edits),
    )  # fmt: skip


def _own_change(world: World) -> Call:
    return Call(path={"id": _change(world, world.user).pk}, body={})


def _others_change(state: str = "draft") -> Callable[[World], Call]:
    return lambda world: Call(path={"id": _change(world, world.other, state).pk}, body={})


def _simulation(world: World) -> Call:
    row = Simulation.objects.create(
        author=world.other, created_at=timezone.now(), state=SimulationState.DONE
    )
    return Call(path={"id": row.pk})


def _session(_world: World) -> Call:
    row = SessionRecord.objects.create(
        shard="default", number=1, started_at=timezone.now(), duration_ms=1, snapshot_ms=1, commit_ms=1
    )  # fmt: skip
    return Call(path={"id": row.pk})


def _eviction(world: World) -> Call:
    row = EvictionRecord.objects.create(
        session=1, at=timezone.now(), shard="default", rule="reclaim", queue=world.queue,
        workload=f"team/in-{world.queue}", pods=1, gpu=1,
    )  # fmt: skip
    return Call(path={"id": row.pk})


def _seeded_node(world: World) -> Call:
    world.cluster.seed(NODES, {"metadata": {"name": "n1"}})
    return Call(path={"name": "n1"})


def _topology(world: World) -> Call:
    levels = [{"nodeLabel": "example.com/rack"}]
    world.cluster.seed(TOPOLOGIES, {"metadata": {"name": "racks"}, "spec": {"levels": levels}})
    return Call(path={"name": "racks"})


def _shard(world: World) -> Call:
    world.cluster.seed(
        SHARDS, {"metadata": {"name": "pool-a"}, "spec": {"partitionLabelValue": "a"}}
    )
    tag = tag_of_shard(world.cluster.raw(SHARDS, "pool-a"))
    return Call(
        path={"name": "pool-a"}, body={"spec": {"kValue": 2}}, headers={"If-Match": f'"{tag}"'}
    )


def _gpu(_world: World) -> Call:
    Node.objects.filter(name="n1").update(gpus=1, gpus_healthy=1)
    return Call(path={"node": "n1", "index": 0})


def _bind_request(world: World) -> Call:
    """Return a call for a request to bind a pod of the queue at the place."""
    name = f"in-{world.queue}-0"
    key, now = f"team/{name}", timezone.now()
    values = {"namespace": "team", "name": name, "uid": name, "version": 1, "created_at": now}
    Pod.objects.get_or_create(key=key, defaults={**values, "group": f"team/in-{world.queue}"})
    BindRequest.objects.get_or_create(key=key, defaults={**values, "pod": key, "node": "n1"})
    return Call(path={"namespace": "team", "name": name})


def _operation(world: World) -> Call:
    return Call(path={"id": f"change-{_change(world, world.other, ChangeSetState.APPLIED).pk}"})


def _report(world: World) -> Call:
    now = timezone.now()
    start = tiers.floor(now, tiers.DAY)
    Span.objects.get_or_create(tier=tiers.DAY, start=start, defaults={"covered_s": 60})
    return Call(path={"month": now.strftime("%Y-%m")}, query=f"?queue={world.queue}")


def _own_token(world: World) -> Call:
    row, _secret = tokens.create(
        user=world.user, name="t", scopes=["read"], subtree="", expires_at=None, now=timezone.now()
    )
    return Call(path={"id": row.pk})


def _binding(world: World) -> Call:
    row = RoleBinding.objects.create(user=world.other, role=Role.EDITOR, subtree=world.queue)
    return Call(path={"id": row.pk})


def _body(**body: Any) -> Callable[[World], Call]:
    return lambda _world: Call(body=body)


def _new_binding(world: World) -> Call:
    return Call(body={"username": "olga", "role": "viewer", "subtree": world.queue})


NEW_QUEUE = {"name": "fresh", "quota": {"gpu": 0}}
NEW_WORKLOAD = {"name": "w", "queue": "product", "gpu": 1}


def _price(_world: World) -> Call:
    row = GpuPrice.objects.create(model="*", price=1, valid_from=date(2026, 12, 1))
    return Call(path={"id": row.pk}, body={"price": 2}, headers={"If-Match": f'"{price_tag(row)}"'})


def _webhook(_world: World) -> Call:
    now = timezone.now()
    row = Webhook.objects.create(
        name="hook", url="https://hooks.example/x", events=["workloadEvicted"],
        created_at=now, since=now, looked_at=now,
    )  # fmt: skip
    headers = {"If-Match": f'"{webhook_tag(row)}"'}
    return Call(path={"id": row.pk}, body={"waitMinutes": 5}, headers=headers)


OPERATIONS: Mapping[str, Row] = {
    "getMe": Row(LOGGED_IN),
    "getPreferences": Row(LOGIN),
    "patchPreferences": Row(LOGIN, _body(utc=True)),
    "getVersion": Row(LOGGED_IN),
    "getHealth": Row(READ),
    "getCluster": Row(READ),
    "listQueues": Row(READ),
    "getQueue": Row(READ, _queue),
    "getQueueOrder": Row(READ, _queue),
    "getQueueShare": Row(READ, _queue),
    "getQueueAccess": Row(ACCESS, _queue),
    "getQueueYaml": Row(READ, _queue),
    # In the table nobody else owns the queue, which is found out after the right is checked.
    "takeOverQueue": Row(
        ADMIN,
        lambda world: Call(path={"name": world.queue}, body={"owner": "argocd"}),
        ok=(409,),
    ),
    "getQueueHistory": Row(USE, _queue),
    "getQueueUsage": Row(USE, _queue),
    "getQueuesHistory": Row(USE, lambda world: Call(query=f"?queue={world.queue}")),
    "getUsageHistory": Row(USE, lambda world: Call(query=f"?queue={world.queue}")),
    "getUsage": Row(USE, lambda world: Call(query=f"?queue={world.queue}&by=owner")),
    "createQueue": Row(PLACE, lambda world: Call(body={**NEW_QUEUE, "parent": world.queue})),
    "putQueue": Row(EDIT, _replacement_of),
    "patchQueue": Row(EDIT, _edit_of),
    # `science` has children, so nobody can delete it.
    "deleteQueue": Row(
        EDIT, lambda world: Call(path={"name": world.queue}, headers=world.tag()), ok=(204, 422)
    ),
    "getQueueTree": Row(READ, lambda world: Call(path={"root": world.queue})),
    "putQueueTree": Row(PLACE, _tree),
    "getOrder": Row(READ),
    "listWorkloads": Row(READ),
    "getWorkload": Row(READ, _workload),
    "explainWorkload": Row(READ, _workload),
    "listWorkloadPods": Row(READ, _workload),
    "getWorkloadTimeline": Row(READ, _workload),
    "getWorkloadUtilisation": Row(READ, _workload),
    "getWorkloadYaml": Row(READ, _workload),
    "listWorkloadEvents": Row(READ, _workload),
    "waitForWorkload": Row(
        READ, lambda world: Call(path=_workload(world).path, query="?for=running")
    ),
    "waitForQueue": Row(
        READ, lambda world: Call(path={"name": world.queue}, query="?generation=1")
    ),
    "streamEvents": Row(READ, lambda _world: Call(query="?topic=queues")),
    "retryWorkloadBind": Row(WORK, _workload),
    "holdWorkload": Row(WORK, _workload),
    "releaseWorkload": Row(WORK, _workload),
    "requeueWorkload": Row(WORK, _workload),
    "listNodes": Row(READ),
    "getNode": Row(READ, lambda _world: Call(path={"name": "n1"})),
    # On a node that nobody blames; otherwise the queues of the workloads decide.
    "retryNodeBinds": Row(NODE_WORK, lambda _world: Call(path={"name": "n1"})),
    "listNodePods": Row(READ, lambda _world: Call(path={"name": "n1"})),
    "getNodeYaml": Row(READ, _seeded_node),
    "listTopologies": Row(READ),
    "getTopology": Row(READ, _topology),
    "listGpus": Row(READ),
    "getGpu": Row(READ, _gpu),
    "listShards": Row(READ),
    "getShard": Row(READ, _shard),
    "createShard": Row(ADMIN, _body(name="pool-b", spec={"partitionLabelValue": "b"})),
    "putShard": Row(ADMIN, _shard),
    "patchShard": Row(ADMIN, _shard),
    "deleteShard": Row(ADMIN, _shard),
    "getSettings": Row(READ),
    "getPolicies": Row(READ),
    "patchPolicies": Row(
        ADMIN,
        lambda _world: Call(
            body={"approval": "reductions"}, headers={"If-Match": f'"{tag_of(change_policy())}"'}
        ),
    ),
    "listPrices": Row(READ),
    "createPrice": Row(ADMIN, _body(model="*", price=2)),
    "patchPrices": Row(
        ADMIN,
        lambda _world: Call(
            body={"currency": "USD"}, headers={"If-Match": f'"{price_tag(currency())}"'}
        ),
    ),
    "patchPrice": Row(ADMIN, _price),
    "deletePrice": Row(ADMIN, _price),
    "listNotifications": Row(ADMIN),
    "createNotification": Row(
        ADMIN, _body(name="ops", url="https://hooks.example/x", events=["workloadEvicted"])
    ),
    "getNotification": Row(ADMIN, _webhook),
    "patchNotification": Row(ADMIN, _webhook),
    "deleteNotification": Row(ADMIN, _webhook),
    "listNotificationDeliveries": Row(ADMIN, _webhook),
    "testNotification": Row(ADMIN, _webhook),
    "getSnapshot": Row(ADMIN),
    "listOperations": Row(READ),
    "getOperation": Row(READ, _operation),
    "listReports": Row(READ),
    "getReport": Row(USE, _report),
    "listSessions": Row(READ),
    "getSession": Row(READ, _session),
    "listSessionDecisions": Row(READ, _session),
    "listEvictions": Row(READ),
    "getEviction": Row(READ, _eviction),
    "getEvictionMatrix": Row(READ),
    "listBindRequests": Row(READ),
    "getBindRequest": Row(READ, _bind_request),
    "listAudit": Row(READ),
    "listSimulations": Row(READ),
    "createSimulation": Row(SIMULATE, _body(queues=[])),
    "checkWorkload": Row(SIMULATE, _body(workload=NEW_WORKLOAD)),
    "getSimulation": Row(READ, _simulation),
    "deleteSimulation": Row(ADMIN, _simulation),
    "listChanges": Row(READ),
    "getChange": Row(READ, _others_change()),
    "getChangePatch": Row(READ, _others_change()),
    "createChange": Row(
        DRAFT, lambda world: Call(body={"edits": [{"name": world.queue, "edit": {"priority": 2}}]})
    ),
    "patchChange": Row(ADMIN, _others_change()),
    "deleteChange": Row(ADMIN, _others_change()),
    "requestChange": Row(ADMIN, _others_change()),
    "previewChange": Row(SIMULATE, _others_change()),
    "approveChange": Row(ADMIN, _others_change(ChangeSetState.REQUESTED)),
    "rejectChange": Row(ADMIN, _others_change(ChangeSetState.REQUESTED)),
    "applyChange": Row(EDIT, _own_change),
    "revertChange": Row(DRAFT, _others_change(ChangeSetState.APPLIED)),
    "listTokens": Row(LOGIN),
    "createToken": Row(LOGIN, _body(name="t")),
    # Needs no log-in, and is not set up here.
    "exchangeToken": Row(EVERYBODY, _body(token="a.b.c"), ok=(404,)),
    "revokeToken": Row(LOGIN, _own_token),
    "createLiveTicket": Row(READ),
    "listUsers": Row(ADMIN),
    "getUser": Row(ADMIN, lambda _world: Call(path={"username": "olga"})),
    "createUser": Row(ADMIN_LOGIN, _body(username="new")),
    "patchUser": Row(
        ADMIN_LOGIN, lambda _world: Call(path={"username": "olga"}, body={"isActive": False})
    ),
    "listRoleBindings": Row(ADMIN),
    "createRoleBinding": Row(ADMIN, _new_binding),
    "deleteRoleBinding": Row(ADMIN, _binding),
}
