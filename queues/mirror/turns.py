"""Keep several workers of the mirror from each other's rows; one worker alone needs nothing of this.

A turn is a transaction of a worker. It begins with a shared lock on the row of `MirrorState` that says which cluster
is mirrored by how many workers. Worker 0 changes that row at its start, so it waits for all running turns, and no
turn of another division begins afterwards.

Pods may change hands. Whoever reads their rows in order to write them locks their keys before: a key can be locked
also while there is no row. All locks of a turn are taken in this order, and keys in the order of their numbers:
division, keys of pods, rows, live log. So no two turns can wait for each other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from zlib import crc32

from django.db import connection, transaction

from queues.mirror.part import Part
from queues.models import MirrorState

#: The row of `MirrorState` with the uid of the mirrored cluster and the number of workers (0: one).
RECORD = "cluster"
# Arbitrary; locks of two numbers never meet those of one, such as that of the live log.
ROW_LOCKS = 0x6B61_6A


class DivisionChangedError(Exception):
    """Another cluster is mirrored, or by another number of workers, than when this worker started."""


def workers_of(record: MirrorState | None) -> int:
    """Return the number of workers that the row `RECORD` says; 1 without it."""
    return max(1, record.version) if record is not None else 1


@contextmanager
def turn(part: Part) -> Iterator[None]:
    """Open a transaction in which this worker may write; one worker alone opens its own when it writes.

    Raises
    ------
    DivisionChangedError : the worker must end, its part belongs to others now
    """
    if part.is_alone:
        yield
        return
    with transaction.atomic():
        _check_division(part)
        yield


def lock_rows(part: Part, keys: Collection[str]) -> None:
    """Wait until no other worker writes the rows of these keys, and keep them until the end of the turn."""
    if part.is_alone or not keys:
        return
    numbers = sorted({crc32(key.encode(errors="replace")) - 2**31 for key in keys})
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(%s, number) FROM unnest(%s::int[]) AS number",
            [ROW_LOCKS, numbers],
        )


def _check_division(part: Part) -> None:
    table = connection.ops.quote_name(MirrorState._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT identity, version FROM {table} WHERE kind = %s FOR SHARE", [RECORD])
        division = cursor.fetchone()
    if division != (part.cluster, part.count):
        known = f"{division[1]} workers for cluster {division[0]}" if division else "no cluster"
        raise DivisionChangedError(
            f"{part} of cluster {part.cluster} found that the mirror has {known} now; it must start anew"
        )
