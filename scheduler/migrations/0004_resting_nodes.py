"""Nodes that get no new pods after failed binds."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('scheduler', '0003_session_records'),
    ]

    operations = [
        migrations.CreateModel(
            name='RestingNode',
            fields=[
                ('name', models.CharField(max_length=253, primary_key=True, serialize=False)),
                ('shard', models.CharField(db_index=True, max_length=253)),
                ('until', models.DateTimeField()),
                ('pods', models.JSONField(default=list, help_text='the pods that failed on it, namespace/name')),
            ],
            options={
                'ordering': ['name'],
            },
        ),
    ]
