"""Write the data file with the built-in kinds, from a real kube-apiserver.

`python -m sandbox.apiserver.data.capture --kubeconfig FILE` reads discovery, OpenAPI v3 and the
columns of every table and writes `kubernetes.json.xz`. It drops the descriptions, which are most of the
bulk, and the paths, which `openapi.py` derives. So no list of kinds is maintained by hand.
With `--gangs` it writes the kinds of the gang API, which few clusters serve yet, to `gangs.json.xz`.
"""

from __future__ import annotations

import argparse
import lzma
import ssl
import urllib.request
from base64 import b64decode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
import yaml

from sandbox.apiserver.data.bundle import DATA_FILE, GANG_FILE

GROUP_VERSIONS = (
    "v1",
    "admissionregistration.k8s.io/v1",
    "apiextensions.k8s.io/v1",
    "apps/v1",
    "authentication.k8s.io/v1",
    "authorization.k8s.io/v1",
    "autoscaling/v2",
    "batch/v1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "events.k8s.io/v1",
    "networking.k8s.io/v1",
    "node.k8s.io/v1",
    "policy/v1",
    "rbac.authorization.k8s.io/v1",
    "resource.k8s.io/v1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1",
)
#: Kinds that a cluster serves only if asked to: with `--feature-gates=GenericWorkload=true
#: --runtime-config=scheduling.k8s.io/v1alpha1=true`.
GANG_GROUP_VERSIONS = ("scheduling.k8s.io/v1alpha1",)
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"

#: (path, media type to accept) -> the decoded JSON of the answer.
Fetch = Callable[[str, str], Any]


def capture(fetch: Fetch, group_versions: Sequence[str] = GROUP_VERSIONS) -> dict[str, Any]:
    """Return the content of a data file, read through `fetch(path, accept)`."""
    groups: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    columns: dict[str, Any] = {}
    for group_version in group_versions:
        base = f"apis/{group_version}" if "/" in group_version else f"api/{group_version}"
        resources = fetch(f"/{base}", "application/json")["resources"]
        groups[group_version] = [_resource(resource) for resource in resources]
        document = fetch(f"/openapi/v3/{base}", "application/json")
        for name, schema in document["components"]["schemas"].items():
            schemas[name] = strip(schema)
        for resource in resources:
            if "list" in resource["verbs"] and "/" not in resource["name"]:
                table = fetch(f"/{base}/{resource['name']}?limit=1", TABLE)
                columns[f"{group_version}/{resource['name']}"] = _columns(table)
    version = fetch("/version", "application/json")
    return {"version": version, "groups": groups, "schemas": schemas, "columns": columns}


def strip(schema: Any) -> Any:
    """Return a schema without descriptions; a property that is *named* description stays."""
    if isinstance(schema, list):
        return [strip(child) for child in schema]
    if not isinstance(schema, dict):
        return schema
    stripped = {}
    for key, value in schema.items():
        if key == "description" and isinstance(value, str):
            continue
        if key == "properties":
            stripped[key] = {name: strip(child) for name, child in value.items()}
        else:
            stripped[key] = strip(value)
    return stripped


def write(data: dict[str, Any], path: Path) -> int:
    """Write the data file and return its size in bytes; equal data gives an equal file."""
    plain = orjson.dumps(data, option=orjson.OPT_SORT_KEYS)
    packed = lzma.compress(plain, preset=9 | lzma.PRESET_EXTREME)
    path.write_bytes(packed)
    return len(packed)


def _resource(resource: dict[str, Any]) -> dict[str, Any]:
    """Return a resource without the hash of the version in which that server stores it."""
    return {key: value for key, value in resource.items() if key != "storageVersionHash"}


def _columns(table: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {key: column[key] for key in ("name", "type", "format", "priority")}
        for column in table.get("columnDefinitions", [])
    ]


def _fetcher(kubeconfig: Path) -> Fetch:
    """Return a reader for the current context, for the kinds of credentials that test clusters use."""
    config = yaml.safe_load(kubeconfig.read_text())
    kube_context = _named(config["contexts"], config["current-context"])["context"]
    cluster = _named(config["clusters"], kube_context["cluster"])["cluster"]
    user = _named(config["users"], kube_context["user"])["user"]
    tls = ssl.create_default_context()
    if "certificate-authority-data" in cluster:
        tls.load_verify_locations(cadata=b64decode(cluster["certificate-authority-data"]).decode())
    elif "certificate-authority" in cluster:
        tls.load_verify_locations(cluster["certificate-authority"])
    if cluster.get("insecure-skip-tls-verify"):
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE

    def fetch(path: str, accept: str) -> Any:
        request = urllib.request.Request(cluster["server"] + path, headers={"Accept": accept})
        if "token" in user:
            request.add_header("Authorization", f"Bearer {user['token']}")
        is_https = cluster["server"].startswith("https")
        with urllib.request.urlopen(request, context=tls if is_https else None) as reply:
            return orjson.loads(reply.read())

    return fetch


def _named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(entry for entry in entries if entry["name"] == name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True, help="of a real kube-apiserver")
    parser.add_argument("--gangs", action="store_true", help="capture the gang API alone")
    arguments = parser.parse_args()
    group_versions, file = (
        (GANG_GROUP_VERSIONS, GANG_FILE) if arguments.gangs else (GROUP_VERSIONS, DATA_FILE)
    )
    data = capture(_fetcher(arguments.kubeconfig), group_versions)
    size = write(data, file)
    print(f"{file}: {size} bytes, {len(data['schemas'])} schemas")


if __name__ == "__main__":
    main()
