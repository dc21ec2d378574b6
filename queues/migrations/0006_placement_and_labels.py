"""Mirror the labels of nodes and what waiting pods demand of their nodes."""

from typing import Any

from django.db import migrations, models


def read_again(apps: Any, schema_editor: Any) -> None:
    """Let the mirror write all nodes and pods anew at its next list: it skips rows that are not older."""
    for model in ("Node", "Pod"):
        apps.get_model("queues", model).objects.update(version=0)


class Migration(migrations.Migration):
    dependencies = [("queues", "0005_non_preemptible_columns")]

    operations = [
        migrations.AddField(
            model_name="node",
            name="labels",
            field=models.JSONField(default=dict),
        ),
        migrations.AddField(
            model_name="pod",
            name="placement",
            field=models.JSONField(
                default=dict, help_text="what a waiting pod demands of its node"
            ),
        ),
        migrations.RunPython(read_again, migrations.RunPython.noop),
    ]
