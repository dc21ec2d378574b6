"""Items for a caller who may see only some queues: what belongs to other queues keeps its size, but not its name.

Sums over the whole cluster stay as they are. Items that belong to one queue are not masked, but left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaiweb.items.visibility import Visibility

Item = dict[str, Any]


def masked_node(item: Mapping[str, Any], visibility: Visibility) -> Item:
    """Return a node whose devices do not name pods of other queues; its `rest` names no pods at all."""
    if not visibility.is_partial:
        return dict(item)
    devices = [_masked_device(cell, visibility) for cell in item["devices"]]
    rest = item["rest"]
    if rest is not None:
        rest = {**rest, "pods": [""] * len(rest["pods"])}
    return {**item, "devices": devices, "rest": rest}


def _masked_device(cell: Mapping[str, Any], visibility: Visibility) -> Item:
    holders = [
        holder
        if visibility.shows(holder["queue"])
        else {**holder, "pod": "", "workload": "", "queue": ""}
        for holder in cell["holders"]
    ]
    return {**cell, "holders": holders}


def masked_explanation(item: Mapping[str, Any], visibility: Visibility) -> Item:
    """Return an explanation whose list of those ahead names only workloads of visible queues."""
    order = item["order"]
    if not visibility.is_partial or order is None:
        return dict(item)
    ahead = [workload for workload in order["ahead"] if visibility.shows(workload["queue"])]
    return {**item, "order": {**order, "ahead": ahead}}


def masked_workload(item: Mapping[str, Any], visibility: Visibility) -> Item:
    """Return a workload with its details, and a masked explanation."""
    if not visibility.is_partial or "explain" not in item:
        return dict(item)
    return {**item, "explain": masked_explanation(item["explain"], visibility)}


def masked_cluster(item: Mapping[str, Any], visibility: Visibility) -> Item:
    """Return the overview with visible queues in its lists; its sums are of the whole cluster."""
    if not visibility.is_partial:
        return dict(item)
    lists = {
        name: [entry for entry in item[name] if visibility.shows(entry["queue"])]
        for name in ("starved", "borrowing")
    }
    return {**item, **lists}


def masked_eviction(item: Mapping[str, Any], visibility: Visibility) -> Item:
    """Return an eviction, a decision or a simulated eviction without the workloads of other queues."""
    masked = dict(item)
    if not visibility.is_partial:
        return masked
    if not visibility.shows(item["queue"]):
        hidden = {name: "" for name in ("workload", "pod", "queue", "text") if name in item}
        masked |= hidden
    if not visibility.shows(item.get("evictorQueue") or "") and item.get("evictor"):
        hidden = {name: "" for name in ("evictor", "evictorQueue", "text") if name in item}
        masked |= hidden
    return masked


def masked_answer(answer: Mapping[str, Any], visibility: Visibility) -> Item:
    """Return the answer of a simulation; evictions elsewhere keep their size, other rows elsewhere are left out."""
    if not visibility.is_partial or not answer:
        return dict(answer)
    lists = {
        name: [row for row in answer[name] if visibility.shows(row["queue"])]
        for name in ("shares", "starts", "blocked")
    }
    evictions = [masked_eviction(row, visibility) for row in answer["evictions"]]
    return {**answer, **lists, "evictions": evictions}
