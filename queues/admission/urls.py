"""One URL per webhook."""

from __future__ import annotations

from django.urls import path

from queues.admission import views
from queues.admission.routes import PATHS

urlpatterns = [path(one.removeprefix("/"), views.review) for one in PATHS]
