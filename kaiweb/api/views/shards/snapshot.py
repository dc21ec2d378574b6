"""Download what one cycle of a shard works on, as `kaiweb snapshot save` writes it."""

from __future__ import annotations

import io
import threading
from collections.abc import Mapping
from typing import Any, ClassVar

from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import Shows, View, flag
from kaiweb.api.errors import Problem
from kaiweb.api.http import parameters
from kaiweb.api.http.renderers import FileRenderer
from kaiweb.api.writes import require_admin
from kaiweb.shards.reading import find_or_default, read_config
from kube.errors import BadValueError
from kube.gateway import Gateway
from kube.objects.config import SchedulingShard
from kube.objects.meta import convert
from kube.resources import CONFIGMAPS
from queues.cluster import gateway
from scheduler.core.errors import ConfigError
from scheduler.load.archive import body_of, read_objects, write_body
from scheduler.settings.shard import DEFAULT_SHARD, settings_of
from scheduler.tools.snapshots.anonymise import anonymise

#: A snapshot of a large cluster needs much memory while it is made, so a process makes one at a time.
_one_at_a_time = threading.Lock()


class ZipRenderer(FileRenderer):
    """A file that is a zip archive already."""

    media_type = "application/zip"
    format = "zip"
    charset = None
    render_style = "binary"

    def encode(self, data: bytes) -> bytes:
        """Return the file."""
        return data


class Snapshot(View):
    """The objects and settings of a shard."""

    shows = Shows.NOTHING
    renderer_classes = (ZipRenderer,)
    accepts: ClassVar = {"get": ("shard", "anonymise")}

    @extend_schema(
        operation_id="getSnapshot",
        parameters=parameters.SNAPSHOT,
        responses={(200, "application/zip"): OpenApiTypes.BINARY},
    )
    def get(self, request: Request) -> Response:
        """Return `snapshot.zip` with all objects but ConfigMaps, for `kaiweb snapshot replay`; for admins only."""
        require_admin(request, "downloading a snapshot")
        name = request.query_params.get("shard", DEFAULT_SHARD)
        is_anonymous = flag(request, "anonymise")
        if not _one_at_a_time.acquire(blocking=False):
            text = "another snapshot is being made; try again in a few seconds"
            raise Problem("overloaded", text, headers={"Retry-After": "5"})
        try:
            content = _snapshot(gateway(), name, is_anonymous=is_anonymous)
        finally:
            _one_at_a_time.release()
        headers = {"Content-Disposition": f'attachment; filename="snapshot-{name}.zip"'}
        return Response(content, headers=headers)


def _snapshot(api: Gateway, name: str, *, is_anonymous: bool) -> bytes:
    body, config = find_or_default(api, name), read_config(api)
    try:
        shard = None if body is None else convert(body, SchedulingShard)
        settings = settings_of(name, shard, config)
    except (ConfigError, BadValueError) as error:
        text = f"the settings of shard '{name}' cannot be used: {error}"
        raise Problem("wrong-state", text) from error
    objects = read_objects(api, settings.params, without=(CONFIGMAPS,))
    content: Mapping[str, Any] = body_of(objects, settings, timezone.now().timestamp())
    file = io.BytesIO()
    write_body(file, anonymise(content) if is_anonymous else content)
    return file.getvalue()
