"""Shared devices: partitions that draw from the counters of one card, and claims that divide the capacity of one device."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from scheduler.core.cluster.device_inputs import (
    ALL,
    CounterSet,
    Device,
    DeviceCapacity,
)
from scheduler.core.plugins.device_claims.allocator.allocator import NOT_ENOUGH, Refusal
from tests.scheduler.claims.objects import (
    Cluster,
    claim,
    device,
    distinct,
    gib,
    pool,
    request,
)


def _partitions() -> Cluster:
    """Return one card of 40 GiB that can be used whole, or as four partitions of 10 GiB."""

    def drawing(name: str, amount: int) -> Device:
        return device(
            name, draws=(CounterSet(name="card", counters=(("memory", Fraction(amount)),)),)
        )

    total = CounterSet(name="card", counters=(("memory", Fraction(40)),))
    parts = (drawing(f"part{number}", 10) for number in range(4))
    return Cluster(
        [
            pool(drawing("whole", 40), *parts, pool_slices=2),
            pool(counter_sets=(total,), pool_slices=2),
        ]
    )


def test_partitions_of_a_device_share_its_counters() -> None:
    card = _partitions()
    assert card.names(claim(request())) == ["whole"]
    assert card.names(claim(request(count=2))) == ["part0", "part1"]
    assert card.names(claim(request(count=5))) is None
    card.give(claim(request(count=2)))
    assert card.names(claim(request(count=2))) == ["part2", "part3"]
    card.give(claim(request()))
    assert card.names(claim(request(count=2))) is None
    whole = _partitions()
    whole.give(claim(request()))
    assert whole.names(claim(request())) is None


def test_what_a_refused_device_would_draw_stays_free() -> None:
    card = _partitions()
    colored = replace(
        card.slices[0],
        devices=tuple(
            replace(item, attributes={"k": item.name == "part3"}) for item in card.slices[0].devices
        ),
    )
    pair_claim = claim(request("x"), request("y"), constraints=(distinct("gpu.test/k"),))
    assert Cluster([colored, card.slices[1]]).names(pair_claim) == ["part0", "part3"]


def test_a_pool_whose_devices_draw_from_unknown_counters_is_invalid() -> None:
    drawing = device("a", draws=(CounterSet(name="gone", counters=(("memory", Fraction(1)),)),))
    assert Cluster([pool(drawing)]).ask(claim(request())) == Refusal(
        "invalid resource pools were encountered"
    )


def test_admin_access_draws_no_counters() -> None:
    card = _partitions()
    card.give(claim(request()))
    assert len(card.names(claim(request(mode=ALL, is_admin=True))) or ()) == 5


def _nic(**policy: object) -> Cluster:
    capacity = DeviceCapacity(value=Fraction(10), **policy)  # type: ignore[arg-type]
    return Cluster([pool(device("nic", capacity={"bandwidth": capacity}, is_shareable=True))])


def _bandwidth(amount: int) -> tuple[tuple[str, Fraction], ...]:
    return (("bandwidth", Fraction(amount)),)


def test_a_shareable_device_is_given_out_until_its_capacity_is_used_up() -> None:
    nic = _nic()
    [first] = nic.give(claim(request(capacity=_bandwidth(6)), name="x"))
    [second] = nic.give(claim(request(capacity=_bandwidth(4)), name="y"))
    assert [item.consumed for item in (*first.devices, *second.devices)] == [
        _bandwidth(6),
        _bandwidth(4),
    ]
    shares = {first.devices[0].share, second.devices[0].share}
    assert len(shares) == 2
    assert "" not in shares
    assert nic.names(claim(request(capacity=_bandwidth(1)))) is None
    assert _nic().names(claim(request(count=2, capacity=_bandwidth(5)))) == ["nic", "nic"]


def test_a_request_without_amounts_takes_the_default_or_everything() -> None:
    assert _nic().give(claim(request()))[0].devices[0].consumed == _bandwidth(10)
    default = _nic(default=Fraction(2), minimum=Fraction(1))
    assert default.give(claim(request()))[0].devices[0].consumed == _bandwidth(2)


@pytest.mark.parametrize(("requested", "consumed"), [(1, 2), (3, 4), (4, 4), (5, 6), (7, None)])
def test_amounts_are_rounded_up_to_the_steps_of_the_device(
    requested: int, consumed: int | None
) -> None:
    stepped = _nic(minimum=Fraction(2), step=Fraction(2), maximum=Fraction(6))
    allocations = stepped.ask(claim(request(capacity=_bandwidth(requested))))
    if consumed is None:
        assert allocations == NOT_ENOUGH
    else:
        assert not isinstance(allocations, Refusal)
        assert allocations[0].devices[0].consumed == _bandwidth(consumed)


def test_amounts_are_rounded_up_to_the_values_that_the_device_allows() -> None:
    valued = _nic(valid_values=(Fraction(1), Fraction(5)), default=Fraction(1))
    assert valued.give(claim(request(capacity=_bandwidth(3))))[0].devices[0].consumed == _bandwidth(
        5
    )
    assert valued.names(claim(request(capacity=_bandwidth(6)))) is None


def test_a_requested_capacity_is_required_of_devices_that_are_not_shareable_too() -> None:
    cards = Cluster(
        [
            pool(
                device("none"),
                device("small", capacity={"m": gib(1)}),
                device("big", capacity={"m": gib(4)}),
            )
        ]
    )
    memory_claim = claim(request(capacity=(("m", Fraction(2)),)))
    [allocation] = cards.give(memory_claim)
    assert [(item.device, item.share, item.consumed) for item in allocation.devices] == [
        ("big", "", ())
    ]
