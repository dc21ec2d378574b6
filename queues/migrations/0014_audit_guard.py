"""The database itself refuses edits of the audit log."""

from django.db import migrations

from queues.editing import audit_guard


class Migration(migrations.Migration):

    dependencies = [
        ('queues', '0013_audit_of_shards'),
    ]

    operations = [
        migrations.RunPython(
            lambda _apps, editor: audit_guard.install(editor.connection),
            lambda _apps, editor: audit_guard.remove(editor.connection),
        ),
    ]
