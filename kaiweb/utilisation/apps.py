"""The Django app of the utilisation of GPUs."""

from __future__ import annotations

from django.apps import AppConfig


class UtilisationConfig(AppConfig):
    name = "kaiweb.utilisation"
    label = "utilisation"
