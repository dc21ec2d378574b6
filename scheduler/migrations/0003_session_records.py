"""A record of a cycle is named for what it is; "cycle" is the run itself (docs/glossary.md)."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    dependencies: ClassVar = [("scheduler", "0002_standings")]

    operations: ClassVar = [migrations.RenameModel("Cycle", "SessionRecord")]
