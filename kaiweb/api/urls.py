"""The addresses of REST version 1."""

from __future__ import annotations

from django.urls import path, re_path
from drf_spectacular.views import SpectacularJSONAPIView

from kaiweb.api.views import session

urlpatterns = [
    path("openapi.json", SpectacularJSONAPIView.as_view(), name="openapi"),
    path("me", session.Me.as_view(), name="me"),
    path("version", session.Version.as_view(), name="version"),
    re_path(r"^.*$", session.Unknown.as_view(), name="unknown"),
]
