"""The committed OpenAPI document, and the TypeScript types made from it, are those of the API as it is now."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from django.core.management import call_command

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "openapi.json"
TYPES = ROOT / "frontend" / "web" / "src" / "model" / "schema.ts"
HELP = "the API has changed: write document and types anew with `python frontend/build.py --types`"


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    file = tmp_path_factory.mktemp("schema") / "openapi.json"
    call_command("spectacular", "--format", "openapi-json", "--file", str(file))
    return file.read_bytes()


def test_the_committed_document_is_that_of_the_api(schema: bytes) -> None:
    assert DOCUMENT.read_bytes() == schema, HELP


def test_the_types_were_generated_from_the_current_schema(schema: bytes) -> None:
    digest = hashlib.sha256(schema).hexdigest()
    first = TYPES.read_text(encoding="utf-8").splitlines()[0]
    assert first.endswith(f"schema {digest}"), HELP
