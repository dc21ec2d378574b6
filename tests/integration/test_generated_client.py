"""A client that openapi-python-client makes from the committed document: it type-checks, and drives an installation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.rest import Session
from tests.integration.stack import Stack

pytest.importorskip("openapi_python_client", reason="part of the dev requirements")

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "openapi.json"
#: No formatter afterwards; the generator does not know that YAML is text, and that a zip is bytes.
SETTINGS = """
post_hooks: []
content_type_overrides: {application/yaml: text/plain, application/zip: application/octet-stream}
"""
#: A program that uses the client. It is type-checked together with it.
PROGRAM = """
import sys
import time

from httpx import Timeout
from kaiweb_client import AuthenticatedClient
from kaiweb_client.api.changes import apply_change, create_change, revert_change
from kaiweb_client.api.queues import create_queue, delete_queue, get_queue, list_queues, patch_queue
from kaiweb_client.api.operations import get_operation
from kaiweb_client.api.settings import get_settings
from kaiweb_client.api.shards import create_shard, delete_shard, patch_shard
from kaiweb_client.api.simulations import create_simulation
from kaiweb_client.api.snapshot import get_snapshot
from kaiweb_client.api.workloads import list_workloads
from kaiweb_client.models import (
    ApplyRequestRequest,
    Operation,
    PatchedShardWriteRequest,
    PatchedShardWriteRequestSpec,
    Settings,
    ShardCreateRequest,
    ShardCreateRequestSpec,
    ShardWritten,
    Change,
    ChangeApplied,
    ChangeCreateRequest,
    PatchedQueueWriteRequest,
    Problem,
    QuestionRequest,
    Queue,
    QueueCreateRequest,
    QueueCreateRequestQuota,
    QueueEditRequest,
    QueueWriteRequest,
    QueueList,
    QueueWritten,
    Simulation,
    WorkloadList,
)

client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2], timeout=Timeout(60.0))
wanted = QueueCreateRequest(
    name="generated", parent="default-parent-queue", quota=QueueCreateRequestQuota(gpu=2.0)
)
tried = create_queue.sync(client=client, body=wanted, dry_run=True, simulate=True)
assert isinstance(tried, QueueWritten) and tried.dry_run, tried
assert isinstance(tried.simulated, Simulation) and tried.simulated.state == "done", tried
created = create_queue.sync(client=client, body=wanted, idempotency_key="k")
assert isinstance(created, QueueWritten) and created.queue.quota.gpu == 2, created
again = create_queue.sync(client=client, body=wanted)
assert isinstance(again, Problem) and again.status == 409, again

read = get_queue.sync("generated", client=client)
assert isinstance(read, Queue) and read.parent == "default-parent-queue", read
edited = patch_queue.sync(
    "generated", client=client, body=PatchedQueueWriteRequest(priority=3), if_match=read.etag
)
assert isinstance(edited, QueueWritten) and edited.queue.priority == 3, edited
stale = patch_queue.sync(
    "generated", client=client, body=PatchedQueueWriteRequest(priority=4), if_match=read.etag
)
assert isinstance(stale, Problem) and stale.status == 412, stale

listed = list_queues.sync(client=client, root="default-parent-queue")
assert isinstance(listed, QueueList) and "generated" in [item.name for item in listed.items]
workloads = list_workloads.sync(client=client)
assert isinstance(workloads, WorkloadList)

edit = QueueEditRequest(name="generated", edit=QueueWriteRequest(priority=5))
simulated = create_simulation.sync(
    client=client, body=QuestionRequest(queues=[edit]), prefer="wait=20"
)
assert isinstance(simulated, Simulation) and simulated.state == "done", simulated
operation = get_operation.sync(f"simulation-{simulated.id}", client=client)
assert isinstance(operation, Operation) and operation.state == "done", operation

settings = get_settings.sync(client=client)
assert isinstance(settings, Settings) and settings.actions[0].name == "allocate", settings
pool = ShardCreateRequestSpec.from_dict({"partitionLabelValue": "generated"})
shard = create_shard.sync(client=client, body=ShardCreateRequest(name="generated", spec=pool))
assert isinstance(shard, ShardWritten) and shard.changed, shard
slower = PatchedShardWriteRequestSpec.from_dict({"args": {"schedule-period": "2s"}})
patched = patch_shard.sync(
    "generated", client=client, if_match=shard.shard.etag, body=PatchedShardWriteRequest(spec=slower)
)
assert isinstance(patched, ShardWritten) and patched.diff[0].after == "2s", patched
removed = delete_shard.sync_detailed("generated", client=client, if_match=patched.shard.etag)
assert removed.status_code == 204, removed
archive = get_snapshot.sync_detailed(client=client)
assert archive.status_code == 200 and archive.content.startswith(b"PK"), archive

draft = create_change.sync(client=client, body=ChangeCreateRequest(edits=[edit], title="five"))
assert isinstance(draft, Change), draft
applied = apply_change.sync(draft.id, client=client, body=ApplyRequestRequest())
assert isinstance(applied, ChangeApplied) and applied.state == "applied", applied
undo = revert_change.sync(draft.id, client=client)
assert isinstance(undo, Change) and undo.state == "draft", undo

for _ in range(100):  # until the mirror has seen the edit
    last = get_queue.sync("generated", client=client)
    if isinstance(last, Queue) and last.priority == 5:
        break
    time.sleep(0.1)
assert isinstance(last, Queue) and last.priority == 5, last
gone = delete_queue.sync_detailed("generated", client=client, if_match=last.etag)
assert gone.status_code == 204, gone
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the client as a package, and the program beside it."""
    folder = tmp_path_factory.mktemp("client")
    (folder / "settings.yaml").write_text(SETTINGS)
    (folder / "program.py").write_text(PROGRAM)
    _run(
        folder, "openapi_python_client", "generate", "--path", str(DOCUMENT), "--meta", "none",
        "--output-path", "kaiweb_client", "--config", "settings.yaml", "--fail-on-warning",
    )  # fmt: skip
    return folder


def _run(folder: Path, module: str, *arguments: str) -> None:
    command = [sys.executable, "-m", module, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    result = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, f"{' '.join(command)}\n{result.stdout}\n{result.stderr}"


def test_the_client_and_a_program_that_uses_it_type_check(folder: Path):
    _run(folder, "mypy", "--config-file=", "--cache-dir=cache", "kaiweb_client", "program.py")


def test_the_client_drives_an_installation(folder: Path, stack: Stack):
    body = {"name": "generated client", "scopes": ["admin"]}
    token = Session(stack).call("POST", "tokens", body)[0]["token"]
    _run(folder, "program", stack.url, token)
