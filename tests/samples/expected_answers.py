"""Manifests that say themselves what kubectl must answer: annotation `samples.test/refusal` or `samples.test/warning`."""

from __future__ import annotations

import yaml

from tests.samples.installations import MANIFESTS
from tests.samples.sample import Json, Sample

REFUSAL = "samples.test/refusal"
WARNING = "samples.test/warning"


def objects_of(name: str) -> list[Json]:
    """Return the objects of `manifests/<name>`."""
    return [body for body in yaml.safe_load_all((MANIFESTS / name).read_text()) if body]


def check_answer(sample: Sample, body: Json) -> None:
    """Apply an object and hold the answer against its annotation."""
    notes = body["metadata"]["annotations"]
    answer = sample.answer_to(yaml.safe_dump(body))
    if REFUSAL in notes:
        assert notes[REFUSAL] in answer
        assert " created" not in answer
    else:
        assert f"Warning: {notes[WARNING]}" in answer
        assert " created" in answer
