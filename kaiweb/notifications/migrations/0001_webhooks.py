"""Webhooks, what they were told, and deliveries to them."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='Webhook',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=64, unique=True)),
                ('url', models.CharField(max_length=2000)),
                ('secret', models.TextField(blank=True, default='')),
                ('events', models.JSONField(default=list)),
                ('subtree', models.CharField(blank=True, default='', max_length=253)),
                ('wait_minutes', models.IntegerField(default=30)),
                ('report', models.CharField(choices=[('weekly', 'Weekly'), ('monthly', 'Monthly')], default='monthly', max_length=16)),
                ('is_enabled', models.BooleanField(default=True)),
                ('version', models.IntegerField(default=1, help_text='counts the edits')),
                ('created_at', models.DateTimeField()),
                ('since', models.DateTimeField()),
                ('looked_at', models.DateTimeField()),
                ('failures', models.IntegerField(default=0)),
                ('next_try_at', models.DateTimeField(null=True)),
            ],
            options={
                'ordering': ['name'],
                'constraints': [models.CheckConstraint(condition=models.Q(('report__in', ['weekly', 'monthly'])), name='webhook_report_valid')],
            },
        ),
        migrations.CreateModel(
            name='ToldEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=600)),
                ('at', models.DateTimeField()),
                ('webhook', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='told', to='notifications.webhook')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('webhook', 'key'), name='toldevent_unique')],
            },
        ),
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('message', models.CharField(max_length=64, unique=True)),
                ('event', models.CharField(max_length=32)),
                ('body', models.TextField()),
                ('state', models.CharField(choices=[('pending', 'Pending'), ('delivered', 'Delivered'), ('failed', 'Failed')], default='pending', max_length=16)),
                ('attempts', models.IntegerField(default=0)),
                ('created_at', models.DateTimeField()),
                ('claimed_until', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('status', models.IntegerField(help_text='HTTP status of the last answer', null=True)),
                ('error', models.TextField(blank=True, default='', help_text='why the last try failed')),
                ('webhook', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='notifications.webhook')),
            ],
            options={
                'ordering': ['-id'],
                'indexes': [models.Index(fields=['state', 'id'], name='delivery_state')],
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['pending', 'delivered', 'failed'])), name='delivery_state_valid'), models.CheckConstraint(condition=models.Q(('event__in', ('workloadWaits', 'workloadEvicted', 'changeRequested', 'changeApplied', 'shardNotReady', 'usageReport', 'test'))), name='delivery_event_valid')],
            },
        ),
    ]
