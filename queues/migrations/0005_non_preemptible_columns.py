"""Columns of what non-preemptible pods hold are named with the word that users know."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    dependencies: ClassVar = [("queues", "0004_change_intents")]

    operations: ClassVar = [
        migrations.RenameField("queue", f"firm_{resource}", f"non_preemptible_{resource}")
        for resource in ("gpu", "cpu", "memory")
    ]
