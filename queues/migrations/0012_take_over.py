"""The audit log knows take-overs of queues."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('queues', '0011_run_times'),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='quotachange',
            name='quotachange_action_valid',
        ),
        migrations.AddConstraint(
            model_name='quotachange',
            constraint=models.CheckConstraint(condition=models.Q(('action__in', ['create', 'update', 'delete', 'hold', 'release', 'requeue', 'retryBind', 'takeOver'])), name='quotachange_action_valid'),
        ),
    ]
