"""Every URL of the web process: health, metrics, REST; all others belong to the single-page app."""

from __future__ import annotations

from django.urls import include, path

from frontend.dashboard import urls as frontend_urls
from kaiweb import metrics
from kaiweb.api import urls as api_urls
from kaiweb.health import views as health

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.metrics, name="metrics"),
    path("api/v1/", include(api_urls)),
    path("", include(frontend_urls)),
]
