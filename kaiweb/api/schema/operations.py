"""Operations under way and ended ones."""

from __future__ import annotations

from rest_framework import serializers as s


class Operation(s.Serializer[object]):
    id = s.CharField()
    kind = s.ChoiceField(choices=["simulation", "change"])
    state = s.ChoiceField(
        choices=["queued", "running", "done", "failed"],
        help_text="A change set that was rolled back has failed.",
    )
    author = s.CharField()
    startedAt = s.DateTimeField(help_text="Of a change: when its state changed last.")
    finishedAt = s.DateTimeField(allow_null=True)
    error = s.CharField(allow_null=True)
    resource = s.CharField(help_text="The address with all details.")


class OperationList(s.Serializer[object]):
    items = Operation(many=True)
