"""Change sets and the audit log."""

from __future__ import annotations

from rest_framework import serializers as s

from kaiweb.api.schema.queues import Difference, Finding
from kaiweb.api.schema.shared import Page
from kaiweb.api.schema.simulations import QueueEdit, WithPreview
from kaiweb.models import ChangeSetState, ChangeStepState
from kaiweb.planning.plan import POLICIES
from queues.models import ApprovalRule, AuditAction, AuditKind, BelowUse, ChangeState


class ChangeWrite(s.Serializer[object]):
    title = s.CharField(required=False)
    reason = s.CharField(required=False, allow_blank=True)
    policy = s.ChoiceField(choices=POLICIES, required=False)
    policies = s.DictField(child=s.ChoiceField(choices=POLICIES), required=False)
    edits = QueueEdit(many=True, required=False)


class ChangeCreate(ChangeWrite):
    edits = QueueEdit(many=True)


class QueueDifference(s.Serializer[object]):
    queue = s.CharField()
    action = s.ChoiceField(choices=["update", "replace", "create", "delete"])
    diff = Difference(many=True)


class ChangeStep(QueueDifference):
    number = s.IntegerField()
    state = s.ChoiceField(choices=ChangeStepState.choices)
    error = s.CharField(allow_null=True)


class Drained(s.Serializer[object]):
    workload = s.CharField()
    queue = s.CharField()
    gpu = s.FloatField()
    error = s.CharField(allow_null=True, help_text="why it could not be requeued")


class ChangeSummary(s.Serializer[object]):
    id = s.IntegerField()
    title = s.CharField()
    reason = s.CharField(allow_blank=True)
    author = s.CharField()
    state = s.ChoiceField(choices=ChangeSetState.choices)
    queues = s.ListField(child=s.CharField())
    createdAt = s.DateTimeField()
    changedAt = s.DateTimeField()
    decidedBy = s.CharField(allow_null=True)
    preview = s.IntegerField(allow_null=True)
    reverts = s.IntegerField(allow_null=True)
    error = s.CharField(allow_null=True)


class Change(ChangeSummary):
    policy = s.ChoiceField(choices=POLICIES)
    policies = s.DictField(child=s.ChoiceField(choices=POLICIES))
    edits = QueueEdit(many=True)
    needsApproval = s.BooleanField(
        help_text="by the policies another admin must approve it, and none has"
    )
    plan = QueueDifference(many=True)
    errors = Finding(many=True)  # type: ignore[assignment]  # DRF has `errors` too
    warnings = Finding(many=True)
    drains = Drained(many=True)
    stale = s.ListField(child=s.CharField())
    steps = ChangeStep(many=True)


class ChangeApplied(Change, WithPreview):
    """The change set; a dry run leaves it as it was."""


class ChangeList(Page):
    items = ChangeSummary(many=True)


class Policies(s.Serializer[object]):
    belowUse = s.ChoiceField(choices=BelowUse.choices, help_text="of change sets that state none")
    approval = s.ChoiceField(
        choices=ApprovalRule.choices,
        help_text="which changes of queues an admin other than the author must approve",
    )
    etag = s.CharField()


class PoliciesEdit(s.Serializer[object]):
    belowUse = s.ChoiceField(choices=BelowUse.choices, required=False)
    approval = s.ChoiceField(choices=ApprovalRule.choices, required=False)


class ApplyRequest(s.Serializer[object]):
    preview = s.IntegerField(required=False, allow_null=True)
    reason = s.CharField(required=False, allow_blank=True)


class AuditEntry(s.Serializer[object]):
    id = s.IntegerField()
    at = s.DateTimeField()
    actor = s.CharField()
    kind = s.ChoiceField(choices=AuditKind.choices)
    queue = s.CharField(allow_blank=True)
    target = s.CharField(allow_blank=True, help_text="the object, unless it is the queue itself")
    action = s.ChoiceField(choices=AuditAction.choices)
    state = s.ChoiceField(choices=ChangeState.choices)
    reason = s.CharField(allow_blank=True)
    requestId = s.CharField(allow_blank=True)
    diff = Difference(many=True)


class AuditList(Page):
    items = AuditEntry(many=True)
