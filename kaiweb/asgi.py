"""The web process: HTTP goes to Django, `/api/v1/live` to the live protocol; some requests are kept open."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kaiweb.settings.local")
# Models and consumers may only be imported once Django is set up.
http = get_asgi_application()

from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.sessions import SessionMiddlewareStack  # noqa: E402

from kaiweb.api.streams.event_stream import EventStreams  # noqa: E402
from kaiweb.api.streams.waiting import WaitingRequests  # noqa: E402
from kaiweb.guards.request_guard import RequestGuard  # noqa: E402
from kaiweb.live.routing import websocket_urlpatterns  # noqa: E402

application = ProtocolTypeRouter(
    {
        # Requests that stay open take no slot and no thread while nothing happens.
        "http": EventStreams(WaitingRequests(RequestGuard(http))),
        # The consumer checks origin, session and ticket itself, because it closes with a code for each.
        "websocket": SessionMiddlewareStack(URLRouter(websocket_urlpatterns)),
    }
)
