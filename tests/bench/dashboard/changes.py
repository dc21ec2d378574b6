"""`python -m tests.bench.dashboard.changes N`: change N workloads a second in the mirror's rows, until terminated."""

from __future__ import annotations

import random
import sys
import time

import django

EVERY_S = 0.1


def main(per_second: int) -> None:
    """Give random workloads another user, with the entries of the live log that the mirror would write."""
    django.setup()
    from django.db import transaction

    from queues import live
    from queues.models import PodGroup

    keys = list(PodGroup.objects.values_list("key", flat=True))
    chance = random.Random(1)
    batch = max(1, round(per_second * EVERY_S))
    pause_s = batch / per_second
    print("started", flush=True)
    due = time.monotonic()
    number = 0
    while True:
        number += 1
        chosen = chance.sample(keys, min(batch, len(keys)))
        with transaction.atomic():
            PodGroup.objects.filter(key__in=chosen).update(user=f"user-{number}")
            live.record("workload", chosen)
        # What cannot be written in time is left out, so that a slow machine does not fall behind for ever.
        due = max(due + pause_s, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    main(int(sys.argv[1]))
