"""The change log holds what is about to be done, so that nothing is done without an entry."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.models import Q

STATES = ["intended", "done", "failed", "unclear"]


class Migration(migrations.Migration):
    dependencies: ClassVar = [("queues", "0003_standings")]

    operations: ClassVar = [
        migrations.AddField(
            model_name="quotachange",
            name="state",
            field=models.CharField(
                choices=[(state, state.capitalize()) for state in STATES],
                db_index=True,
                default="done",
                max_length=16,
            ),
        ),
        migrations.AddField(
            model_name="quotachange",
            name="generation_before",
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="quotachange",
            name="uid",
            field=models.CharField(
                blank=True, default="", help_text="of the queue before", max_length=64
            ),
        ),
        migrations.AddConstraint(
            model_name="quotachange",
            constraint=models.CheckConstraint(
                condition=Q(("state__in", STATES)), name="quotachange_state_valid"
            ),
        ),
    ]
