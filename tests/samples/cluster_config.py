"""The Config of an installation, which all samples share: a sample edits it and restores it at the end.

Nothing of this goes through `Sample.apply`, which would delete the object at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kube.errors import ConflictError
from kube.resources import CONFIGS, Resource
from tests.integration.stack import wait_until
from tests.samples.installations import Installation
from tests.samples.sample import Json

#: Type -> (status, reason, message) of an object with which all is well.
READY = {
    "Reconciling": ("False", "reconciled", "Reconciliation completed successfully"),
    "Deployed": ("True", "deployed", "Resources deployed"),
    "Available": ("True", "available", "System available"),
    "DependenciesFulfilled": ("True", "dependencies_fulfilled", "Dependencies are fulfilled"),
    "Ready": ("True", "ready", "System is ready"),
}
CONFIG = "kai-config"
#: A process is started anew for most edits of the Config; on a loaded machine that takes its time.
PATIENCE_S = 90.0


def get(installation: Installation, resource: Resource, name: str) -> Json:
    condition_now: Json = installation.gateway.get(resource, name, as_type=dict)
    return condition_now


def current_conditions(
    installation: Installation, resource: Resource, name: str
) -> dict[str, tuple[str, str, str]]:
    """Return type -> (status, reason, message) of the conditions that speak of the object's present generation."""
    body = get(installation, resource, name)
    generation = body["metadata"]["generation"]
    return {
        item["type"]: (item["status"], item["reason"], item["message"])
        for item in (body.get("status") or {}).get("conditions", ())
        if item.get("observedGeneration") == generation
    }


def wait_for(
    installation: Installation,
    resource: Resource,
    name: str,
    condition: str,
    status: str,
    message: str = "",
) -> str:
    """Wait until a condition of the present generation has a status, and a message that contains the text."""

    def holds() -> bool:
        condition_now = current_conditions(installation, resource, name).get(condition)
        return (
            condition_now is not None and condition_now[0] == status and message in condition_now[2]
        )

    wait_until(
        holds,
        what=f"{condition}={status} {message!r} on {name}",
        timeout_s=PATIENCE_S,
        stack=installation.stack,
    )
    return current_conditions(installation, resource, name)[condition][2]


def replace(
    installation: Installation, resource: Resource, name: str, change: Callable[[Json], Json]
) -> None:
    """Replace an object by what `change` makes of it; again if it was written in between, as its status is."""

    def is_replaced() -> bool:
        try:
            body = get(installation, resource, name)
            installation.gateway.replace(resource, name, change(body))
        except ConflictError:
            return False
        return True

    wait_until(is_replaced, what=f"the replacement of {name}", stack=installation.stack)


@contextmanager
def config_restored(installation: Installation) -> Iterator[None]:
    """Let a module edit the Config; at the end it is as it was and everything is up again.

    Its annotations too: kubectl keeps there what was applied last, and would take away what the next file omits.
    """
    before = get(installation, CONFIGS, CONFIG)

    def restored(body: Json) -> Json:
        metadata = {
            key: value
            for key, value in body["metadata"].items()
            if key not in ("annotations", "managedFields")
        }
        annotations = before["metadata"].get("annotations") or {}
        return {
            **body,
            "metadata": {**metadata, "annotations": annotations},
            "spec": before.get("spec", {}),
        }

    try:
        yield
    finally:
        replace(installation, CONFIGS, CONFIG, restored)
        wait_for(installation, CONFIGS, CONFIG, "Ready", "True")


def apply_file(installation: Installation, file: Path) -> None:
    """Apply a file with kubectl without anybody deleting its objects later."""
    installation.stack.kubectl("apply", "-f", str(file))
