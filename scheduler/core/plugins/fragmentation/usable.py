"""How much of the devices of a node the typical mix can use, read from tables.

A request for one device can use each device with enough left beside enough free CPU. So for a device it
is enough to know the kind of its node (which requests are allowed there), how many of the CPU
amounts of the mix are free, and how many of the mix's shares it has left. A table has for each such triple
the chance that a task of the mix can use the device. Requests for several devices have tables of their own,
few because such requests are few.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from scheduler.core.arrays import TOLERANCE, Floats, Ints
from scheduler.core.plugins.fragmentation.mix import TypicalRequest

#: Part of a device that a request may lack and yet fit, because shares are rounded to MiB.
SHARE_SLACK = 1e-3


class UsableTable:
    """The tables of one mix.

    Attributes
    ----------
    kind_of : per node, the number of its kind
    cpus, shares : the distinct CPU amounts, and the distinct shares (less slack), in ascending order
    """

    def __init__(self, requests: Sequence[TypicalRequest], node_count: int) -> None:
        self.cpus: Floats = np.unique([request.cpu_milli for request in requests]) - TOLERANCE
        self.shares: Floats = np.unique([request.share for request in requests]) - SHARE_SLACK
        masks = np.array([request.nodes for request in requests]).reshape(-1, node_count)
        kinds, kind_of = np.unique(masks.T, axis=0, return_inverse=True)
        self.kind_of: Ints = kind_of.reshape(-1).astype(np.int64)
        rows, columns = len(self.cpus) + 1, len(self.shares) + 1
        #: Requests for several devices: (devices, level that each must reach) -> chance by kind and CPU.
        groups: dict[tuple[int, int], Floats] = {}
        single: Floats = np.zeros((len(kinds), rows, columns))
        for position, request in enumerate(requests):
            # The request fits from this row on by its CPU, and from this column on by its share.
            row = bisect_right(self.cpus, request.cpu_milli)
            column = bisect_right(self.shares, request.share)
            chances = request.weight * kinds[:, position]
            if request.devices == 1:
                single[:, row:, column:] += chances[:, np.newaxis, np.newaxis]
                continue
            group = groups.setdefault((request.devices, column), np.zeros((len(kinds), rows)))
            group[:, row:] += chances[:, np.newaxis]
        self._rows, self._columns = rows, columns
        self._single = single.ravel()
        self._groups = [(*key, chances.ravel()) for key, chances in groups.items()]
        # The same as plain lists, which are faster for one node.
        self._single_rows: list[list[float]] = single.reshape(-1, columns).tolist()
        self._group_rows = [(*key, chances.ravel().tolist()) for key, chances in groups.items()]

    def levels(self, left: Floats) -> Ints:
        """Return for the free part of each device how many of the distinct shares of the mix it is enough for."""
        levels: Ints = np.searchsorted(self.shares, left, side="right")
        return levels

    def usable(self, nodes: Ints, cpu: Floats, left: Floats, levels: Ints) -> Floats:
        """Return how much of the devices of nodes the mix can use on average.

        Parameters
        ----------
        cpu : shape (nodes,); free CPU
        left, levels : shape (nodes, devices); what is free of each device, and its `levels`
        """
        rows = self.kind_of[nodes] * self._rows + np.searchsorted(self.cpus, cpu, side="right")
        chances = self._single[(rows * self._columns)[:, np.newaxis] + levels]
        usable: Floats = np.einsum("ij,ij->i", chances, left)
        for devices, least_level, group in self._groups:
            large = levels >= least_level
            enough = large.sum(axis=1) >= devices
            if enough.any():
                usable += (
                    np.where(enough, np.where(large, left, 0.0).sum(axis=1), 0.0) * group[rows]
                )
        return usable

    def usable_on(self, node: int, cpu: float, left: Sequence[float]) -> float:
        """Return the same for one node."""
        row = int(self.kind_of[node]) * self._rows + bisect_right(self.cpus, cpu)
        chances = self._single_rows[row]
        levels = [bisect_right(self.shares, amount) for amount in left]
        usable = sum(chances[level] * amount for level, amount in zip(levels, left, strict=True))
        for devices, least_level, group in self._group_rows:
            if group[row]:
                large = [
                    amount
                    for amount, level in zip(left, levels, strict=True)
                    if level >= least_level
                ]
                if len(large) >= devices:
                    usable += sum(large) * group[row]
        return usable
