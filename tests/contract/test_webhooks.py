"""Admission webhooks: called with a review, they change or refuse what is written."""

from __future__ import annotations

import base64
import contextlib
import ipaddress
import json
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.contract.api import Api
from tests.contract.bodies import configmap, queue

MAPS = "/api/v1/namespaces/{ns}/configmaps"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(slots=True)
class Hook:
    """A webhook on loopback: `respond` makes the response, `reviews` keeps what was asked."""

    port: int
    ca_bundle: str
    response: dict[str, Any] = field(default_factory=dict)
    reviews: list[dict[str, Any]] = field(default_factory=list)

    def config(self, name: str, namespace: str, resource: str, group: str = "") -> dict[str, Any]:
        scope = "Cluster" if resource == "queues" else "Namespaced"
        hook: dict[str, Any] = {
            "name": f"{name}.contract.example.test",
            "clientConfig": {
                "url": f"https://127.0.0.1:{self.port}/hook",
                "caBundle": self.ca_bundle,
            },
            "rules": [
                {
                    "apiGroups": [group],
                    "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": [resource],
                    "scope": scope,
                }
            ],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 5,
        }
        if scope == "Namespaced":
            labels = {"kubernetes.io/metadata.name": namespace}
            hook["namespaceSelector"] = {"matchLabels": labels}
        return {"metadata": {"name": name}, "webhooks": [hook]}


