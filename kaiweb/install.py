"""Install into a cluster what kaiweb needs: the custom resource definitions and the default objects.

The definitions are applied at every start (server-side apply, our field manager). Default objects are created if
they are missing and never changed, because from then on they belong to the people who run the cluster.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from kube import resources
from kube.errors import AlreadyExistsError, NotFoundError, ServerError, TooManyRequestsError
from kube.gateway import Gateway, PatchOptions, PatchType
from kube.resources import CRDS, Resource

log = logging.getLogger(__name__)

FIELD_MANAGER = "kaiweb-bootstrap"
# Part of the error text of an API server when a webhook does not answer, such as ours at a second start.
WEBHOOK_DOWN_TEXT = "failed calling webhook"
SERVED_TIMEOUT_S = 30.0
POLL_INTERVAL_S = 0.2

Manifest = Mapping[str, Any]
#: The resources by API version and kind.
KINDS: Mapping[tuple[str, str], Resource] = {
    (resource.api_version, resource.kind): resource
    for resource in vars(resources).values()
    if isinstance(resource, Resource)
}


class InstallError(RuntimeError):
    """The cluster cannot be prepared; the message names the file or the object."""


def documents(folder: Path) -> list[Manifest]:
    """Return all objects in the YAML files of a folder, in the order of the file names.

    Raises
    ------
    InstallError : a file is not YAML, or holds something other than Kubernetes objects
    """
    objects: list[Manifest] = []
    for file in sorted(folder.glob("*.yaml")):
        try:
            parsed = [doc for doc in yaml.safe_load_all(file.read_text()) if doc is not None]
        except yaml.YAMLError as error:
            raise InstallError(f"{file.name}: expected YAML, got: {error}") from error
        for doc in parsed:
            if not isinstance(doc, dict) or not doc.get("metadata", {}).get("name"):
                raise InstallError(f"{file.name}: expected objects with a name, got {doc!r:.80}")
            objects.append(doc)
    return objects


def apply_definitions(gateway: Gateway, docs: Sequence[Manifest]) -> None:
    """Apply custom resource definitions and wait until the cluster serves their kinds.

    Raises
    ------
    InstallError : a kind is still not served after 30 s
    kube.errors.KubeError : the cluster refused a definition
    """
    for doc in docs:
        gateway.patch(
            CRDS,
            doc["metadata"]["name"],
            doc,
            patch_type=PatchType.APPLY,
            options=PatchOptions(field_manager=FIELD_MANAGER, force=True),
        )
    for served_kind in _served_kinds(docs):
        _wait_until_served(gateway, served_kind)


def create_missing(gateway: Gateway, docs: Sequence[Manifest]) -> list[str]:
    """Create the objects that do not exist yet; return what was created as `Kind name`.

    At a second start our webhooks are registered already, and the process that answers them starts later. So
    existing objects are not written at all, and an object that a webhook cannot review yet is left to the next
    start.

    Raises
    ------
    InstallError : an object is of a kind that kaiweb does not install
    kube.errors.KubeError : the cluster refused an object
    """
    created = []
    for doc in docs:
        key = (doc["apiVersion"], doc["kind"])
        if key not in KINDS:
            raise InstallError(f"{key[1]} of {key[0]}: not a kind that kaiweb installs")
        name, namespace = doc["metadata"]["name"], doc["metadata"].get("namespace", "")
        if _exists(gateway, KINDS[key], name, namespace):
            continue
        try:
            gateway.create(KINDS[key], doc, namespace=namespace)
        except AlreadyExistsError:
            continue
        except ServerError as error:
            if WEBHOOK_DOWN_TEXT not in str(error):
                raise
            log.warning("cannot create %s %s before the next start: %s", doc["kind"], name, error)
            continue
        created.append(f"{doc['kind']} {name}")
    return created


def _exists(gateway: Gateway, kind: Resource, name: str, namespace: str) -> bool:
    try:
        gateway.get(kind, name, as_type=dict, namespace=namespace)
    except NotFoundError:
        return False
    return True


def _served_kinds(docs: Sequence[Manifest]) -> Iterator[Resource]:
    for doc in docs:
        spec = doc["spec"]
        for version in spec["versions"]:
            if version.get("served"):
                yield Resource(
                    group=spec["group"],
                    version=version["name"],
                    plural=spec["names"]["plural"],
                    kind=spec["names"]["kind"],
                    namespaced=spec["scope"] == "Namespaced",
                )


def _wait_until_served(
    gateway: Gateway, kind: Resource, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Return once the cluster lists objects of a kind; raise InstallError after `SERVED_TIMEOUT_S`."""
    for _attempt in range(round(SERVED_TIMEOUT_S / POLL_INTERVAL_S)):
        try:
            gateway.list(kind, as_type=dict)
        except (NotFoundError, TooManyRequestsError):
            # A kube-apiserver answers 429 "storage is (re)initializing" at first.
            sleep(POLL_INTERVAL_S)
        else:
            return
    raise InstallError(
        f"{kind.kind} ({kind.api_version}) is not served after {SERVED_TIMEOUT_S:.0f} s"
    )
