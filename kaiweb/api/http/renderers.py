"""Render JSON with orjson: lists of a thousand rows are common, and the standard encoder is ten times slower."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import orjson
import yaml
from rest_framework.renderers import BaseRenderer

OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS


def _plain(value: object) -> Any:
    """Turn lazy strings and mappings of DRF and Django into plain ones."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list | tuple):
        return list(value)
    return str(value)


class OrjsonRenderer(BaseRenderer):
    """`application/json`; a body of None is an empty body."""

    media_type = "application/json"
    format = "json"
    charset = None
    render_style = "binary"

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        """Encode the body."""
        return b"" if data is None else orjson.dumps(data, default=_plain, option=OPTIONS)


class FileRenderer(BaseRenderer, ABC):
    """A format of its own for what is asked for; a refusal is encoded as JSON."""

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        """Encode the body of an answer."""
        if renderer_context and renderer_context["response"].status_code >= 400:
            return OrjsonRenderer().render(data)
        return self.encode(data)

    @abstractmethod
    def encode(self, data: Any) -> bytes:
        """Return the body in the format."""


class BlockTextDumper(yaml.SafeDumper):
    """Writes a text of several lines as a block, as people write it."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


BlockTextDumper.add_representer(str, _represent_text)


class YamlRenderer(FileRenderer):
    """`application/yaml`; a text is YAML already."""

    media_type = "application/yaml"
    format = "yaml"
    charset = "utf-8"

    def encode(self, data: Any) -> bytes:
        """Encode the body."""
        if isinstance(data, str):
            return data.encode()
        text: str = yaml.dump(
            data, Dumper=BlockTextDumper, sort_keys=False, allow_unicode=True, width=120
        )
        return text.encode()


class EventStreamRenderer(OrjsonRenderer):
    """The body as the event `welcome` of an event stream; refusals stay JSON."""

    media_type = "text/event-stream"
    format = "event-stream"

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        """Encode the body."""
        body = super().render(data, accepted_media_type, renderer_context)
        response = (renderer_context or {}).get("response")
        if response is None or response.status_code != 200:
            return body
        return b"event: welcome\ndata: " + body + b"\n\n"


class ProblemRenderer(OrjsonRenderer):
    """The same bytes under the media type of RFC 9457."""

    media_type = "application/problem+json"
