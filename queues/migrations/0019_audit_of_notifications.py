"""The audit log knows writes of webhooks, and their tests."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('queues', '0018_audit_of_prices'),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='quotachange',
            name='quotachange_action_valid',
        ),
        migrations.RemoveConstraint(
            model_name='quotachange',
            name='quotachange_kind_valid',
        ),
        migrations.AlterField(
            model_name='quotachange',
            name='kind',
            field=models.CharField(choices=[('queue', 'Queue'), ('workload', 'Workload'), ('user', 'User'), ('roleBinding', 'Role Binding'), ('token', 'Token'), ('shard', 'Shard'), ('policy', 'Policy'), ('price', 'Price'), ('notification', 'Notification')], db_index=True, default='queue', max_length=16),
        ),
        migrations.AddConstraint(
            model_name='quotachange',
            constraint=models.CheckConstraint(condition=models.Q(('action__in', ['create', 'update', 'delete', 'hold', 'release', 'requeue', 'retryBind', 'takeOver', 'test'])), name='quotachange_action_valid'),
        ),
        migrations.AddConstraint(
            model_name='quotachange',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['queue', 'workload', 'user', 'roleBinding', 'token', 'shard', 'policy', 'price', 'notification'])), name='quotachange_kind_valid'),
        ),
    ]
