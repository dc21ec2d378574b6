"""Hand over to other workers of the mirror what one touched of their sums, through the live log.

Entries are written in the transaction of the change and become visible in the order of commits. So whoever reads an
entry sees the rows behind it, and computing the sum then cannot miss them. The web processes skip these entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from queues.live import Kind
from queues.mirror.part import Part
from queues.mirror.rollup import Touched
from queues.models import LiveChange

#: Kind of an entry of the log -> the field of `Touched` whose keys it carries.
FIELDS: Mapping[str, str] = {
    "touched-group": "groups",
    "touched-pod": "pods",
    "touched-node": "nodes",
    "touched-queue": "moved_queues",
    "touched-class": "priority_classes",
}


def take_others(touched: Touched, part: Part) -> Mapping[Kind, Iterable[str]]:
    """Leave in `touched` what a chunk's transaction sums up, and return the rest as entries of the live log.

    Only pod groups of the part stay. The others are computed from rows that other workers write: which pod groups are
    behind a pod, a queue or a class is known to each worker for its part alone. Nodes go through the log
    too, because a transaction that writes pods in two passes could wait for another one in a circle.
    """
    if part.is_alone:
        return {}
    foreign = {key for key in touched.groups if not part.has(key)}
    entries: dict[Kind, Iterable[str]] = {
        "touched-group": foreign,
        "touched-pod": touched.pods,
        "touched-node": touched.nodes,
        "touched-queue": touched.moved_queues,
        "touched-class": touched.priority_classes,
    }
    touched.groups -= foreign
    touched.pods, touched.nodes = set(), set()
    touched.moved_queues, touched.priority_classes = set(), set()
    return entries


def touched_between(position: int, newest: int) -> Touched:
    """Return what all workers handed over in the live log after `position`, up to `newest`."""
    touched = Touched()
    entries = LiveChange.objects.filter(kind__in=FIELDS, id__gt=position, id__lte=newest)
    for kind, key in entries.order_by().values_list("kind", "key").distinct():
        getattr(touched, FIELDS[kind]).add(key)
    return touched
