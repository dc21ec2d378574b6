"""The dashboard as a Django app: the log-in form and the shell of the page."""

from __future__ import annotations

from django.apps import AppConfig


class DashboardConfig(AppConfig):
    """The log-in form and the shell of the page."""

    name = "frontend.dashboard"
