"""Assign GPU cells of a node to its pods, for the drawing of the node in the dashboard.

The cluster records only how many devices a pod has. The drawing needs a cell for each, and a cell must not
move when other pods come and go: a pod keeps its cells, and a new pod takes the lowest free ones. Pods with
part of a device share the cell of their GPU group, which the group's reservation pod holds.

Pure: no Django.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A pod on the node.

    Attributes
    ----------
    whole : devices it has for itself, 0 for a pod with fractions
    groups : GPU groups it shares
    reserves : the GPU group that this reservation pod holds; empty for ordinary pods
    cells : the cells assigned before
    """

    key: str
    whole: int = 0
    groups: tuple[str, ...] = ()
    reserves: str = ""
    cells: tuple[int, ...] = ()


def assign(count: int, tenants: Sequence[Tenant]) -> dict[str, tuple[int, ...]]:
    """Return the cells of every tenant.

    Parameters
    ----------
    count : devices of the node
    tenants : oldest first; of two that had the same cell, the older keeps it

    Returns
    -------
    key -> cells; fewer than devices if the node has too few cells (a device was removed)
    """
    taken_cells: set[int] = set()
    cell_of_group: dict[str, int] = {}
    cells_of_owner: dict[str, list[int]] = {}
    holders = [tenant for tenant in tenants if tenant.reserves]
    sharers = [tenant for tenant in tenants if tenant.groups]
    owners = [tenant for tenant in tenants if tenant.whole and not tenant.reserves]
    for tenant in holders:
        _keep_group(tenant.reserves, tenant.cells[:1], count, taken_cells, cell_of_group)
    for tenant in sharers:
        for group, cell in zip(tenant.groups, tenant.cells, strict=False):
            _keep_group(group, (cell,), count, taken_cells, cell_of_group)
    for tenant in owners:
        cells = [cell for cell in tenant.cells if cell < count and cell not in taken_cells]
        cells_of_owner[tenant.key] = cells[: tenant.whole]
        taken_cells.update(cells_of_owner[tenant.key])
    free_cells = [cell for cell in range(count) if cell not in taken_cells]
    for group in [*(t.reserves for t in holders), *(g for t in sharers for g in t.groups)]:
        if group not in cell_of_group and free_cells:
            cell_of_group[group] = free_cells.pop(0)
    result: dict[str, tuple[int, ...]] = {}
    for tenant in tenants:
        if tenant.reserves:
            groups: tuple[str, ...] = (tenant.reserves,)
        else:
            groups = tenant.groups
        # Cells and groups correspond by position, so the list ends at the first group without a cell.
        has_cell = takewhile(cell_of_group.__contains__, groups)
        result[tenant.key] = tuple(cell_of_group[group] for group in has_cell)
    for tenant in owners:
        cells = cells_of_owner[tenant.key]
        while len(cells) < tenant.whole and free_cells:
            cells.append(free_cells.pop(0))
        result[tenant.key] = tuple(sorted(cells))
    return result


def _keep_group(
    group: str,
    cells: tuple[int, ...],
    count: int,
    taken_cells: set[int],
    cell_of_group: dict[str, int],
) -> None:
    """Assign a group its former cell, unless the node no longer has that cell or it is taken."""
    for cell in cells:
        if group not in cell_of_group and cell < count and cell not in taken_cells:
            cell_of_group[group] = cell
            taken_cells.add(cell)
