"""The URLs of REST version 1."""

from __future__ import annotations

from django.urls import path, re_path

from kaiweb.api import document
from kaiweb.api.views import (
    access,
    accounts,
    audit,
    changes,
    health,
    nodes,
    queue_trees,
    queues,
    scheduling,
    session,
    simulations,
    workload_actions,
    workloads,
)

WORKLOAD = "workloads/<str:namespace>/<str:name>"

urlpatterns = [
    path("openapi.json", document.openapi, name="openapi"),
    path("me", session.Me.as_view(), name="me"),
    path("health", health.Health.as_view(), name="health"),
    path("version", session.Version.as_view(), name="version"),
    path("queues", queues.Queues.as_view(), name="queues"),
    path("queues/<str:name>", queues.QueueDetail.as_view(), name="queue"),
    path("queues/<str:name>/order", workloads.QueueWaitingOrder.as_view(), name="queue-order"),
    path("queue-trees/<str:root>", queue_trees.QueueTree.as_view(), name="queue-tree"),
    path("order", workloads.WaitingOrder.as_view(), name="order"),
    path("workloads", workloads.Workloads.as_view(), name="workloads"),
    path(WORKLOAD, workloads.WorkloadDetail.as_view(), name="workload"),
    path(f"{WORKLOAD}/explain", workloads.WorkloadExplain.as_view(), name="workload-explain"),
    path(f"{WORKLOAD}/hold", workload_actions.Hold.as_view(), name="workload-hold"),
    path(f"{WORKLOAD}/release", workload_actions.Release.as_view(), name="workload-release"),
    path(f"{WORKLOAD}/requeue", workload_actions.Requeue.as_view(), name="workload-requeue"),
    path(f"{WORKLOAD}/retry-bind", workload_actions.RetryBind.as_view(), name="workload-retry"),
    path(f"{WORKLOAD}/pods", workloads.WorkloadPods.as_view(), name="workload-pods"),
    path("nodes", nodes.Nodes.as_view(), name="nodes"),
    path("nodes/<str:name>", nodes.NodeDetail.as_view(), name="node"),
    path("gpus", nodes.Gpus.as_view(), name="gpus"),
    path("sessions", scheduling.Sessions.as_view(), name="sessions"),
    path("sessions/<int:pk>", scheduling.SessionDetail.as_view(), name="session"),
    path("bind-requests", scheduling.BindRequests.as_view(), name="bind-requests"),
    path("cluster", scheduling.Cluster.as_view(), name="cluster"),
    path("simulations", simulations.Simulations.as_view(), name="simulations"),
    path(
        "simulations:check-workload",
        simulations.CheckWorkload.as_view(),
        name="simulations-check-workload",
    ),
    path("simulations/<int:pk>", simulations.SimulationDetail.as_view(), name="simulation"),
    path("changes", changes.Changes.as_view(), name="changes"),
    path("changes/<int:pk>", changes.ChangeDetail.as_view(), name="change"),
    path("changes/<int:pk>:preview", changes.ChangePreview.as_view(), name="change-preview"),
    path("changes/<int:pk>:request", changes.ChangeRequest.as_view(), name="change-request"),
    path("changes/<int:pk>:approve", changes.ChangeApprove.as_view(), name="change-approve"),
    path("changes/<int:pk>:reject", changes.ChangeReject.as_view(), name="change-reject"),
    path("changes/<int:pk>:apply", changes.ChangeApply.as_view(), name="change-apply"),
    path("changes/<int:pk>:revert", changes.ChangeRevert.as_view(), name="change-revert"),
    path("audit", audit.Audit.as_view(), name="audit"),
    path("tokens", access.Tokens.as_view(), name="tokens"),
    path("tokens/<int:pk>", access.TokenDetail.as_view(), name="token"),
    path("users", accounts.Users.as_view(), name="users"),
    path("users/<str:username>", accounts.UserDetail.as_view(), name="user"),
    path("role-bindings", accounts.RoleBindings.as_view(), name="role-bindings"),
    path("role-bindings/<int:pk>", accounts.RoleBindingDetail.as_view(), name="role-binding"),
    path("live/tickets", access.Tickets.as_view(), name="live-tickets"),
    re_path(r"^.*$", session.Unknown.as_view(), name="unknown"),
]