def certificate(folder: Path) -> Path:
    """Write a self-signed certificate for 127.0.0.1 with its key, return the file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "contract webhook")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "hook.pem"
    file.write_bytes(
        signed.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return file


@pytest.fixture
def hook(tmp_path: Path) -> Iterator[Hook]:
    file = certificate(tmp_path)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            running.reviews.append(review)
            response = {"uid": review["request"]["uid"], "allowed": True, **running.response}
            body = json.dumps(
                {
                    "apiVersion": "admission.k8s.io/v1",
                    "kind": "AdmissionReview",
                    "response": response,
                }
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    listener.socket = context.wrap_socket(listener.socket, server_side=True)
    running = Hook(
        listener.server_port,
        base64.b64encode(file.read_bytes().split(b"-----BEGIN PRIVATE")[0]).decode(),
    )
    thread = threading.Thread(target=listener.serve_forever, daemon=True)
    thread.start()
    yield running
    listener.shutdown()
    listener.server_close()
    thread.join()


@contextlib.contextmanager
def installed(
    api: Api, kind: str, config: dict[str, Any], hook: Hook, probe: Any
) -> Iterator[None]:
    """Install the configuration and wait until the server calls it (its cache follows late)."""
    api.post(f"{WEBHOOKS}/{kind}", config).ok(201)
    try:
        deadline = time.monotonic() + 10
        while not hook.reviews:
            assert time.monotonic() < deadline, "the webhook was not called within 10 s"
            probe()
            time.sleep(0.05)
        hook.reviews.clear()
        yield
    finally:
        api.delete(f"{WEBHOOKS}/{kind}/{config['metadata']['name']}").ok(200)


def probe_maps(api: Api) -> Any:
    return lambda: api.post(MAPS, configmap("probe"), dryRun="All")


def test_mutating_webhook_changes_the_object(api: Api, hook: Hook, unique: str) -> None:
    patch = [{"op": "add", "path": "/data/injected", "value": "yes"}]
    config = hook.config(unique, api.namespace, "configmaps")
    hook.response = {
        "patchType": "JSONPatch",
        "patch": base64.b64encode(json.dumps(patch).encode()).decode(),
    }
    with installed(api, "mutatingwebhookconfigurations", config, hook, probe_maps(api)):
        body = api.post(MAPS, configmap("a", k="1")).ok(201)
    assert body["data"] == {"k": "1", "injected": "yes"}
    request = hook.reviews[0]["request"]
    assert request["operation"] == "CREATE"
    assert request["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert (request["namespace"], request["object"]["metadata"]["name"]) == (api.namespace, "a")
    assert "system:masters" in request["userInfo"]["groups"]


def test_validating_webhook_refuses_with_its_message(api: Api, hook: Hook, unique: str) -> None:
    config = hook.config(unique, api.namespace, "configmaps")
    with installed(api, "validatingwebhookconfigurations", config, hook, probe_maps(api)):
        api.post(MAPS, configmap("a", k="1")).ok(201)
        hook.response = {"allowed": False, "status": {"message": "not on a Sunday", "code": 403}}
        api.post(MAPS, configmap("b")).refused(
            403,
            "",
            f'admission webhook "{unique}.contract.example.test" denied the request: '
            "not on a Sunday",
        )
        api.patch(f"{MAPS}/a", {"data": {"k": "2"}}).refused(403, "", "not on a Sunday")
    update = hook.reviews[-1]["request"]
    assert update["operation"] == "UPDATE"
    assert (update["oldObject"]["data"], update["object"]["data"]) == ({"k": "1"}, {"k": "2"})


def test_webhook_warnings_reach_the_client(api: Api, hook: Hook, unique: str) -> None:
    config = hook.config(unique, api.namespace, "configmaps")
    with installed(api, "validatingwebhookconfigurations", config, hook, probe_maps(api)):
        hook.response = {"warnings": ["quota is tight"]}
        answer = api.post(MAPS, configmap("a"))
    answer.ok(201)
    assert "quota is tight" in answer.headers["Warning"]


def test_webhook_for_a_custom_kind(api: Api, hook: Hook, unique: str) -> None:
    config = hook.config(unique, "", "queues", "scheduling.run.ai")
    path = "/apis/scheduling.run.ai/v2/queues"
    probe = lambda: api.post(path, queue(f"{unique}-probe"), dryRun="All")  # noqa: E731
    with installed(api, "validatingwebhookconfigurations", config, hook, probe):
        hook.response = {"allowed": False, "status": {"message": "resources must be specified"}}
        api.post(path, queue(unique)).refused(
            400, "", "denied the request: resources must be specified"
        )
    assert api.get(f"{path}/{unique}").status == 404


def test_unreachable_webhook_fails_or_is_ignored_by_its_policy(
    api: Api, hook: Hook, unique: str
) -> None:
    config = hook.config(unique, api.namespace, "configmaps")
    with installed(api, "validatingwebhookconfigurations", config, hook, probe_maps(api)):
        pass
    config["webhooks"][0]["clientConfig"]["url"] = "https://127.0.0.1:1/hook"
    config["metadata"]["name"] = f"{unique}-dead"
    api.post(f"{WEBHOOKS}/validatingwebhookconfigurations", config).ok(201)
    path = f"{WEBHOOKS}/validatingwebhookconfigurations/{unique}-dead"
    try:
        deadline = time.monotonic() + 10
        while (answer := api.post(MAPS, configmap("a"), dryRun="All")).status == 201:
            assert time.monotonic() < deadline, "the dead webhook was not called within 10 s"
            time.sleep(0.05)
        answer.refused(500, "InternalError", "failed calling webhook")
        ignore = [{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]
        api.patch(path, ignore, "application/json-patch+json").ok()
        deadline = time.monotonic() + 10
        while api.post(MAPS, configmap("a"), dryRun="All").status != 201:
            assert time.monotonic() < deadline, "the policy Ignore took no effect within 10 s"
            time.sleep(0.05)
    finally:
        api.delete(path).ok(200)


def test_a_webhook_sees_the_options_of_the_write(api: Api, hook: Hook, unique: str) -> None:
    config = hook.config(unique, api.namespace, "configmaps")
    config["webhooks"][0]["rules"][0]["operations"] = ["*"]
    with installed(api, "validatingwebhookconfigurations", config, hook, probe_maps(api)):
        hook.reviews.clear()
        api.post(MAPS, configmap("a"), fieldManager="alice").ok(201)
        api.patch(f"{MAPS}/a", {"data": {"k": "1"}}, dryRun="All").ok()
        api.delete(f"{MAPS}/a", {"propagationPolicy": "Background"}).ok(200)
    head = {"apiVersion": "meta.k8s.io/v1"}
    assert [review["request"]["options"] for review in hook.reviews] == [
        {**head, "kind": "CreateOptions", "fieldManager": "alice"},
        {**head, "kind": "UpdateOptions", "dryRun": ["All"]},
        {**head, "kind": "DeleteOptions", "propagationPolicy": "Background"},
    ]


def test_a_webhook_sees_the_defaults_of_a_custom_kind(api: Api, hook: Hook, unique: str) -> None:
    """Go writes an empty string for a field that it did not get, which an enumeration then refuses."""
    group = f"{unique}.example.test"
    mode = {"type": "string", "enum": ["Fast", "Slow"], "default": "Slow"}
    spec = {"type": "object", "properties": {"mode": mode}, "default": {}}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition = {
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", **version}],
        },
    }
    api.post(DEFINITIONS, definition).ok(201)
    path = f"/apis/{group}/v1/namespaces/{{ns}}/things"
    thing = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "a"}}
    deadline = time.monotonic() + 20
    while api.post(path, thing, dryRun="All").status != 201:
        assert time.monotonic() < deadline, "things were not served within 20 s"
        time.sleep(0.1)
    config = hook.config(unique, api.namespace, "things", group)
    probe = lambda: api.post(path, thing, dryRun="All")  # noqa: E731
    try:
        with installed(api, "mutatingwebhookconfigurations", config, hook, probe):
            hook.reviews.clear()
            api.post(path, thing).ok(201)
            api.patch(f"{path}/a", {"spec": None}).ok()
    finally:
        api.delete(f"{DEFINITIONS}/things.{group}").ok(200)
    seen = [review["request"]["object"]["spec"] for review in hook.reviews]
    assert seen == [{"mode": "Slow"}, {"mode": "Slow"}]
