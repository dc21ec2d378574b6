"""The frontend room as a Django app: templates, the shell and the live socket."""

from __future__ import annotations

from django.apps import AppConfig


class FrontendConfig(AppConfig):
    """What a person sees."""

    name = "frontend"
