"""Run one operator beside a real control plane, as its own installation would, but outside of the cluster.

No network leads from the API server to a Service here, so webhooks are registered by the operator's address on this
machine, with a certificate that we issue, and for one namespace only. Those of the training operator cannot be: it makes
its certificate for the name of a Service and has no flag against it.
"""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from cryptography.hazmat.primitives import serialization

from kube.certificates import Issued, issue_authority, issue_server
from tests.integration.stack import wait_until
from tests.real_cluster.build import ensure_program
from tests.real_cluster.cluster import (
    ClusterStartError,
    RealCluster,
    free_ports,
    log_tail,
    process_of_the_tests,
)
from tests.real_cluster.installation import run_kubectl
from tests.real_cluster.operators.programs import (
    MPI,
    TRAINING,
    TRAINING_CERTIFICATES,
    Operator,
    Ports,
)

READY_WITHIN_S = 120.0
LIFETIME = timedelta(days=1)
TRAINING_WEBHOOK = "validator.training-operator.kubeflow.org"

Manifest = dict[str, Any]


@contextmanager
def running_operator(cluster: RealCluster, operator: Operator, namespace: str) -> Iterator[None]:
    """Install an operator's kinds and webhooks, run it until the end of the block, and remove its webhooks.

    Parameters
    ----------
    namespace : the one in which the operator's webhooks are asked

    Raises
    ------
    ClusterUnavailableError : the operator cannot be built here
    ClusterStartError : it ended, or was not ready in time
    """
    program = ensure_program(operator.program)
    folder = cluster.folder / operator.name
    certificates = TRAINING_CERTIFICATES if operator is TRAINING else folder / "certificates"
    certificates.mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    ports = _ports(operator)
    authority = _write_certificates(certificates)
    source = operator.folder()
    for definition in operator.definitions:
        file = str(source / definition)
        run_kubectl(cluster, "apply", "--server-side", "-f", file)
        wait_until(
            partial(_are_established, cluster, file),
            what=f"the definitions of {operator.name}",
            timeout_s=READY_WITHIN_S,
            every_s=0.5,
        )
    installed = [_namespace(operator), *_webhooks(operator, source, ports, authority, namespace)]
    for body in installed:
        _apply(cluster, folder, body)
    command = [str(program), *operator.flags(ports, certificates)]
    command += [f"--{'kubeConfig' if operator is MPI else 'kubeconfig'}={cluster.kubeconfig}"]
    if configuration := operator.configuration(ports, certificates):
        (folder / "configuration.yaml").write_text(configuration)
        command += [f"--config={folder / 'configuration.yaml'}"]
    try:
        with process_of_the_tests(operator.name, cluster.folder, command) as process:
            path = "healthz" if operator is MPI else "readyz"
            url = f"http://127.0.0.1:{ports.health}/{path}"
            deadline = time.monotonic() + READY_WITHIN_S
            while not _answers(url):
                if process.poll() is not None or time.monotonic() > deadline:
                    end = log_tail(cluster, operator.name)
                    raise ClusterStartError(f"{operator.name} is not ready:\n{end}")
                time.sleep(0.2)
            yield
    finally:
        for body in installed:
            if "Webhook" in body["kind"]:
                run_kubectl(cluster, "delete", body["kind"], body["metadata"]["name"])


def _ports(operator: Operator) -> Ports:
    webhook, metrics, health = free_ports(3)
    # The MPI operator has no flag for the port of its health.
    return Ports(webhook=webhook, metrics=metrics, health=8080 if operator is MPI else health)


def _write_certificates(folder: Path) -> bytes:
    """Write a server certificate for this machine; return that of its authority."""
    now = datetime.now(UTC)
    authority = issue_authority("operators", now, LIFETIME)
    server = issue_server(authority, "operator", ["127.0.0.1"], now, LIFETIME)
    (folder / "tls.crt").write_bytes(_pem(server))
    (folder / "tls.key").write_bytes(
        server.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return _pem(authority)


def _pem(issued: Issued) -> bytes:
    return issued.certificate.public_bytes(serialization.Encoding.PEM)


def _namespace(operator: Operator) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": operator.namespace}}


def _webhooks(
    operator: Operator, source: Path, ports: Ports, authority: bytes, namespace: str
) -> Iterator[Manifest]:
    if operator is TRAINING:
        yield from _training_objects()
    if not operator.webhooks:
        return
    for body in yaml.safe_load_all((source / operator.webhooks).read_text()):
        body["metadata"]["name"] = f"{operator.name}-test"
        for webhook in body["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {
                "url": f"https://127.0.0.1:{ports.webhook}{path}",
                "caBundle": base64.b64encode(authority).decode(),
            }
            webhook["namespaceSelector"] = _only(namespace)
        yield body


def _training_objects() -> Iterator[Manifest]:
    """Yield what the training operator writes its own certificate into: a Secret, and a webhook that nobody asks."""
    secret = "training-operator-webhook-cert"
    yield {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": secret, "namespace": TRAINING.namespace},
    }
    yield {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": TRAINING_WEBHOOK},
        "webhooks": [
            {
                "name": "validator.pytorchjob.training-operator.kubeflow.org",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "clientConfig": {"url": "https://127.0.0.1:1/validate-kubeflow-org-v1-pytorchjob"},
                "namespaceSelector": _only("no-namespace-has-this-name"),
            }
        ],
    }


def _only(namespace: str) -> Manifest:
    return {"matchLabels": {"kubernetes.io/metadata.name": namespace}}


def _apply(cluster: RealCluster, folder: Path, body: Manifest) -> None:
    file = folder / "applied.json"
    file.write_text(json.dumps(body))
    run_kubectl(cluster, "apply", "-f", str(file))


def _are_established(cluster: RealCluster, file: str) -> bool:
    """Return whether the API server serves the kinds that a file or folder defines."""
    body = json.loads(run_kubectl(cluster, "get", "-f", file, "-o", "json"))
    definitions = body["items"] if body["kind"] == "List" else [body]
    return all(
        any(
            condition["type"] == "Established" and condition["status"] == "True"
            for condition in definition.get("status", {}).get("conditions") or ()
        )
        for definition in definitions
    )


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except (OSError, urllib.error.URLError):
        return False
