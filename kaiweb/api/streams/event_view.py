"""The rights and parameters of an event stream; `kaiweb.api.streams.event_stream` keeps it open."""

from __future__ import annotations

from typing import ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import Shows, View, caller, caller_visibility, flag
from kaiweb.api.errors import Problem
from kaiweb.api.http import parameters
from kaiweb.api.http.renderers import EventStreamRenderer
from kaiweb.api.streams.event_stream import topic_of
from kaiweb.live.topics import TopicError

FILTERS = ("queue", "subtree", "state", "reason", "namespace", "q", "root", "pool", "shard")


class Events(View):
    """A topic of the live protocol."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"get": ("topic", *FILTERS)}
    renderer_classes = (EventStreamRenderer,)

    @extend_schema(
        operation_id="streamEvents",
        parameters=parameters.EVENTS,
        responses={(200, "text/event-stream"): OpenApiTypes.STR},
    )
    def get(self, request: Request) -> Response:
        """Stream a topic as server-sent events: `welcome`, then `snap`, `delta` and `reset` as on the live socket."""
        flag(request, "subtree")  # refuses other words than true and false
        try:
            topic_of(request.META["QUERY_STRING"])
        except TopicError as error:
            raise Problem("bad-request", str(error)) from error
        rights = caller(request)
        queues = caller_visibility(request).queues
        return Response(
            {
                "caller": rights.username,
                "rights": rights.fingerprint,
                "queues": None if queues is None else sorted(queues),
            }
        )
