"""The fair-share simulator: queues and a total in, fair shares out, in KAI's own JSON form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

import numpy as np

from kube.errors import BadValueError
from kube.values.times import parse_time
from scheduler.core.fairshare.division import DivisionInput, divide_tree

KINDS = ("gpu", "cpu", "memory")
TOTAL_KEYS = {"gpu": "GPU", "cpu": "CPU", "memory": "Memory"}
DEFAULT_REQUEST = 100_000.0


class SimulationInputError(ValueError):
    """An input that cannot be simulated; the message names the queue or field."""


def simulate_fair_share(body: Any) -> dict[str, dict[str, float]]:
    """Divide `totalResource` among `queues`.

    Parameters
    ----------
    body : the request body of KAI's simulator: totalResource, queues, kValue

    Returns
    -------
    queue uid -> gpu, cpu, memory

    Raises
    ------
    SimulationInputError : not an object, a queue without uid or twice, a missing parent, a cycle
    """
    if not isinstance(body, Mapping):
        raise SimulationInputError(f"expected an object, got {type(body).__name__}")
    queues = _queues(body.get("queues") or [])
    names = [str(queue["uid"]) for queue in queues]
    total = body.get("totalResource") or {}
    try:
        share = divide_tree(
            np.array([_number(total, TOTAL_KEYS[kind], 0.0, "totalResource") for kind in KINDS]),
            np.array(_parents(queues, names), dtype=np.int64),
            _demand(queues),
            _number(body, "kValue", 0.0, "kValue"),
        )
    except ValueError as error:
        raise SimulationInputError(str(error)) from error
    return {
        name: {kind: float(share[row, column]) for row, kind in enumerate(KINDS)}
        for column, name in enumerate(names)
    }


def _queues(queues: Any) -> list[Mapping[str, Any]]:
    seen: set[str] = set()
    for queue in queues:
        uid = queue.get("uid") if isinstance(queue, Mapping) else None
        if not uid:
            raise SimulationInputError(f"expected a queue with a uid, got {queue!r}")
        if uid in seen:
            raise SimulationInputError(f"queue {uid!r} is there twice")
        seen.add(uid)
    return list(queues)


def _parents(queues: Sequence[Mapping[str, Any]], names: list[str]) -> list[int]:
    parents = []
    for queue in queues:
        parent = queue.get("parentQueue") or ""
        if parent and parent not in names:
            raise SimulationInputError(
                f"queue {queue['uid']!r}: its parent {parent!r} is not there"
            )
        parents.append(names.index(parent) if parent else -1)
    return parents


def _demand(queues: Sequence[Mapping[str, Any]]) -> DivisionInput:
    order = sorted(range(len(queues)), key=lambda i: (_created(queues[i]), str(queues[i]["uid"])))
    seniority = np.empty(len(queues), dtype=np.int64)
    seniority[order] = np.arange(len(queues))
    return DivisionInput(
        quota=_columns(queues, "deserved"),
        limit=_columns(queues, "maxAllowed"),
        weight=_columns(queues, "overQuotaWeight"),
        request=_columns(queues, "request"),
        usage=_columns(queues, "absoluteUsage"),
        priority=np.array([int(queue.get("priority") or 0) for queue in queues], dtype=np.int64),
        seniority=seniority,
    )


def _columns(
    queues: Sequence[Mapping[str, Any]], key: str
) -> np.ndarray[Any, np.dtype[np.float64]]:
    rows = [[_amount(queue, kind, key) for queue in queues] for kind in KINDS]
    return np.array(rows, dtype=np.float64).reshape(len(KINDS), len(queues))


def _amount(queue: Mapping[str, Any], kind: str, key: str) -> float:
    block = (queue.get("resourceShare") or {}).get(kind)
    unlimited_quota = block is None and kind != "gpu"
    default = {
        "deserved": -1.0 if unlimited_quota else 0.0,
        "maxAllowed": -1.0,
        "overQuotaWeight": 1.0,
        "request": DEFAULT_REQUEST,
        "absoluteUsage": 0.0,
    }[key]
    value = _number(block or {}, key, default, f"queue {queue['uid']!r} {kind}")
    return inf if value == -1 and key in ("deserved", "maxAllowed") else value


def _number(block: Mapping[str, Any], key: str, default: float, location: str) -> float:
    value = block.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SimulationInputError(f"{location}: expected a number for {key}, got {value!r}")
    return float(value)


def _created(queue: Mapping[str, Any]) -> float:
    text = queue.get("creationTimestamp")
    if not text:
        return 0.0
    try:
        return parse_time(str(text)).timestamp()
    except BadValueError as error:
        raise SimulationInputError(
            f"queue {queue['uid']!r}: expected an RFC 3339 creationTimestamp, got {text!r}"
        ) from error
