"""Tokens that may be used from some networks only, and tokens that were exchanged for ID tokens of pipelines."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('queues', '0015_user_preferences'),
    ]

    operations = [
        migrations.AddField(
            model_name='apitoken',
            name='networks',
            field=models.JSONField(default=list),
        ),
        migrations.AddField(
            model_name='apitoken',
            name='origin',
            field=models.CharField(blank=True, default='', max_length=512),
        ),
    ]
