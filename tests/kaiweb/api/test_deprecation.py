"""How the API announces that an operation will go away."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import ClassVar

import pytest
from django.urls import path
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory

from kaiweb.api.base import View
from kaiweb.api.deprecation import NOTICE, Deprecation
from kaiweb.api.schema.access import Version

SINCE = datetime(2026, 1, 1, tzinfo=UTC)
ENDING = Deprecation(since=SINCE, sunset=SINCE + NOTICE, successor="/api/v1/queues")


class _Old(View):
    needs_read = False
    authentication_classes = ()
    permission_classes = ()
    deprecated: ClassVar = {"get": ENDING}

    @extend_schema(responses=Version)
    def get(self, _request: Request) -> Response:
        return Response({}, headers={"Link": '</next>; rel="next"'})

    @extend_schema(request=None, responses=Version)
    def post(self, _request: Request) -> Response:
        return Response({})


def test_a_deprecated_operation_says_since_when_and_until_when() -> None:
    answer = _Old.as_view()(APIRequestFactory().get("/old"))
    assert answer["Deprecation"] == "@1767225600"
    assert answer["Sunset"] == "Tue, 30 Jun 2026 00:00:00 GMT"
    assert answer["Link"] == '</next>; rel="next", </api/v1/queues>; rel="successor-version"'
    other = _Old.as_view()(APIRequestFactory().post("/old"))
    assert "Deprecation" not in other


def test_it_is_marked_in_the_document() -> None:
    generator = SchemaGenerator(patterns=[path("api/v1/old", _Old.as_view())])  # type: ignore[no-untyped-call]  # drf-spectacular has no types here
    operations = generator.get_schema(request=None, public=True)["paths"]["/api/v1/old"]  # type: ignore[no-untyped-call]  # drf-spectacular has no types here
    assert operations["get"]["deprecated"] is True
    assert "deprecated" not in operations["post"]


def test_callers_get_half_a_year() -> None:
    with pytest.raises(ValueError, match="expected 180 days after"):
        Deprecation(since=SINCE, sunset=SINCE + NOTICE - timedelta(days=1), successor="/x")
