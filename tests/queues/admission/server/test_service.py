"""Certificates, registration and the HTTPS port of the webhooks."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from django.test import Client, override_settings

from kube.errors import AlreadyExistsError, ConflictError
from queues import cluster
from queues.admission.install.certificates import ensure_certificates
from queues.admission.install.registration import (
    MUTATING,
    Registration,
    ServiceTarget,
    UrlTarget,
    configurations,
    install,
)
from queues.admission.install.secret import ensure_shared_certificates
from queues.admission.review import ALLOWED, BadReviewError, read_request, respond
from queues.admission.routes import VALIDATE_POD_GROUP, Routes
from queues.admission.server.server import AdmissionServer
from queues.admission.server.switches import flag, settings_from_environment
from sandbox.apiserver.schema.rules import Rules
from tests.fakes.gateway import FakeGateway

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NAMES = ("127.0.0.1", "localhost")


def review(spec: dict[str, Any]) -> bytes:
    request = {"uid": "u", "operation": "CREATE", "object": {"spec": spec}}
    return json.dumps({"request": request}).encode()


def leaf(file: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(file.read_bytes())


def test_certificates_are_made_once_and_kept(tmp_path: Path) -> None:
    pair = ensure_certificates(tmp_path, NAMES, NOW)
    again = ensure_certificates(tmp_path, NAMES, NOW + timedelta(days=1))
    assert (pair.is_new, again.is_new) == (True, False)
    assert pair.bundle == again.bundle
    assert pair.key.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "ca.key").stat().st_mode & 0o777 == 0o600
    (authority,) = x509.load_pem_x509_certificates(pair.bundle)
    leaf(pair.certificate).verify_directly_issued_by(authority)


def test_a_certificate_is_renewed_before_it_ends_under_the_same_authority(tmp_path: Path) -> None:
    first = ensure_certificates(tmp_path, NAMES, NOW)
    serial = leaf(first.certificate).serial_number
    assert not ensure_certificates(tmp_path, NAMES, NOW + timedelta(days=59)).is_new
    later = ensure_certificates(tmp_path, NAMES, NOW + timedelta(days=61))
    assert later.is_new
    assert leaf(later.certificate).serial_number != serial
    assert later.bundle == first.bundle


def test_a_new_authority_joins_the_old_one_in_the_bundle(tmp_path: Path) -> None:
    ensure_certificates(tmp_path, NAMES, NOW)
    late = NOW + timedelta(days=3650 - 300)
    renewed = ensure_certificates(tmp_path, NAMES, late)
    authorities = x509.load_pem_x509_certificates(renewed.bundle)
    assert len(authorities) == 2
    leaf(renewed.certificate).verify_directly_issued_by(authorities[0])
    after = ensure_certificates(tmp_path, NAMES, NOW + timedelta(days=3651))
    assert len(x509.load_pem_x509_certificates(after.bundle)) == 1


@pytest.mark.parametrize("broken", ["ca.crt", "ca.key", "tls.crt", "tls.key"])
def test_damaged_files_are_replaced(tmp_path: Path, broken: str) -> None:
    ensure_certificates(tmp_path, NAMES, NOW)
    (tmp_path / broken).write_text("damaged")
    repaired = ensure_certificates(tmp_path, NAMES, NOW)
    assert repaired.is_new
    newest = x509.load_pem_x509_certificates(repaired.bundle)[0]
    leaf(repaired.certificate).verify_directly_issued_by(newest)


def test_other_names_mean_another_certificate(tmp_path: Path) -> None:
    first = ensure_certificates(tmp_path, NAMES, NOW)
    renamed = ensure_certificates(tmp_path, ("admission.kai.svc",), NOW)
    names = leaf(renamed.certificate).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert renamed.is_new
    assert names.value.get_values_for_type(x509.DNSName) == ["admission.kai.svc"]
    assert renamed.bundle == first.bundle


def test_replicas_share_one_authority_through_a_secret(tmp_path: Path) -> None:
    gateway = FakeGateway()
    first = ensure_shared_certificates(gateway, "kai", tmp_path / "a", NAMES, NOW)
    second = ensure_shared_certificates(gateway, "kai", tmp_path / "b", NAMES, NOW)
    assert first.certificate.read_bytes() == second.certificate.read_bytes()
    assert (first.is_new, second.is_new) == (True, True)
    assert second.key.stat().st_mode & 0o777 == 0o600
    assert not ensure_shared_certificates(gateway, "kai", tmp_path / "a", NAMES, NOW).is_new
    later = NOW + timedelta(days=70)
    renewed = ensure_shared_certificates(gateway, "kai", tmp_path / "b", NAMES, later)
    adopted = ensure_shared_certificates(gateway, "kai", tmp_path / "a", NAMES, later)
    assert (renewed.is_new, adopted.is_new) == (True, True)
    assert adopted.certificate.read_bytes() == renewed.certificate.read_bytes()


def test_the_slower_of_two_first_replicas_adopts(tmp_path: Path) -> None:
    gateway = FakeGateway()
    gateway.fail_next("create", "secrets", AlreadyExistsError("taken"))
    pair = ensure_shared_certificates(gateway, "kai", tmp_path, NAMES, NOW)
    assert leaf(pair.certificate).verify_directly_issued_by(leaf(tmp_path / "ca.crt")) is None
    for _ in range(5):
        gateway.fail_next("create", "secrets", ConflictError("busy"))
    with pytest.raises(
        ConflictError, match="secret other/kai-admission-webhook-tls-secret was written"
    ):
        ensure_shared_certificates(gateway, "other", tmp_path, NAMES, NOW)


def registered(**options: Any) -> dict[str, dict[str, Any]]:
    registration = Registration(
        target=UrlTarget(base="https://127.0.0.1:9"), bundle=b"CA", **options
    )
    return {body["metadata"]["name"]: body for _, body in configurations(registration)}


def test_webhooks_are_scoped_to_what_they_judge() -> None:
    bodies = registered(namespace="kai")
    assert sorted(bodies) == [
        "kai-podgroup-validation-v2alpha2",
        "kai-queue-validation-v2",
        "mutating-kai-admission",
        "validating-kai-admission",
    ]
    (mutating,) = bodies["mutating-kai-admission"]["webhooks"]
    assert mutating["name"] == "admission.kai.svc"
    assert mutating["clientConfig"] == {
        "url": "https://127.0.0.1:9/mutate--v1-pod",
        "caBundle": base64.b64encode(b"CA").decode(),
    }
    assert mutating["rules"] == [
        {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"], "scope": "Namespaced"}
    ]  # fmt: skip
    assert (mutating["failurePolicy"], mutating["sideEffects"]) == ("Fail", "None")
    assert mutating["reinvocationPolicy"] == "IfNeeded"
    assert mutating["namespaceSelector"] == {
        "matchExpressions": [
            {
                "key": "kubernetes.io/metadata.name",
                "operator": "NotIn",
                "values": ["kube-system", "kai"],
            }
        ]
    }
    assert mutating["matchConditions"][0] == {
        "name": "scheduler-name-match",
        "expression": "object.spec.schedulerName == 'kai-scheduler'",
    }
    assert mutating["matchConditions"][1]["name"] == "asks-for-part-of-a-gpu"
    pods, topologies = bodies["validating-kai-admission"]["webhooks"]
    assert pods["rules"][0]["operations"] == ["CREATE", "UPDATE"]
    assert topologies["name"] == "topology.admission.kai.svc"
    (queues,) = bodies["kai-queue-validation-v2"]["webhooks"]
    assert queues["rules"][0]["operations"] == ["CREATE", "UPDATE"]


@pytest.mark.parametrize(
    ("configuration", "hook", "path", "group", "version", "kind", "operations", "scope"),
    [
        ("mutating-kai-admission", "admission.kai.svc", "/mutate--v1-pod", "", "v1", "pods", ["CREATE"], "Namespaced"),
        ("validating-kai-admission", "admission.kai.svc", "/validate--v1-pod", "", "v1", "pods", ["CREATE", "UPDATE"], "Namespaced"),
        ("validating-kai-admission", "topology.admission.kai.svc", "/validate-kai-scheduler-v1alpha1-topology", "kai.scheduler", "v1alpha1", "topologies", ["CREATE", "UPDATE"], "Cluster"),
        ("kai-queue-validation-v2", "queue-validation.kai.scheduler", "/validate-scheduling-run-ai-v2-queue", "scheduling.run.ai", "v2", "queues", ["CREATE", "UPDATE"], "Cluster"),
        ("kai-podgroup-validation-v2alpha2", "podgroup-validation.kai.scheduler", "/validate-scheduling-run-ai-v2alpha2-podgroup", "scheduling.run.ai", "v2alpha2", "podgroups", ["CREATE", "UPDATE"], "Namespaced"),
    ],
)  # fmt: skip
def test_each_webhook_has_kais_name_path_and_rule(
    configuration: str, hook: str, path: str, group: str, version: str, kind: str, operations: list[str], scope: str
) -> None:  # fmt: skip
    hooks = registered(namespace="kai")[configuration]["webhooks"]
    (webhook,) = [hook_body for hook_body in hooks if hook_body["name"] == hook]
    assert webhook["clientConfig"]["url"] == f"https://127.0.0.1:9{path}"
    rule = {"apiGroups": [group], "apiVersions": [version], "resources": [kind], "operations": operations, "scope": scope}  # fmt: skip
    assert webhook["rules"] == [rule]
    assert (webhook["sideEffects"], webhook["admissionReviewVersions"]) == ("None", ["v1"])
    assert (webhook["failurePolicy"], webhook["timeoutSeconds"]) == ("Fail", 5)


def test_while_we_restart_what_needs_us_waits() -> None:
    def policies(target: UrlTarget | ServiceTarget, **options: Any) -> dict[str, str]:
        registration = Registration(target=target, bundle=b"CA", **options)
        return {
            h["name"]: h["failurePolicy"]
            for _, body in configurations(registration)
            for h in body["webhooks"]
        }

    for target in (UrlTarget(base="https://127.0.0.1:9"), ServiceTarget(namespace="kai")):
        assert set(policies(target).values()) == {"Fail"}
    assert policies(UrlTarget(base="https://127.0.0.1:9"), is_reachable=False) == {
        "admission.kai-scheduler.svc": "Fail",
        "topology.admission.kai-scheduler.svc": "Ignore",
        "queue-validation.kai.scheduler": "Ignore",
        "podgroup-validation.kai.scheduler": "Ignore",
    }


@pytest.mark.parametrize(
    ("server", "is_near"),
    [
        ("https://127.0.0.1:6443", True),
        ("https://localhost:6443", True),
        ("https://[::1]:6443", True),
        ("https://10.0.0.7:6443", False),
        ("https://api.example.test", False),
    ],
)
def test_a_server_elsewhere_cannot_call_back(tmp_path: Path, server: str, is_near: bool) -> None:
    contexts = [
        {"name": "old", "context": {"cluster": "far"}},
        {"name": "now", "context": {"cluster": "c"}},
    ]
    clusters = [
        {"name": "far", "cluster": {"server": "https://far.test"}},
        {"name": "c", "cluster": {"server": server}},
    ]
    file = tmp_path / "kubeconfig"
    body = {"current-context": "now", "contexts": contexts, "clusters": clusters}
    file.write_text(json.dumps(body))
    with override_settings(KAIWEB_KUBECONFIG=str(file)):
        assert cluster.is_on_this_host() is is_near


def test_a_kubeconfig_still_to_be_written_is_that_of_our_own_cluster(tmp_path: Path) -> None:
    with override_settings(KAIWEB_KUBECONFIG=str(tmp_path / "none")):
        assert cluster.is_on_this_host()
    with override_settings(KAIWEB_KUBECONFIG="in-cluster"):
        assert not cluster.is_on_this_host()


def test_selectors_of_the_config_narrow_the_pod_webhooks() -> None:
    bodies = registered(
        pod_labels={"a": "b"},
        namespace_labels={"c": "d"},
        required_namespace_label="kai.scheduler/queue",
        asks_about_every_pod=True,
    )
    (hook,) = bodies["mutating-kai-admission"]["webhooks"]
    assert hook["objectSelector"] == {"matchLabels": {"a": "b"}}
    assert hook["namespaceSelector"]["matchLabels"] == {"c": "d"}
    assert hook["namespaceSelector"]["matchExpressions"][1] == {
        "key": "kai.scheduler/queue",
        "operator": "Exists",
    }
    assert [c["name"] for c in hook["matchConditions"]] == ["scheduler-name-match"]


@pytest.mark.parametrize(
    ("old", "new", "is_asked"),
    [
        ({}, {}, False),
        ({"note": "a"}, {"note": "b"}, False),
        ({}, {"kaiweb.dev/gpu-models": "{}"}, True),
        ({"kaiweb.dev/max-run-time": "1h"}, {"kaiweb.dev/max-run-time": "1"}, True),
        ({"kaiweb.dev/max-run-time": "1h"}, {"kaiweb.dev/max-run-time": "1h"}, False),
        ({"kaiweb.dev/max-run-time": "1h"}, {}, False),
    ],
)
def test_an_edit_of_the_options_of_a_queue_is_validated_like_one_of_its_spec(
    old: dict[str, str], new: dict[str, str], is_asked: bool
) -> None:
    hooks = [hook for body in registered().values() for hook in body["webhooks"]]
    (hook,) = (hook for hook in hooks if hook["name"] == "queue-validation.kai.scheduler")
    (condition,) = hook["matchConditions"]
    objects = {
        name: {"metadata": {"annotations": annotations} if annotations else {}, "spec": {}}
        for name, annotations in (("object", new), ("oldObject", old))
    }
    values = {**objects, "request": {"operation": "UPDATE"}}
    assert Rules().decide(condition["expression"], values) is is_asked


def test_registration_can_be_repeated_and_undone() -> None:
    gateway = FakeGateway()
    registration = Registration(
        target=ServiceTarget(namespace="kai"), bundle=b"CA", namespace="kai"
    )
    install(gateway, registration)
    install(gateway, registration)
    assert gateway.names(MUTATING) == ["mutating-kai-admission"]
    hook = gateway.raw(MUTATING, "mutating-kai-admission")["webhooks"][0]
    assert hook["clientConfig"]["service"] == {
        "namespace": "kai",
        "name": "admission",
        "path": "/mutate--v1-pod",
        "port": 443,
    }


def test_the_https_port_answers_reviews_and_registers_itself(tmp_path: Path) -> None:
    gateway = FakeGateway()
    server = AdmissionServer(
        gateway=gateway,
        routes=Routes(tree=dict),
        folder=tmp_path,
        registration=Registration(target=UrlTarget(base=""), bundle=b""),
    )
    port = server.start()
    try:
        context = ssl.create_default_context(cadata=(tmp_path / "bundle.crt").read_text())
        base = f"https://127.0.0.1:{port}"

        def post(path: str, body: bytes) -> tuple[int, bytes]:
            try:
                with urllib.request.urlopen(
                    urllib.request.Request(base + path, data=body), timeout=10, context=context
                ) as answer:
                    return answer.status, answer.read()
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, error.read()

        status, body = post(
            f"{VALIDATE_POD_GROUP}?timeout=5s", review({"subGroups": [{"name": "a"}]})
        )
        assert status == 200
        assert (
            json.loads(body)["response"]["status"]["message"] == "subgroup a: minMember is required"
        )
        assert post(VALIDATE_POD_GROUP, b"[]")[0] == 400
        deep = b'{"request": {"uid": "u", "object": ' + b'{"a":' * 9000 + b"1" + b"}" * 9002
        assert post(VALIDATE_POD_GROUP, deep) == (400, b"the review is nested too deeply")
        assert post("/elsewhere", review({}))[0] == 404
        with urllib.request.urlopen(f"{base}/healthz", timeout=10, context=context) as answer:
            assert answer.read() == b"ok"
    finally:
        server.stop()
    hook = gateway.raw(MUTATING, "mutating-kai-admission")["webhooks"][0]
    assert hook["clientConfig"]["url"] == f"https://127.0.0.1:{port}/mutate--v1-pod"
    assert (tmp_path / "port").read_text() == str(port)


def test_an_answer_is_sent_without_waiting_for_acknowledgements(tmp_path: Path) -> None:
    server = AdmissionServer(
        gateway=FakeGateway(),
        routes=Routes(tree=dict),
        folder=tmp_path,
        registration=Registration(target=UrlTarget(base=""), bundle=b""),
    )
    with server._bound_socket() as listening:
        client = socket.create_connection(listening.getsockname(), timeout=10)
        accepted, _ = listening.accept()
        with client, accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@override_settings(ROOT_URLCONF="queues.admission.server.urls")
def test_the_same_answers_come_from_django() -> None:
    client = Client()
    answer = client.post(VALIDATE_POD_GROUP, data=review({}), content_type="application/json")
    assert answer.json()["response"] == {"uid": "u", "allowed": True}
    assert (
        client.post(VALIDATE_POD_GROUP, data=b"x", content_type="application/json").status_code
        == 400
    )
    assert client.get(VALIDATE_POD_GROUP).status_code == 405


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b'{"request": {}}', b'{"request": {"uid": 1}}']
)
def test_what_is_no_review_is_refused(body: bytes) -> None:
    with pytest.raises(BadReviewError):
        read_request(body)


@pytest.fixture
def default_recursion_limit() -> Iterator[None]:
    """Set Python's default recursion limit, which a library that other tests import raises."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("default_recursion_limit")
@pytest.mark.parametrize("depth", [300, 900, 90_000])
def test_a_deep_review_is_answered_or_refused(depth: int) -> None:
    nested = '{"a":' * depth + "1" + "}" * depth
    body = f'{{"request": {{"uid": "u", "object": {nested}}}}}'.encode()
    if depth == 300:
        assert json.loads(respond(body, lambda _: ALLOWED))["response"]["allowed"] is True
        return
    with pytest.raises(BadReviewError, match="nested too deeply"):
        respond(body, lambda _: ALLOWED)


def test_switches_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAIWEB_GPU_SHARING", "0")
    monkeypatch.setenv("KAIWEB_QUOTA_VALIDATION", "on")
    settings, compares = settings_from_environment()
    assert (settings.gpu_sharing, compares) == (False, True)
    monkeypatch.setenv("KAIWEB_GPU_SHARING", "perhaps")
    with pytest.raises(ValueError, match="KAIWEB_GPU_SHARING: expected 1 or 0, got 'perhaps'"):
        flag("KAIWEB_GPU_SHARING", default=True)
