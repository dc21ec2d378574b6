"""The package `scheduler` as a Django app."""

from __future__ import annotations

from django.apps import AppConfig


class SchedulerAppConfig(AppConfig):
    """Shards, cycles and shares."""

    name = "scheduler"
