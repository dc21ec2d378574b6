"""How long it takes to create 2,000 queues, one after the other, through the webhooks of an installation.

python -m tests.bench.queues
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from kube.resources import QUEUES
from tests.bench.large_tree import plain_queue, queue_parents
from tests.bench.submit import gateway_to
from tests.integration.stack import running_stack

LIMIT_S = 60.0


def measure() -> float:
    """Return the seconds of all creations by one client, parents first."""
    with (
        tempfile.TemporaryDirectory(prefix="kaiweb-bench-") as folder,
        running_stack(Path(folder), {"DEMO": "0"}) as stack,
    ):
        gateway = gateway_to(stack)
        begun = time.monotonic()
        for name, parent in queue_parents().items():
            gateway.create(QUEUES, plain_queue(name, parent))
        return time.monotonic() - begun


if __name__ == "__main__":
    seconds = measure()
    print(f"2,000 queues created in {seconds:.1f} s (limit {LIMIT_S:.0f} s)")
    raise SystemExit(seconds > LIMIT_S)
