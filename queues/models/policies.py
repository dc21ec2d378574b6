"""The policies of an installation about changes of queues."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q


class BelowUse(models.TextChoices):
    """What is done about a bound that falls below what its queue uses.

    `warn` only says so, `block` refuses the change, `drain` also requeues preemptible work above the limit.
    """

    WARN = "warn"
    BLOCK = "block"
    DRAIN = "drain"


class ApprovalRule(models.TextChoices):
    """Which changes of queues an admin other than their author must approve."""

    NONE = "none"
    REDUCTIONS = "reductions"
    ALL = "all"


class ChangePolicy(models.Model):
    """The only row has the policies; without it those of `ChangePolicy()` hold.

    Attributes
    ----------
    below_use : for edits of one queue, and for change sets that state nothing else
    """

    only = models.BooleanField(primary_key=True, default=True)
    below_use = models.CharField(
        max_length=8, choices=BelowUse.choices, default=BelowUse.WARN.value
    )
    approval = models.CharField(
        max_length=16, choices=ApprovalRule.choices, default=ApprovalRule.NONE.value
    )

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(only=True), name="changepolicy_single_row"),
            models.CheckConstraint(
                condition=Q(below_use__in=BelowUse.values), name="changepolicy_below_use_valid"
            ),
            models.CheckConstraint(
                condition=Q(approval__in=ApprovalRule.values), name="changepolicy_approval_valid"
            ),
        ]

    def __str__(self) -> str:
        return f"below use: {self.below_use}, approval: {self.approval}"
