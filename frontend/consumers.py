"""The live socket."""

from __future__ import annotations

from channels.generic.websocket import AsyncWebsocketConsumer


class LiveConsumer(AsyncWebsocketConsumer):
    """Placeholder until the live protocol lands in the next commits."""
