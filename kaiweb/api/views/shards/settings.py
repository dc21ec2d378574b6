"""The effective settings of a shard: what its scheduler works with, stated or by default."""

from __future__ import annotations

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import Shows, View
from kaiweb.api.http import parameters
from kaiweb.api.schema import shards as schema
from kaiweb.shards.items import settings_item
from kaiweb.shards.reading import find_or_default, read_config
from queues.cluster import gateway
from scheduler.settings.shard import DEFAULT_SHARD


class EffectiveSettings(View):
    """The settings of one shard."""

    shows = Shows.NOTHING
    accepts: ClassVar = {"get": ("shard",)}

    @extend_schema(
        operation_id="getSettings", parameters=[parameters.SHARD], responses=schema.Settings
    )
    def get(self, request: Request) -> Response:
        """Return actions, plugins with their arguments, and options, as the scheduler of the shard uses them."""
        name = request.query_params.get("shard", DEFAULT_SHARD)
        body = find_or_default(gateway(), name)
        return Response(settings_item(name, body, read_config(gateway())))
