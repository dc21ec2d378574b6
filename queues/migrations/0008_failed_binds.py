"""Pods have a column about their failed binds, pod groups the time of their last reset."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('queues', '0007_audit_kinds_and_holds'),
    ]

    operations = [
        migrations.AddField(
            model_name='pod',
            name='bind_failures',
            field=models.JSONField(default=dict, help_text='the failed binds of a waiting pod, as its annotation counts them'),
        ),
        migrations.AddField(
            model_name='podgroup',
            name='binds_reset_at',
            field=models.DateTimeField(help_text='failed binds of its pods up to this time are forgotten', null=True),
        ),
    ]
