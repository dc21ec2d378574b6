# ruff: noqa: RUF012 - msgspec gives every struct its own copy of an empty default
"""Small kinds of the cluster: priority classes, config maps, namespaces, leases, events."""

from __future__ import annotations

from datetime import datetime

from kube.objects.meta import KubeObject, KubeStruct


class PriorityClass(KubeObject, frozen=True, kw_only=True):
    value: int = 0
    global_default: bool = False


class ConfigMap(KubeObject, frozen=True, kw_only=True):
    data: dict[str, str] = {}


class LeaseSpec(KubeStruct, frozen=True, kw_only=True):
    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int = 0


class Lease(KubeObject, frozen=True, kw_only=True):
    spec: LeaseSpec = LeaseSpec()


class ObjectReference(KubeStruct, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class EventSource(KubeStruct, frozen=True, kw_only=True):
    component: str = ""


class Event(KubeObject, frozen=True, kw_only=True):
    involved_object: ObjectReference = ObjectReference()
    type: str = ""
    reason: str = ""
    message: str = ""
    source: EventSource = EventSource()
    count: int = 0
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
