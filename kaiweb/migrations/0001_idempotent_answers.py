"""Answers kept for requests that are sent again under the same Idempotency-Key."""

from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies: ClassVar = [migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations: ClassVar = [
        migrations.CreateModel(
            name="IdempotentAnswer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=255)),
                ("digest", models.CharField(help_text="SHA-256 of what was asked", max_length=64)),
                ("at", models.DateTimeField(db_index=True)),
                ("status", models.IntegerField(null=True)),
                ("headers", models.JSONField(default=dict)),
                ("body", models.JSONField(default=dict)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="idempotentanswer",
            constraint=models.UniqueConstraint(
                fields=("user", "key"), name="idempotentanswer_unique"
            ),
        ),
    ]
