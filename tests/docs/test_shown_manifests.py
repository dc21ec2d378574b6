"""The YAML that a page shows: manifests against the embedded API server, values against the chart's schema."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.apiserver.server import Server, Settings
from scheduler.settings import shard as shard_settings
from tests.docs.shown.code import SHOWN
from tests.docs.shown.kubectl_commands import manifest_files, our_definitions, patched_object
from tests.docs.shown.pages import INDENTED, PAGES, ROOT, Code, blocks
from tests.docs.shown.rest_commands import check_body, unknown_fields
from tests.sandbox.apiserver.conftest import InProcess

#: Pages whose YAML without a kind is values of the chart.
VALUES = {"docs/guides/install-with-helm.md", "docs/guides/migrate-from-kai.md"}
#: Pages whose data is run by a live test or read by another unit test.
ELSEWHERE = {"docs/guides/ci.md", "docs/guides/notifications.md", "docs/guides/write-a-scenario.md"}
#: Page -> the request whose body its JSON is.
BODIES = {"docs/guides/change-sets.md": ("PUT", "/api/v1/queue-trees/science")}
CONTAINER = {"name": "main", "image": "registry.example/main:1"}

Manifest = dict[str, Any]


def data_blocks() -> list[tuple[Code, Any]]:
    """Return the blocks that hold YAML or JSON, with what they say."""
    read = []
    for page in PAGES:
        for code in blocks(page):
            if code.language in {"yaml", "json"} or (
                code.language == INDENTED and re.match(r"\{|[A-Za-z]+: ?", code.text)
            ):
                read += [(code, document) for document in yaml.safe_load_all(code.text)]
    return [(code, document) for code, document in read if code.page not in ELSEWHERE]


def completed(document: Manifest) -> Manifest:
    """Return a whole object; a part of one becomes that part of a pod."""
    if "kind" in document:
        return document
    if "livenessProbe" in document:
        document = {"spec": {"containers": [CONTAINER | document]}}
    assert document.keys() <= {"metadata", "spec"}, f"a part of no pod: {sorted(document)}"
    metadata = {"name": "shown", **document.get("metadata", {})}
    spec = document.get("spec", {"containers": [CONTAINER]})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


DATA = data_blocks()
OF_VALUES = [(code, doc) for code, doc in DATA if code.page in VALUES and "kind" not in doc]
OF_BODIES = [(code, doc) for code, doc in DATA if code.page in BODIES]
MANIFESTS: list[tuple[str, Manifest]] = [
    *((c.place, completed(d)) for c, d in DATA if (c, d) not in OF_VALUES + OF_BODIES),
    *((f"{c.page}:{c.line}", d) for c in SHOWN for d in yaml.safe_load_all(c.stdin) if "kind" in d),
    *((f"{c.page}:{c.line}", patch) for c in SHOWN if (patch := patched_object(c))),
    *((f.name, d) for f in manifest_files() for d in yaml.safe_load_all(f.read_text())),
]


async def test_each_shown_manifest_is_accepted_by_the_embedded_server(tmp_path: Path):
    """Strict: a field that the kind does not have is refused."""
    cluster = InProcess(Server(Settings(home=tmp_path, persistent=False)))
    for definition in our_definitions():
        await cluster.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)

    refused = [
        f"{place}: {answer.body.get('message', answer.body)}"
        for place, manifest in MANIFESTS
        if (answer := await cluster.post(target(cluster, manifest), manifest)).code
        not in {200, 201}
    ]

    assert len(MANIFESTS) > 10
    assert refused == []


def target(cluster: InProcess, manifest: Manifest) -> str:
    """Return where an object is created, for a trial with strict validation."""
    group, _, version = manifest["apiVersion"].rpartition("/")
    resource = cluster.server.registry.of_kind(group, version, manifest["kind"])
    assert resource, f"no kind {manifest['apiVersion']} {manifest['kind']}"
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    namespace = f"/namespaces/{manifest['metadata'].get('namespace', 'default')}"
    place = f"{namespace if resource.namespaced else ''}/{resource.plural}"
    return f"{root}{place}?dryRun=All&fieldValidation=Strict"


def test_each_argument_of_a_shown_shard_is_read_by_the_scheduler():
    source = Path(shard_settings.__file__).read_text()
    arguments = {
        name
        for _, manifest in MANIFESTS
        if manifest["kind"] == "SchedulingShard"
        for name in manifest.get("spec", {}).get("args", {})
    }

    assert "broken-gangs-first" in arguments
    assert [name for name in arguments if f'"{name}"' not in source] == []


@pytest.mark.parametrize(("code", "values"), OF_VALUES, ids=lambda item: getattr(item, "place", ""))
def test_shown_values_of_the_chart_are_in_its_schema(code: Code, values: Manifest):
    schema = json.loads((ROOT / "deploy/helm/kaiweb/values.schema.json").read_text())

    assert list(unknown_fields(values, schema, schema)) == []


@pytest.mark.parametrize(("code", "body"), OF_BODIES, ids=lambda item: getattr(item, "place", ""))
def test_a_shown_body_is_in_the_openapi_document(code: Code, body: Manifest):
    check_body(*BODIES[code.page], body)
