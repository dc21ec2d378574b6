"""Put an operator's own manifests into a cluster: definitions, roles, accounts and webhooks, but not its Deployment."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import yaml

from tests.integration.stack import wait_until
from tests.real_cluster.cluster import Cluster
from tests.real_cluster.installation import run_kubectl
from tests.real_cluster.operators.programs import TRAINING, Operator

ESTABLISHED_WITHIN_S = 120.0
TRAINING_WEBHOOK = "validator.training-operator.kubeflow.org"

Manifest = dict[str, Any]


@contextmanager
def installed(
    cluster: Cluster, operator: Operator, namespace: str, port: int, authority: bytes
) -> Iterator[None]:
    """Apply an operator's manifests with kubectl; remove its webhooks at the end.

    Parameters
    ----------
    namespace : the one in which the webhooks are asked
    port : where they are served on this machine
    authority : the certificate to check theirs with, PEM
    """
    folder = cluster.folder / operator.name
    for definition in operator.definitions:
        file = str(operator.folder() / definition)
        run_kubectl(cluster, "apply", "--server-side", "-f", file)
        _await_established(cluster, operator, file)
    manifests = _of_overlay(cluster, operator) if operator.overlay else _small_parts(operator)
    for body in manifests:
        if operator.overlay and body["kind"].endswith("WebhookConfiguration"):
            _serve_here(body, port, authority, namespace)
    file = folder / "manifests.yaml"
    file.write_text(yaml.safe_dump_all(manifests))
    run_kubectl(cluster, "apply", "--server-side", "-f", str(file))
    if operator.overlay:
        definitions = folder / "definitions.yaml"
        definitions.write_text(
            yaml.safe_dump_all(
                body for body in manifests if body["kind"] == "CustomResourceDefinition"
            )
        )
        _await_established(cluster, operator, str(definitions))
    try:
        yield
    finally:
        for body in manifests:
            if "Webhook" in body["kind"]:
                run_kubectl(cluster, "delete", body["kind"], body["metadata"]["name"])


def _of_overlay(cluster: Cluster, operator: Operator) -> Sequence[Manifest]:
    """Return what the operator's own kustomization makes; its Deployment is the process of the tests."""
    text = run_kubectl(cluster, "kustomize", str(operator.folder() / operator.overlay))
    return [body for body in yaml.safe_load_all(text) if body["kind"] != "Deployment"]


def _serve_here(body: Manifest, port: int, authority: bytes, namespace: str) -> None:
    for webhook in body["webhooks"]:
        path = webhook["clientConfig"]["service"]["path"]
        webhook["clientConfig"] = {
            "url": f"https://127.0.0.1:{port}{path}",
            "caBundle": base64.b64encode(authority).decode(),
        }
        webhook["namespaceSelector"] = _only(namespace)


def _small_parts(operator: Operator) -> Sequence[Manifest]:
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": operator.namespace},
    }
    return [namespace, *(_training_objects() if operator is TRAINING else ())]


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


def _await_established(cluster: Cluster, operator: Operator, file: str) -> None:
    wait_until(
        partial(_are_established, cluster, file),
        what=f"the definitions of {operator.name}",
        timeout_s=ESTABLISHED_WITHIN_S,
        every_s=0.5,
    )


def _are_established(cluster: Cluster, file: str) -> bool:
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
