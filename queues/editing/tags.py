"""The version of what a person edits: it moves with the spec and the labels of a queue, never with its status.

A queue's resourceVersion moves with every status write, several times a second on a busy queue, so a version
check against it would refuse edits that nobody competes with. The API server counts changes of the spec in
`metadata.generation`; labels are not counted there, so a digest of them goes along, and the uid, because a
queue made anew begins at generation 1 again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from queues.models import Queue

DIGEST_LENGTH = 12


def edit_tag(*, uid: str, generation: int, labels: Mapping[str, str]) -> str:
    """Return the tag; it begins with the generation, so that clients can tell older from newer."""
    digest = hashlib.sha256(json.dumps([uid, sorted(labels.items())]).encode()).hexdigest()
    return f"{generation}-{digest[:DIGEST_LENGTH]}"


def tag_of_body(body: Mapping[str, Any]) -> str:
    """Return the tag of a Queue object."""
    metadata = body["metadata"]
    return edit_tag(
        uid=str(metadata.get("uid", "")),
        generation=int(metadata.get("generation", 0)),
        labels=metadata.get("labels") or {},
    )


def tag_of_row(row: Queue) -> str:
    """Return the tag of a mirrored queue; the same as that of the object it mirrors."""
    return edit_tag(uid=row.uid, generation=row.generation, labels=row.labels)
