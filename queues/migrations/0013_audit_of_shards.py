"""The audit log knows writes of scheduling shards."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('queues', '0012_take_over'),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='quotachange',
            name='quotachange_kind_valid',
        ),
        migrations.AlterField(
            model_name='quotachange',
            name='kind',
            field=models.CharField(choices=[('queue', 'Queue'), ('workload', 'Workload'), ('user', 'User'), ('roleBinding', 'Role Binding'), ('token', 'Token'), ('shard', 'Shard')], db_index=True, default='queue', max_length=16),
        ),
        migrations.AddConstraint(
            model_name='quotachange',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['queue', 'workload', 'user', 'roleBinding', 'token', 'shard'])), name='quotachange_kind_valid'),
        ),
    ]
