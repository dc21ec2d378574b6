"""Prices of GPU-hours with their first day, and their currency."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('usage', '0001_tables'),
    ]

    operations = [
        migrations.CreateModel(
            name='GpuPrice',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('model', models.CharField(help_text='`*`: all models without their own', max_length=253)),
                ('price', models.FloatField()),
                ('valid_from', models.DateField()),
                ('version', models.IntegerField(default=1, help_text='counts the edits')),
            ],
            options={
                'ordering': ['model', 'valid_from'],
                'constraints': [models.UniqueConstraint(fields=('model', 'valid_from'), name='usage_price_unique'), models.CheckConstraint(condition=models.Q(('price__gte', 0)), name='usage_price_not_negative')],
            },
        ),
        migrations.CreateModel(
            name='PriceCurrency',
            fields=[
                ('only', models.BooleanField(default=True, primary_key=True, serialize=False)),
                ('currency', models.CharField(max_length=16)),
                ('version', models.IntegerField(default=0, help_text='counts the edits')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('only', True)), name='usage_currency_single_row')],
            },
        ),
    ]
