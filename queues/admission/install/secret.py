"""Certificates shared by the replicas of one installation through a Secret of the cluster.

Every replica must answer with a certificate of the same authority, for the webhook configuration holds one bundle.
Whoever comes first makes it; the resourceVersion decides between two that come at once, and the loser adopts.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from kube.errors import AlreadyExistsError, ConflictError, NotFoundError
from kube.files import private_folder, write_private
from kube.gateway import Gateway
from kube.resources import SECRETS
from queues.admission.install.certificates import Certificates, ensure_certificates

SECRET_NAME = "kai-admission-webhook-tls-secret"
FILES = ("ca.crt", "ca.key", "tls.crt", "tls.key", "bundle.crt")
ATTEMPTS = 5

Json = dict[str, Any]


def ensure_shared_certificates(
    gateway: Gateway, namespace: str, folder: Path, names: Sequence[str], now: datetime
) -> Certificates:
    """Return valid certificates that all replicas share; `is_new` if they differ from those in the folder before.

    Raises
    ------
    KubeError : the Secret can be neither read nor written
    """
    before = _contents(folder)
    for _ in range(ATTEMPTS):
        version = _pull(gateway, namespace, folder)
        made = ensure_certificates(folder, names, now)
        try:
            if version is None or made.is_new:
                _push(gateway, namespace, folder, version)
        except (ConflictError, AlreadyExistsError):
            continue
        return Certificates(
            certificate=made.certificate,
            key=made.key,
            bundle=made.bundle,
            is_new=_contents(folder) != before,
        )
    raise ConflictError(f"secret {namespace}/{SECRET_NAME} is being written by others all the time")


def _pull(gateway: Gateway, namespace: str, folder: Path) -> str | None:
    """Write the Secret's files into the folder; return its version, None when there is none."""
    try:
        body: Json = gateway.get(SECRETS, SECRET_NAME, as_type=dict, namespace=namespace)
    except NotFoundError:
        return None
    private_folder(folder)
    data = body.get("data") or {}
    for name in FILES:
        if name in data:
            write_private(folder / name, base64.b64decode(data[name]))
    version: str = body["metadata"].get("resourceVersion", "")
    return version


def _push(gateway: Gateway, namespace: str, folder: Path, version: str | None) -> None:
    metadata = {"name": SECRET_NAME, "namespace": namespace}
    data = {name: base64.b64encode(content).decode() for name, content in _contents(folder).items()}
    body: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
    if version is None:
        gateway.create(SECRETS, body, namespace=namespace)
        return
    metadata["resourceVersion"] = version
    gateway.replace(SECRETS, SECRET_NAME, body, namespace=namespace)


def _contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES if (folder / name).exists()}
