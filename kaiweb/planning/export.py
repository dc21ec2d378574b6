"""The edits of a change set as manifests for Git: patches for Kustomize and kubectl, whole queues where one is created."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from kube.resources import QUEUES
from queues.editing import edits
from queues.editing.bodies import patch_between
from scheduler.tools.simulate.what_if.question import QueueEdit

Body = dict[str, Any]

HEADER = """\
# {title}
# Written by kaiweb as patches for the source of these queues; nothing was changed in the cluster.
#
# Kustomize: save this file as queues-patch.yaml and name it in kustomization.yaml:
#   patches:
#   - path: queues-patch.yaml
#
# kubectl, one queue at a time: kubectl patch queue NAME --type=merge --patch-file FILE
"""


def patch_of(title: str, queue_edits: Sequence[QueueEdit], queues: Mapping[str, Body]) -> str:
    """Return the YAML of the edits, one document for each queue.

    Parameters
    ----------
    queues : the bodies of the cluster's queues, by name
    """
    documents = [_document(edit, queues.get(edit.name)) for edit in queue_edits]
    text: str = yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True)
    return HEADER.format(title=" ".join(title.split())) + "---\n" + text


def _document(edit: QueueEdit, current: Body | None) -> Body:
    head: Body = {
        "apiVersion": QUEUES.api_version,
        "kind": QUEUES.kind,
        "metadata": {"name": edit.name},
    }
    if edit.action == "delete":
        return {**head, "$patch": "delete"}
    if edit.action == "create" or current is None:
        return edits.apply(edits.new_queue(edit.name), edit.edit)[0]
    base = current
    if edit.action == "replace":
        base = edits.bare_queue(edit.name, current["metadata"])
    patch = patch_between(current, edits.apply(base, edit.edit)[0])
    metadata = {**head["metadata"], **(patch.pop("metadata", None) or {})}
    return {**head, "metadata": metadata, **patch}
