"""The audit log covers other objects than queues; pod groups have columns about holds by people."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('queues', '0006_placement_and_labels'),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='quotachange',
            name='quotachange_action_valid',
        ),
        migrations.AddField(
            model_name='podgroup',
            name='hold_reason',
            field=models.TextField(blank=True, default=''),
        ),
        migrations.AddField(
            model_name='podgroup',
            name='hold_until',
            field=models.DateTimeField(help_text='end of the hold; none: until release', null=True),
        ),
        migrations.AddField(
            model_name='podgroup',
            name='is_held',
            field=models.BooleanField(default=False, help_text='a person holds its waiting pods back'),
        ),
        migrations.AddField(
            model_name='quotachange',
            name='kind',
            field=models.CharField(choices=[('queue', 'Queue'), ('workload', 'Workload'), ('user', 'User'), ('roleBinding', 'Role Binding'), ('token', 'Token')], db_index=True, default='queue', max_length=16),
        ),
        migrations.AddField(
            model_name='quotachange',
            name='target',
            field=models.CharField(blank=True, default='', max_length=507),
        ),
        migrations.AlterField(
            model_name='quotachange',
            name='queue',
            field=models.CharField(blank=True, db_index=True, max_length=253),
        ),
        migrations.AddConstraint(
            model_name='quotachange',
            constraint=models.CheckConstraint(condition=models.Q(('action__in', ['create', 'update', 'delete', 'hold', 'release', 'requeue', 'retryBind'])), name='quotachange_action_valid'),
        ),
        migrations.AddConstraint(
            model_name='quotachange',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['queue', 'workload', 'user', 'roleBinding', 'token'])), name='quotachange_kind_valid'),
        ),
    ]
