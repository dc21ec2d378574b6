"""The reference is complete, and the pictures show what the core decides now."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "docs" / "tools"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{name}", TOOLS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    before = list(sys.path)
    module = load("reference")
    sys.path[:] = before
    return module


def test_every_label_and_annotation_has_a_meaning(reference: ModuleType):
    page = reference.labels()

    assert "| `kai.scheduler/queue` |" in page
    assert "| `kaiweb.dev/bind-failures` |" in page


@pytest.mark.parametrize(
    ("page", "line"),
    [
        ("shard_settings", "| `queue-limited-condition` | `Unschedulable` or `QueueLimited` |"),
        ("shard_settings", "| `use-eviction-api` | `true` |"),
        ("metrics", "| `kai_queue_allocated_gpus` | gauge |"),
        ("metrics", "| `kaiweb_http_requests_total` | counter | method, route, status |"),
        ("events", "| `EvictionRefused` | pod | scheduler |"),
        ("events", "| `PodGrouperWarning` | pod | queues |"),
        ("reason_codes", "| `OverLimit` | The queue's limit is reached | Raise the limit"),
        ("reason_codes", "| `Unmanaged` | No pod group manages it | Correct what"),
        ("decisions", "(../adr/0002-the-core-is-pure-and-undo-is-data.md)"),
    ],
)
def test_the_reference_reads_the_code(reference: ModuleType, page: str, line: str):
    assert line in getattr(reference, page)()


def test_every_operation_of_the_openapi_document_is_listed(reference: ModuleType):
    page = reference.rest()

    operations = re.findall(r"^\| `(?:GET|POST|PUT|PATCH|DELETE) /api/v1/", page, re.MULTILINE)
    assert page.partition(" operations;")[0].endswith(f"\n{len(operations)}")
    assert "`POST /api/v1/simulations` | Run the scheduler" in page


def test_the_pictures_show_what_the_core_decides():
    drawn = load("pictures").pictures()

    for name, picture in drawn.items():
        committed = (ROOT / "docs" / "pictures" / name).read_text()
        assert committed == picture, f"{name}: run `make docs` and look at what has changed"


def test_in_the_picture_of_reclaim_both_queues_end_at_their_quota():
    rows = load("pictures").reclaim().split("Cycle 2: ")[1]

    before_waiting = rows.partition(">waiting<")[0]
    assert [before_waiting.count(f">{name}<") for name in ("train", "serve", "new")] == [4, 2, 2]
