"""Change sets have a policy per queue, and the workloads that were drained."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('kaiweb', '0003_change_sets'),
    ]

    operations = [
        migrations.AddField(
            model_name='changeset',
            name='drained',
            field=models.JSONField(default=list, help_text='workloads that were requeued, as in REST'),
        ),
        migrations.AddField(
            model_name='changeset',
            name='policies',
            field=models.JSONField(default=dict, help_text='queue -> its policy, if it has its own'),
        ),
    ]
