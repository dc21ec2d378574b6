"""The package `binder` as a Django app."""

from __future__ import annotations

from django.apps import AppConfig


class BinderConfig(AppConfig):
    """Bind requests."""

    name = "binder"
