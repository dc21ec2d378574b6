"""The Django app of notifications."""

from __future__ import annotations

from django.apps import AppConfig


class NotificationsConfig(AppConfig):
    name = "kaiweb.notifications"
    label = "notifications"
