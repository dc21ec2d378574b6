"""Queues have a column for options that are annotations of their object."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('queues', '0008_failed_binds'),
    ]

    operations = [
        migrations.AddField(
            model_name='queue',
            name='options',
            field=models.JSONField(default=dict, help_text='the annotations that are options'),
        ),
    ]
