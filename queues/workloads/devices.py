"""Which GPU cells of a node a pod fills, for people to look at.

The cluster only says how many devices a pod has. To draw a node, every pod needs cells, and they must not
move while others come and go: a pod keeps the cells it once got, new ones take the lowest free. Pods with
part of a device share the cell of their GPU group, which the group's reservation pod holds.

Pure: no Django.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A pod on the node, as far as cells go.

    Attributes
    ----------
    whole : devices it has for itself, 0 for a pod with parts
    groups : GPU groups it shares
    reserves : the GPU group it holds for others; empty for ordinary pods
    cells : what it got before
    """

    key: str
    whole: int = 0
    groups: tuple[str, ...] = ()
    reserves: str = ""
    cells: tuple[int, ...] = ()


def assign(count: int, tenants: Sequence[Tenant]) -> dict[str, tuple[int, ...]]:
    """Give every tenant its cells.

    Parameters
    ----------
    count : devices of the node
    tenants : in the order of their age; it decides who keeps a cell that two claim

    Returns
    -------
    key -> cells; fewer than asked for if the node has not enough (a device was taken away)
    """
    taken: set[int] = set()
    cell_of_group: dict[str, int] = {}
    kept: dict[str, list[int]] = {}
    holders = [tenant for tenant in tenants if tenant.reserves]
    sharers = [tenant for tenant in tenants if tenant.groups]
    owners = [tenant for tenant in tenants if tenant.whole and not tenant.reserves]
    for tenant in holders:
        _keep_group(tenant.reserves, tenant.cells[:1], count, taken, cell_of_group)
    for tenant in sharers:
        for group, cell in zip(tenant.groups, tenant.cells, strict=False):
            _keep_group(group, (cell,), count, taken, cell_of_group)
    for tenant in owners:
        mine = [cell for cell in tenant.cells if cell < count and cell not in taken]
        kept[tenant.key] = mine[: tenant.whole]
        taken.update(kept[tenant.key])
    free = [cell for cell in range(count) if cell not in taken]
    for group in [*(t.reserves for t in holders), *(g for t in sharers for g in t.groups)]:
        if group not in cell_of_group and free:
            cell_of_group[group] = free.pop(0)
    result: dict[str, tuple[int, ...]] = {}
    for tenant in tenants:
        if tenant.reserves:
            groups: tuple[str, ...] = (tenant.reserves,)
        else:
            groups = tenant.groups
        # Cells go with groups by position, so a group without a cell ends the list.
        has_cell = takewhile(cell_of_group.__contains__, groups)
        result[tenant.key] = tuple(cell_of_group[group] for group in has_cell)
    for tenant in owners:
        mine = kept[tenant.key]
        while len(mine) < tenant.whole and free:
            mine.append(free.pop(0))
        result[tenant.key] = tuple(sorted(mine))
    return result


def _keep_group(
    group: str,
    cells: tuple[int, ...],
    count: int,
    taken: set[int],
    cell_of_group: dict[str, int],
) -> None:
    """Let a group keep the cell it had, unless it is gone or someone else's."""
    for cell in cells:
        if group not in cell_of_group and cell < count and cell not in taken:
            cell_of_group[group] = cell
            taken.add(cell)
