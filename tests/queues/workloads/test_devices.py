"""GPU cells: stable, never given twice, shared by GPU group."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from queues.workloads.devices import Tenant, assign


def test_new_pods_take_the_lowest_free_cells() -> None:
    cells = assign(8, [Tenant(key="a", whole=2), Tenant(key="b", whole=1)])
    assert cells == {"a": (0, 1), "b": (2,)}


def test_a_pod_keeps_its_cells_when_others_leave() -> None:
    cells = assign(8, [Tenant(key="b", whole=1, cells=(2,)), Tenant(key="c", whole=2)])
    assert cells == {"b": (2,), "c": (0, 1)}


def test_parts_share_the_cell_of_their_group_with_its_holder() -> None:
    cells = assign(
        4,
        [
            Tenant(key="res", reserves="g1"),
            Tenant(key="x", groups=("g1",)),
            Tenant(key="y", groups=("g1", "g2")),
            Tenant(key="w", whole=1),
        ],
    )
    assert cells == {"res": (0,), "x": (0,), "y": (0, 1), "w": (2,)}


def test_a_group_keeps_its_cell_when_its_holder_is_seen_late() -> None:
    cells = assign(
        4, [Tenant(key="x", groups=("g1",), cells=(3,)), Tenant(key="res", reserves="g1")]
    )
    assert cells == {"x": (3,), "res": (3,)}


def test_too_few_cells_give_what_there_is() -> None:
    assert assign(1, [Tenant(key="a", whole=2)]) == {"a": (0,)}
    assert assign(0, [Tenant(key="a", whole=1), Tenant(key="x", groups=("g",))]) == {
        "a": (),
        "x": (),
    }


def test_a_pod_without_devices_has_no_cells() -> None:
    assert assign(8, [Tenant(key="cpu")]) == {"cpu": ()}


@settings(max_examples=300, deadline=None)
@given(
    st.integers(0, 8),
    st.lists(
        st.builds(
            dict, whole=st.integers(0, 3), groups=st.lists(st.sampled_from("xyz"), max_size=2, unique=True),
            cells=st.lists(st.integers(0, 9), max_size=3, unique=True), holds=st.booleans(),
        ),
        max_size=6,
    ),
)  # fmt: skip
def test_no_cell_is_given_to_two_owners_or_groups(count: int, drawn: list[dict[str, Any]]) -> None:
    tenants = []
    for number, workload in enumerate(drawn):
        groups = tuple(workload["groups"])
        holds = bool(workload["holds"] and groups)
        tenants.append(
            Tenant(
                key=str(number),
                whole=0 if groups else int(workload["whole"]),
                groups=() if holds else groups,
                reserves=groups[0] if holds else "",
                cells=tuple(workload["cells"]),
            )
        )
    cells = assign(count, tenants)
    owner: dict[int, str] = {}
    for tenant in tenants:
        mine = cells[tenant.key]
        assert all(0 <= cell < count for cell in mine)
        names = [tenant.reserves] if tenant.reserves else tenant.groups or [tenant.key]
        if tenant.whole:
            names = [tenant.key] * len(mine)
            assert len(set(mine)) == len(mine) <= tenant.whole
        if len(mine) == len(names):
            for cell, name in zip(mine, names, strict=True):
                assert owner.setdefault(cell, name) == name
    expected = {t.key: t.whole or len(t.groups) or bool(t.reserves) for t in tenants}
    if all(len(cells[key]) == number for key, number in expected.items()):
        again = assign(count, [replace(t, cells=cells[t.key]) for t in tenants])
        assert again == cells
