"""The memory of failed binds: how often a pod could not be bound, on which nodes, and when it is tried again.

It is one annotation of the pod, so it survives a restart of every process, ends with the pod, and a person resets
it by removing the annotation. Only the scheduler writes it, once per failed bind request (ADR 20).

Pure: no Django.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from typing import Any

import msgspec

from kube.errors import BadValueError
from kube.process.backoff import doubled_s
from kube.values.documents import parse_json
from kube.values.times import format_time, time_or_none

FIRST_PAUSE_S = 2.0
MAX_PAUSE_S = 300.0
#: How many different nodes are remembered, the latest last.
MAX_NODES = 8
MAX_REASON_CHARS = 512


class _Body(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The annotation as JSON."""

    count: int
    last: str
    next: str
    nodes: tuple[str, ...] = ()
    request: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BindFailures:
    """The failed binds of one pod.

    Attributes
    ----------
    last, next : Unix times of the last failure and of the next attempt
    nodes : the different nodes of the failures, the latest last
    request : uid of the bind request that failed last, so that no request is counted twice
    reason : the error of the last failure
    """

    count: int
    last: float
    next: float
    nodes: tuple[str, ...]
    request: str
    reason: str

    def holds(self, now: float) -> bool:
        """Return whether the pod must wait. A time further away than the longest pause is an error and is ignored."""
        return now < self.next <= now + MAX_PAUSE_S + 1

    def text(self) -> str:
        """Return a sentence for people: why the pod waits, and until when."""
        node = self.nodes[-1] if self.nodes else ""
        place = f" to node {node}" if node else ""
        times = "once" if self.count == 1 else f"{self.count} times"
        return (
            f"Binding failed {times}, last{place}: {self.reason.rstrip('. ')}. "
            f"The next attempt is made after {_time_text(self.next)}"
        )


def read_failures(annotation: str | None) -> BindFailures | None:
    """Return the failures in an annotation; None if it is absent or cannot be read, as if no bind had failed."""
    if not annotation:
        return None
    try:
        body: _Body = parse_json(annotation, _Body)
    except BadValueError:
        return None
    last, following = time_or_none(body.last), time_or_none(body.next)
    if body.count < 1 or last is None or following is None:
        return None
    return BindFailures(
        count=body.count,
        last=last.timestamp(),
        next=following.timestamp(),
        nodes=body.nodes[-MAX_NODES:],
        request=body.request,
        reason=body.reason[:MAX_REASON_CHARS],
    )


def written_failures(failures: BindFailures) -> str:
    """Return the failures as the text of the annotation."""
    body = _Body(
        count=failures.count,
        last=_time_text(failures.last),
        next=_time_text(failures.next),
        nodes=failures.nodes,
        request=failures.request,
        reason=failures.reason,
    )
    return msgspec.json.encode(body).decode()


def row_of_failures(annotation: str | None) -> dict[str, Any]:
    """Return the failures in an annotation as a JSON column keeps them; {} if there are none."""
    failures = read_failures(annotation)
    if failures is None:
        return {}
    return {
        "count": failures.count,
        "last": _time_text(failures.last),
        "next": _time_text(failures.next),
        "nodes": list(failures.nodes),
        "reason": failures.reason,
    }


def after_failure(
    earlier: BindFailures | None, *, node: str, request: str, reason: str, now: float
) -> BindFailures:
    """Return the memory after one more failure; the pause doubles with each, up to `MAX_PAUSE_S`."""
    count = 1 + (earlier.count if earlier is not None else 0)
    other_nodes = tuple(
        name for name in (earlier.nodes if earlier is not None else ()) if name != node
    )
    pause_s = doubled_s(count - 1, first_s=FIRST_PAUSE_S, max_s=MAX_PAUSE_S)
    return BindFailures(
        count=count,
        last=now,
        next=now + pause_s,
        nodes=(*other_nodes, node)[-MAX_NODES:],
        request=request,
        reason=reason[:MAX_REASON_CHARS],
    )


def _time_text(moment: float) -> str:
    """Return a Unix time as RFC 3339 text, rounded to the second."""
    return format_time(datetime.fromtimestamp(round(moment) if moment < inf else 0, UTC))
