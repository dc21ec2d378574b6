"""The TypeScript types of the dashboard are those of the API as it is now."""

from __future__ import annotations

import hashlib
from pathlib import Path

from django.core.management import call_command

TYPES = Path(__file__).parents[2] / "frontend" / "web" / "src" / "model" / "schema.ts"


def test_the_types_were_generated_from_the_current_schema(tmp_path: Path):
    schema = tmp_path / "openapi.json"
    call_command("spectacular", "--format", "openapi-json", "--file", str(schema))
    digest = hashlib.sha256(schema.read_bytes()).hexdigest()
    first = TYPES.read_text(encoding="utf-8").splitlines()[0]
    assert first.endswith(f"schema {digest}"), (
        "the API has changed: write the types anew with `python frontend/build.py --types`"
    )
