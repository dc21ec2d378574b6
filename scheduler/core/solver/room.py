"""How many GPUs each node can offer: idle and being freed, with shared leftovers and MIG slices.

Every probe of every search needs this of every node, and between two searches only a few nodes change.
The figures are therefore kept for the whole session and refreshed for touched nodes only.
"""

from __future__ import annotations

import numpy as np

from scheduler.core.arrays import Floats
from scheduler.core.cluster.axis import GPU_ROW
from scheduler.core.cluster.changes import Cursor
from scheduler.core.cluster.gpus import leftovers
from scheduler.core.session.session import Session


class GpuRoom:
    """GPUs per node that are idle or being freed.

    Attributes
    ----------
    gpus : shape (nodes,); in devices, parts of shared devices as fractions, MIG slices by size
    """

    __slots__ = ("_cursor", "_mig_rows", "_nodes", "gpus")

    def __init__(self, session: Session) -> None:
        self._nodes = session.state.nodes
        self._mig_rows = session.state.axis.mig_rows
        self.gpus: Floats = np.zeros(len(self._nodes))
        self._cursor = Cursor(self._nodes.touched)
        for node in range(len(self._nodes)):
            self.gpus[node] = self._measure(node)

    @classmethod
    def of(cls, session: Session) -> GpuRoom:
        """Return the session's figures, brought up to date."""
        room = session.attached(cls)
        if room is None:
            room = session.attach(cls(session))
        room.refresh()
        return room

    def refresh(self) -> None:
        """Measure the nodes again that were touched since."""
        if self._cursor.is_behind():
            for node in set(self._cursor.read()):
                self.gpus[node] = self._measure(node)

    def _measure(self, node: int) -> float:
        nodes = self._nodes
        if nodes.shared_gpus[node]:
            idle, releasing = leftovers(nodes, node)
            gpus = idle + releasing
        else:
            gpus = nodes.idle_rows[GPU_ROW][node] + nodes.releasing_rows[GPU_ROW][node]
        for row, units in self._mig_rows:
            gpus += units * (nodes.idle_rows[row][node] + nodes.releasing_rows[row][node])
        return float(gpus)
