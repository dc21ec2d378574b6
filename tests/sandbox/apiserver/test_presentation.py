"""What people see: cells, ages, JSONPath columns, the captured data file, certificates."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

from sandbox.apiserver.access.pki import Pki, write_kubeconfig
from sandbox.apiserver.data.bundle import DATA_FILE, bundle
from sandbox.apiserver.data.capture import GROUP_VERSIONS, capture, strip, write
from sandbox.apiserver.schema.jsonpath import lookup
from sandbox.apiserver.tables.cells import CELLS, age, human_duration

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (200, "3m20s"), (600, "10m"),
        (3 * 3600 - 1, "179m"), (3 * 3600 + 600, "3h10m"), (8 * 3600, "8h"), (47 * 3600, "47h"),
        (50 * 3600, "2d2h"), (9 * 86400, "9d"), (800 * 86400, "2y70d"),
    ],
)  # fmt: skip
def test_durations_are_shortened_as_kubectl_does(seconds: int, text: str) -> None:
    assert human_duration(dt.timedelta(seconds=seconds)) == text


def test_age_of_nothing_is_unknown() -> None:
    assert age(None) == "<unknown>"
    assert age("noon", NOW) == "<invalid>"
    assert age("2025-12-31T23:59:00Z", NOW) == "60s"


def test_pod_cells() -> None:
    pod: dict[str, Any] = {
        "metadata": {"name": "p"},
        "spec": {"containers": [{}, {}], "nodeName": "n1"},
        "status": {
            "phase": "Running",
            "podIP": "10.0.0.1",
            "containerStatuses": [
                {"ready": True, "restartCount": 1},
                {"restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
            ],
        },
    }
    cells = CELLS["pods"](pod)
    assert (cells["Ready"], cells["Status"], cells["Restarts"]) == ("1/2", "CrashLoopBackOff", "3")
    assert (cells["IP"], cells["Node"], cells["Nominated Node"]) == ("10.0.0.1", "n1", "<none>")
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert CELLS["pods"](pod)["Status"] == "Terminating"


def test_node_cells() -> None:
    node = {
        "metadata": {"name": "n", "labels": {"node-role.kubernetes.io/gpu-worker": ""}},
        "spec": {"unschedulable": True},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    cells = CELLS["nodes"](node)
    assert (cells["Status"], cells["Roles"]) == ("Ready,SchedulingDisabled", "gpu-worker")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".spec.a", [1]),
        ("spec.a", [1]),
        (".spec.none", []),
        (".spec.list[1]", ["y"]),
        (".spec.list[*]", ["x", "y"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".metadata.labels.a\\.b/c", ["dotted"]),
        (".metadata.labels['a.b/c']", ["dotted"]),
    ],
)
def test_jsonpath(path: str, expected: list[Any]) -> None:
    value = {
        "metadata": {"labels": {"a.b/c": "dotted"}},
        "spec": {"a": 1, "list": ["x", "y"]},
        "status": {
            "conditions": [{"type": "Other", "status": "?"}, {"type": "Ready", "status": "True"}]
        },
    }
    assert lookup(value, path) == expected


def test_unsupported_jsonpath_is_an_error() -> None:
    with pytest.raises(ValueError, match="unsupported JSONPath"):
        lookup({}, ".a[?(@.b>1)]")


def test_strip_drops_prose_but_no_property_of_that_name() -> None:
    schema = {
        "description": "prose",
        "properties": {"description": {"type": "string", "description": "prose"}},
    }
    assert strip(schema) == {"properties": {"description": {"type": "string"}}}


def test_capture_reads_what_a_server_serves(tmp_path: Path) -> None:
    def fetch(path: str, accept: str) -> Any:
        if "as=Table" in accept:
            return {
                "columnDefinitions": [
                    {
                        "name": "Name",
                        "type": "string",
                        "format": "",
                        "priority": 0,
                        "description": "x",
                    }
                ]
            }
        if path == "/version":
            return {"gitVersion": "v1"}
        if path.startswith("/openapi"):
            return {"components": {"schemas": {"S": {"type": "object", "description": "x"}}}}
        return {"resources": [{"name": "things", "verbs": ["list"], "storageVersionHash": "x"}]}

    data = capture(fetch)
    assert set(data["groups"]) == set(GROUP_VERSIONS)
    assert data["groups"]["apps/v1"] == [{"name": "things", "verbs": ["list"]}]
    assert data["schemas"] == {"S": {"type": "object"}}
    assert data["columns"]["v1/things"] == [
        {"name": "Name", "type": "string", "format": "", "priority": 0}
    ]
    first, second = tmp_path / "a", tmp_path / "b"
    assert write(data, first) == write(data, second)
    assert first.read_bytes() == second.read_bytes()


def test_data_file_is_small_and_knows_the_kinds_we_use() -> None:
    assert DATA_FILE.stat().st_size < 200_000
    names = {f"{gv}/{r['name']}" for gv, resources in bundle().groups.items() for r in resources}
    assert {
        "v1/pods/binding",
        "apps/v1/deployments/scale",
        "resource.k8s.io/v1/resourceclaims",
        "scheduling.k8s.io/v1/priorityclasses",
        "coordination.k8s.io/v1/leases",
    } <= names
    assert bundle().columns["v1/pods"][0]["name"] == "Name"


def test_certificates_are_made_once_and_renewed_in_time(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    pki.ensure(NOW)
    first, ca = pki.cert_file.read_bytes(), pki.ca_file.read_bytes()
    certificate = x509.load_pem_x509_certificate(first)
    authority = x509.load_pem_x509_certificate(ca)
    certificate.verify_directly_issued_by(authority)
    pki.ensure(NOW + dt.timedelta(days=300))
    assert pki.cert_file.read_bytes() == first
    pki.ensure(NOW + dt.timedelta(days=3640))
    assert pki.cert_file.read_bytes() != first
    assert pki.ca_file.read_bytes() == ca
    assert pki.key_file.stat().st_mode & 0o077 == 0


def test_kubeconfig_stands_alone(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    pki.ensure(NOW)
    path = tmp_path / "kubeconfig"
    write_kubeconfig(path, server="https://127.0.0.1:1", ca_file=pki.ca_file, token="t", user="u")
    config = yaml.safe_load(path.read_text())
    assert config["users"] == [{"name": "u", "user": {"token": "t"}}]
    assert config["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:1"
    assert path.stat().st_mode & 0o077 == 0
