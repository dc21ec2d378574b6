"""The search for devices: what it finds, and where it stops."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.cluster.device_inputs import (
    Device,
    DeviceClass,
    DeviceInputs,
    DeviceRequest,
    DeviceSlice,
)
from scheduler.core.cluster.inputs import NodeInput
from scheduler.core.cluster.journal import Journal
from scheduler.core.plugins.device_claims.allocator.allocator import Allocator, Refusal
from scheduler.core.plugins.device_claims.allocator.search import MAX_STEPS
from scheduler.core.plugins.device_claims.ledger import ClaimLedger
from tests.scheduler.claims.objects import (
    Cluster,
    claim,
    device,
    distinct,
    pool,
    request,
    same,
)


def _on_root(name: str, root: int) -> Device:
    return device(name, attributes={"resource.kubernetes.io/pcieRoot": root})


@settings(deadline=None)
@given(
    kinds=st.lists(st.sets(st.sampled_from("abcd"), min_size=1), min_size=1, max_size=4),
    taken=st.sets(st.sampled_from("abcd")),
)
def test_the_search_finds_an_assignment_whenever_one_exists(
    kinds: list[set[str]], taken: set[str]
) -> None:
    classes = tuple(DeviceClass(name=f"k{n}", selectors=(f"k{n}",)) for n in range(len(kinds)))
    devices = tuple(Device(name=name) for name in "abcd")
    inputs = DeviceInputs(
        classes=classes,
        slices=(DeviceSlice(driver="d", pool="p", node="n", devices=devices),),
        matching=frozenset(
            (f"k{n}", "d", "p", name) for n, names in enumerate(kinds) for name in names
        ),
    )
    ledger = ClaimLedger((), Journal())
    ledger.taken.update(dict.fromkeys((("d", "p", name) for name in taken), ("ns", "other")))
    wide_claim = claim(
        *(DeviceRequest(name=str(n), device_class=f"k{n}") for n in range(len(kinds)))
    )
    allocations = Allocator(inputs, [NodeInput(name="n")]).allocate([wide_claim], 0, ledger)
    assert isinstance(allocations, Refusal) != _exists([names - taken for names in kinds])
    if not isinstance(allocations, Refusal):
        chosen = [item.device for item in allocations[0].devices]
        assert len(set(chosen)) == len(kinds)
        assert not taken & set(chosen)


def _exists(wanted: list[set[str]], used: frozenset[str] = frozenset()) -> bool:
    if not wanted:
        return True
    return any(_exists(wanted[1:], used | {name}) for name in wanted[0] - used)


def test_claims_of_one_pod_make_room_for_each_other() -> None:
    roots = Cluster([pool(_on_root("a", 0), _on_root("b", 1), _on_root("c", 1))])
    pair = claim(
        request(count=2), name="pair", constraints=(same("resource.kubernetes.io/pcieRoot"),)
    )
    assert roots.names(claim(request(), name="single"), pair) == ["a", "b", "c"]
    assert roots.names(pair, claim(request(), name="single")) == ["b", "c", "a"]
    cluster = Cluster([pool(_on_root("x", 1), _on_root("a", 0), _on_root("b", 1))])
    assert cluster.names(claim(request(), name="single"), pair) == ["a", "x", "b"]


def test_a_search_that_takes_too_long_is_refused_with_the_reason() -> None:
    devices = [
        device(f"d{number:02}", attributes={f"k{bit}": number >> bit & 1 for bit in range(5)})
        for number in range(32)
    ]
    contradictory = claim(
        *(request(f"z{number}") for number in range(12)),
        constraints=(
            *(same(f"gpu.test/k{bit}", f"z{bit}", "z10") for bit in range(5)),
            *(distinct(f"gpu.test/k{bit}", f"z{bit + 5}", "z10") for bit in range(5)),
            *(distinct("gpu.test/k0", f"z{number}", "z11") for number in range(11)),
            same("gpu.test/none", "z11"),
        ),
    )
    assert Cluster([pool(*devices)]).ask(contradictory) == Refusal(
        f"the search for devices took more than {MAX_STEPS} steps", is_overrun=True
    )
