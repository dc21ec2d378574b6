"""The health of the installation: readiness, processes, objects set aside."""

from __future__ import annotations

from rest_framework import serializers as s


class HealthFault(s.Serializer[object]):
    check = s.CharField()
    fault = s.CharField()
    since = s.DateTimeField()


class HealthProcess(s.Serializer[object]):
    name = s.CharField()
    fault = s.CharField(help_text="empty if it is well")
    heldObject = s.CharField(allow_null=True, help_text="the object it hangs on")
    restarts = s.IntegerField()
    hangs = s.IntegerField(help_text="how often it was ended because it made no progress")


class SetAsideObject(s.Serializer[object]):
    process = s.CharField(help_text="who leaves the object out until it changes")
    kind = s.CharField()
    namespace = s.CharField()
    name = s.CharField()
    time = s.DateTimeField()
    reason = s.CharField()


class Health(s.Serializer[object]):
    status = s.ChoiceField(choices=["ok", "unready"])
    faults = HealthFault(many=True)
    processes = HealthProcess(many=True)
    setAside = SetAsideObject(many=True)
