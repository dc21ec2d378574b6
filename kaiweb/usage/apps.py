"""The Django app of history and usage."""

from __future__ import annotations

from django.apps import AppConfig


class UsageConfig(AppConfig):
    name = "kaiweb.usage"
    label = "usage"
