"""The URL of the live socket."""

from __future__ import annotations

from django.urls import path

from kaiweb.live.consumers import LiveConsumer

websocket_urlpatterns = [path("api/v1/live", LiveConsumer.as_asgi())]
