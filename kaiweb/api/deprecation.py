"""Operations that will go away, and the headers that announce it (RFC 9745 and RFC 8594).

A view names them in `deprecated`, method -> `Deprecation`; its operation is then marked in the OpenAPI document, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.http import http_date
from drf_spectacular.openapi import AutoSchema
from rest_framework.response import Response

#: Pipelines get at least so long to follow.
NOTICE = timedelta(days=180)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deprecation:
    """When an operation was announced to end, when it ends, and where its successor is described.

    Raises
    ------
    ValueError : too little time between both
    """

    since: datetime
    sunset: datetime
    successor: str

    def __post_init__(self) -> None:
        """Check that callers are told early enough."""
        if self.sunset - self.since < NOTICE:
            raise ValueError(f"sunset: expected {NOTICE.days} days after {self.since} or later")

    def announce(self, response: Response) -> None:
        """Add the headers to an answer of the operation."""
        response["Deprecation"] = f"@{int(self.since.timestamp())}"
        response["Sunset"] = http_date(self.sunset.timestamp())
        successor = f'<{self.successor}>; rel="successor-version"'
        response["Link"] = ", ".join(filter(None, (response.get("Link"), successor)))


class Schema(AutoSchema):
    """Marks deprecated operations in the OpenAPI document."""

    def is_deprecated(self) -> bool:
        """Return whether the view says so for this method."""
        return self.method.lower() in getattr(self.view, "deprecated", {})
