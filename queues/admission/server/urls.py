"""One URL per webhook."""

from __future__ import annotations

from django.urls import path

from queues.admission.routes import PATHS
from queues.admission.server import views

urlpatterns = [path(route.removeprefix("/"), views.review) for route in PATHS]
