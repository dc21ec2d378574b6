"""What a session decided, and the record of evictions that outlives it."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies: ClassVar = [
        ('scheduler', '0004_resting_nodes'),
    ]

    operations: ClassVar = [
        migrations.AddField(
            model_name='sessionrecord',
            name='decided',
            field=models.IntegerField(default=0),
        ),
        migrations.AddField(
            model_name='sessionrecord',
            name='decisions',
            field=models.JSONField(default=list),
        ),
        migrations.CreateModel(
            name='EvictionRecord',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('session', models.BigIntegerField(db_index=True)),
                ('at', models.DateTimeField()),
                ('shard', models.CharField(max_length=253)),
                ('rule', models.CharField(max_length=32)),
                ('workload', models.CharField(help_text='namespace/name', max_length=507)),
                ('queue', models.CharField(blank=True, default='', max_length=253)),
                ('evictor', models.CharField(blank=True, default='', max_length=507)),
                ('evictor_queue', models.CharField(blank=True, default='', max_length=253)),
                ('pods', models.IntegerField()),
                ('gpu', models.FloatField()),
                ('text', models.TextField(blank=True, default='')),
            ],
            options={
                'ordering': ['-id'],
                'indexes': [models.Index(fields=['at'], name='eviction_at'), models.Index(fields=['workload', 'at'], name='eviction_workload')],
            },
        ),
    ]
