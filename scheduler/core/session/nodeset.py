"""Sets of nodes to which a placement is confined: all nodes, a topology domain, the nodes of victims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from scheduler.core.arrays import Floats, Ints


class NodeSet:
    """Node indices in ascending order, so that of equally good nodes the first is the first by name.

    Attributes
    ----------
    indices : shape (nodes of the set,)
    position_of : node index -> position in `indices`; None for the set of all nodes, where both are equal
    key : equal for sets with the same nodes and scores, for caches
    extra_scores : shape (all nodes,); added to the scores of every task, NaN excludes a node
    """

    __slots__ = ("extra_scores", "indices", "key", "position_of")

    def __init__(
        self,
        indices: Ints,
        position_of: dict[int, int] | None,
        extra_scores: Floats | None = None,
    ) -> None:
        self.indices = indices
        self.position_of = position_of
        self.extra_scores = extra_scores
        scores = None if extra_scores is None else extra_scores.tobytes()
        self.key: tuple[bytes | None, bytes | None] = (
            None if position_of is None else indices.tobytes(),
            scores,
        )

    def __len__(self) -> int:
        return len(self.indices)

    def __contains__(self, node: int) -> bool:
        return self.position_of is None or node in self.position_of

    @property
    def is_all(self) -> bool:
        """Return whether these are all nodes of the cluster."""
        return self.position_of is None

    def take(self, values: Any) -> Any:
        """Return the entries of these nodes, of an array with one entry for each node of the cluster."""
        return values if self.is_all else values[self.indices]

    @classmethod
    def all(cls, count: int) -> NodeSet:
        """Return the set of all nodes."""
        return cls(np.arange(count, dtype=np.int64), None)

    @classmethod
    def of(cls, nodes: Sequence[int], extra_scores: Floats | None = None) -> NodeSet:
        """Return the set of some nodes, which may come in any order."""
        ordered = sorted(nodes)
        position_of = {node: position for position, node in enumerate(ordered)}
        return cls(np.array(ordered, dtype=np.int64), position_of, extra_scores)
