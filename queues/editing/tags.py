"""Edit tags: the version of what people edit of a queue (spec, labels, options), unaffected by status writes.

A queue's resourceVersion changes with every status write, several times a second on a busy queue, so a version
check against it would refuse edits without a competing edit. The API server counts changes of the spec in
`metadata.generation`. The tag adds a digest of labels and options, which the generation does not count, and of the uid,
because a queue that is created again starts at generation 1.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from queues.models import Queue
from queues.tree.options import option_annotations

DIGEST_LENGTH = 12


def edit_tag(
    *, uid: str, generation: int, labels: Mapping[str, str], options: Mapping[str, str]
) -> str:
    """Return the tag; it begins with the generation, so that clients can order two tags."""
    parts = [uid, sorted(labels.items()), *([sorted(options.items())] if options else [])]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    return f"{generation}-{digest[:DIGEST_LENGTH]}"


def tag_of_body(body: Mapping[str, Any]) -> str:
    """Return the tag of a Queue object."""
    metadata = body["metadata"]
    return edit_tag(
        uid=str(metadata.get("uid", "")),
        generation=int(metadata.get("generation", 0)),
        labels=metadata.get("labels") or {},
        options=option_annotations(metadata.get("annotations")),
    )


def tag_of_row(row: Queue) -> str:
    """Return the tag of a mirrored queue, which equals that of the object."""
    return edit_tag(uid=row.uid, generation=row.generation, labels=row.labels, options=row.options)
