"""Share certificates between the replicas of an installation through a Secret of the cluster.

All replicas need certificates of the same authority, because the webhook configuration holds one bundle. The first
replica creates them. If two do so at once, the resourceVersion decides, and the other one adopts them.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from kube.errors import AlreadyExistsError, ConflictError, NotFoundError
from kube.gateway import Gateway
from kube.process.files import private_folder, write_private
from kube.resources import SECRETS
from queues.admission.bodies import Json
from queues.admission.install.certificates import Certificates, ensure_certificates

SECRET_NAME = "kai-admission-webhook-tls-secret"
FILES = ("ca.crt", "ca.key", "tls.crt", "tls.key", "bundle.crt")
ATTEMPTS = 5


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
        certificates = ensure_certificates(folder, names, now)
        try:
            if version is None or certificates.is_new:
                _push(gateway, namespace, folder, version)
        except (ConflictError, AlreadyExistsError):
            continue
        return Certificates(
            certificate=certificates.certificate,
            key=certificates.key,
            bundle=certificates.bundle,
            is_new=_contents(folder) != before,
        )
    raise ConflictError(
        f"secret {namespace}/{SECRET_NAME} was written by others during each attempt"
    )


def _pull(gateway: Gateway, namespace: str, folder: Path) -> str | None:
    """Write the files of the Secret to the folder; return its resourceVersion, None if it does not exist."""
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
