"""Which devices the allocator gives to claims, one feature of the API after the other."""

from __future__ import annotations

import pytest

from scheduler.core.cluster.constraints import Expression, NodeTerm, Operator, Taint
from scheduler.core.cluster.device_inputs import (
    ALL,
    ConfigSource,
    Device,
    DeviceClass,
    DeviceConfig,
    DeviceRequest,
    DeviceToleration,
    Version,
)
from scheduler.core.plugins.device_claims.allocator.allocator import NOT_ENOUGH, Refusal
from tests.scheduler.claims.objects import (
    Cluster,
    claim,
    device,
    distinct,
    pool,
    request,
    same,
)

ON_N0 = (NodeTerm(fields=(Expression("metadata.name", Operator.IN, ("n0",)),)),)


# --------------------------------------------------------------------------------------- constraints


def _on_root(name: str, root: int) -> Device:
    return device(name, attributes={"resource.kubernetes.io/pcieRoot": root})


def test_devices_of_a_matching_claim_share_the_attribute() -> None:
    roots = Cluster([pool(_on_root("a", 0), _on_root("b", 1), _on_root("c", 1))])
    pair_claim = claim(request(count=2), constraints=(same("resource.kubernetes.io/pcieRoot"),))
    assert roots.names(pair_claim) == ["b", "c"]
    assert roots.names(claim(request(count=2))) == ["a", "b"]
    three = claim(request(count=3), constraints=pair_claim.constraints)
    assert roots.ask(three) == NOT_ENOUGH


def test_a_constraint_concerns_the_requests_it_names() -> None:
    roots = Cluster([pool(_on_root("a", 0), _on_root("b", 1), _on_root("c", 0))])
    pair = same("resource.kubernetes.io/pcieRoot", "x", "z")
    three_devices = claim(request("x"), request("y"), request("z"), constraints=(pair,))
    assert roots.names(three_devices) == ["a", "b", "c"]


def test_devices_of_a_distinct_claim_differ_in_the_attribute_also_within_one_request() -> None:
    roots = Cluster(
        [pool(*(_on_root(name, root) for name, root in zip("abc", (0, 1, 0), strict=True)))]
    )
    constraints = (distinct("resource.kubernetes.io/pcieRoot"),)
    assert roots.names(claim(request(count=2), constraints=constraints)) == ["a", "b"]
    assert roots.names(claim(request(count=3), constraints=constraints)) is None
    assert roots.names(claim(request("x"), request("y"), constraints=constraints)) == ["a", "b"]


def test_a_device_without_the_attribute_breaks_a_constraint() -> None:
    bare = Cluster([pool(device("a"), device("b"))])
    for constraint in (same("gpu.test/model"), distinct("gpu.test/model")):
        assert bare.names(claim(request(), constraints=(constraint,))) is None


@pytest.mark.parametrize(
    ("left", "right", "match"),
    [(1, 1, True), (1, True, False), ("1.0.0", Version("1.0.0"), False), ("a", "a", True)],
)
def test_values_of_different_types_are_never_equal(
    left: int | str, right: int | str, match: bool
) -> None:
    mixed = Cluster(
        [pool(device("a", attributes={"k": left}), device("b", attributes={"k": right}))]
    )
    # The driver may leave out its own domain.
    names = mixed.names(claim(request(count=2), constraints=(same("gpu.test/k"),)))
    assert (names is not None) == match


# -------------------------------------------------------------------------------------- alternatives


def _alternatives(*counts: int) -> DeviceRequest:
    parts = tuple(request(f"r/s{index}", count, selectors=()) for index, count in enumerate(counts))
    return DeviceRequest(name="r", alternatives=parts)


def test_the_first_alternative_that_can_be_served_is_recorded_by_its_full_name() -> None:
    two = Cluster([pool(device("a"), device("b"))])
    [allocation] = two.give(claim(_alternatives(3, 2, 1)))
    assert [(item.device, item.request) for item in allocation.devices] == [
        ("a", "r/s1"),
        ("b", "r/s1"),
    ]


def test_a_later_request_makes_an_earlier_one_take_its_next_alternative() -> None:
    two = Cluster([pool(device("a"), device("b"))])
    [allocation] = two.give(claim(_alternatives(2, 1), request("other")))
    assert [item.request for item in allocation.devices] == ["r/s1", "other"]


def test_a_constraint_may_name_one_alternative() -> None:
    roots = Cluster([pool(_on_root("a", 0), _on_root("b", 1))])
    constraint = same("resource.kubernetes.io/pcieRoot", "r/s0", "other")
    [allocation] = roots.give(
        claim(_alternatives(1, 1), request("other"), constraints=(constraint,))
    )
    assert [item.request for item in allocation.devices] == ["r/s1", "other"]


# ------------------------------------------------------------------------------------- all and admin


def test_mode_all_wants_every_device_free() -> None:
    three = Cluster([pool(device("a"), device("b"), device("c"))])
    all_devices = claim(request(mode=ALL))
    assert three.names(all_devices) == ["a", "b", "c"]
    three.give(claim(request()))
    assert three.names(all_devices) is None


def test_mode_all_waits_for_a_pool_of_which_slices_are_missing() -> None:
    part = Cluster([pool(device("a"), pool_slices=2)])
    assert part.ask(claim(request(mode=ALL))) == Refusal(
        "request r asks for all devices, but resource pool gpu.test/p is currently being updated"
    )


def test_mode_all_without_any_device_is_refused() -> None:
    assert Cluster([]).ask(claim(request(mode=ALL))) == NOT_ENOUGH


def test_admin_access_uses_devices_in_use_and_holds_none() -> None:
    cluster = Cluster([pool(device("a"))])
    cluster.give(claim(request()))
    [watching] = cluster.give(claim(request(is_admin=True), name="monitor"))
    assert [(item.device, item.is_admin) for item in watching.devices] == [("a", True)]
    empty = Cluster([pool(device("a"))])
    empty.give(claim(request(is_admin=True)))
    assert empty.names(claim(request())) == ["a"]


def test_one_claim_has_a_device_once_even_with_admin_access() -> None:
    two = Cluster([pool(device("a"), device("b"))])
    assert two.names(claim(request("x"), request("y", is_admin=True))) == ["a", "b"]
    assert two.names(claim(request("y", is_admin=True), request("x"))) == ["a", "b"]


def test_a_claim_holds_at_most_32_devices() -> None:
    many = Cluster([pool(*(device(f"d{number:02}") for number in range(40)))])
    assert len(many.names(claim(request(count=32))) or ()) == 32
    assert many.ask(claim(request(count=33))) == Refusal(
        "claim ns/c: number of requested devices 33 exceeds the claim limit of 32"
    )


# --------------------------------------------------------------------------------------------- pools


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    old = pool(device("old"), generation=1)
    assert Cluster([old, pool(device("new"), generation=2)]).names(claim(request())) == ["new"]
    # Also where the newer generation serves other nodes only.
    assert (
        Cluster([old, pool(device("new"), generation=2, node="n1")]).names(claim(request())) is None
    )


def test_nothing_is_taken_from_an_incomplete_pool() -> None:
    first = pool(device("a"), pool_slices=2)
    assert Cluster([first]).names(claim(request())) is None
    elsewhere = pool(device("b"), pool_slices=2, node="n1")
    assert Cluster([first, elsewhere]).names(claim(request())) == ["a"]


def test_nothing_is_taken_from_a_pool_with_two_devices_of_one_name() -> None:
    twice = Cluster([pool(device("a")), pool(device("a"))])
    assert twice.ask(claim(request())) == Refusal("invalid resource pools were encountered")
    beside = [*twice.slices, pool(device("b"), pool="q")]
    assert Cluster(beside).names(claim(request())) == ["b"]


def _zone(value: str) -> tuple[NodeTerm, ...]:
    return (NodeTerm(labels=(Expression("zone", Operator.IN, (value,)),)),)


def test_an_allocation_is_usable_where_its_devices_are() -> None:
    [local] = Cluster([pool(device("a"))]).give(claim(request()))
    assert local.node_terms == ON_N0
    [everywhere] = Cluster([pool(device("a"), all_nodes=True)]).give(claim(request()))
    assert everywhere.node_terms is None
    zoned = [
        pool(device("a"), node_terms=_zone("east")),
        pool(device("b"), all_nodes=True, pool="q"),
    ]
    [east] = Cluster(zoned).give(claim(request(count=2)))
    assert east.node_terms == _zone("east")
    assert Cluster([pool(device("a"), node_terms=_zone("west"))]).names(claim(request())) is None
    [mixed] = Cluster([*zoned, pool(device("c"), pool="s")]).give(claim(request(count=3)))
    assert mixed.node_terms == ON_N0
    binding = pool(device("a", binds_to_node=True), all_nodes=True)
    assert Cluster([binding]).give(claim(request()))[0].node_terms == ON_N0


def test_devices_may_state_themselves_where_they_can_be_used() -> None:
    each = pool(
        device("far", node="n1"),
        device("zone", node_terms=_zone("east")),
        device("near", node="n0"),
        device("any", all_nodes=True),
        is_per_device=True,
    )
    assert Cluster([each]).names(claim(request(count=3))) == ["zone", "near", "any"]
    [allocation] = Cluster([each]).give(claim(request()))
    assert allocation.node_terms == _zone("east")


def test_devices_that_pods_have_to_wait_for_come_last_and_keep_their_conditions() -> None:
    slow = device("a", binding_conditions=("ready",), binding_failure_conditions=("broken",))
    free = Cluster([pool(slow, device("b"))])
    assert free.names(claim(request())) == ["b"]
    [allocation] = free.give(claim(request(count=2)))
    waiting = {item.device: item.binding_conditions for item in allocation.devices}
    assert waiting == {"b": (), "a": ("ready",)}
    assert allocation.devices[1].binding_failure_conditions == ("broken",)


# -------------------------------------------------------------------------------------------- taints


@pytest.mark.parametrize(
    ("toleration", "is_tolerated"),
    [
        (DeviceToleration(operator="Exists"), True),
        (DeviceToleration(key="broken", operator="Exists", effect="NoSchedule"), False),
        (DeviceToleration(key="broken", value="yes"), True),
        (DeviceToleration(key="broken", value="no"), False),
    ],
)
def test_a_tainted_device_is_for_requests_that_tolerate_it(
    toleration: DeviceToleration, is_tolerated: bool
) -> None:
    sick = Cluster([pool(device("a", taints=(Taint("broken", "yes", "NoExecute"),)))])
    assert sick.names(claim(request())) is None
    assert sick.names(claim(request(mode=ALL))) is None
    allowed = claim(request(tolerations=(toleration,)))
    assert sick.names(allowed) == (["a"] if is_tolerated else None)


def test_a_taint_without_effect_keeps_nobody_away_and_tolerations_are_recorded() -> None:
    toleration = DeviceToleration(key="broken", operator="Exists", seconds=30)
    noted = Cluster([pool(device("a", taints=(Taint("broken", "", "None"),)))])
    assert noted.names(claim(request())) == ["a"]
    [allocation] = noted.give(claim(request(tolerations=(toleration,))))
    assert allocation.devices[0].tolerations == (toleration,)


# ------------------------------------------------------------------------------------------ settings


def test_settings_of_class_and_claim_go_into_the_allocation() -> None:
    sharing = DeviceClass(name="gpu", settings=({"driver": "gpu.test", "parameters": {"mps": 1}},))
    two = Cluster([pool(device("a"), device("b"))], classes=[sharing])
    time_slicing = {"driver": "gpu.test", "parameters": {"interval": "Long"}}
    wide_claim = claim(
        request("x"),
        request("y"),
        configs=(
            DeviceConfig(settings=time_slicing, requests=("y", "x")),
            DeviceConfig(settings={"driver": "gpu.test", "parameters": {}}),
        ),
    )
    [allocation] = two.give(wide_claim)
    assert allocation.configs == (
        DeviceConfig(settings=sharing.settings[0], requests=("x", "y"), source=ConfigSource.CLASS),
        DeviceConfig(settings=time_slicing, requests=("y", "x")),
        DeviceConfig(settings={"driver": "gpu.test", "parameters": {}}),
    )


def test_settings_of_an_alternative_come_only_with_it() -> None:
    configs = tuple(
        DeviceConfig(settings={"driver": name}, requests=(name,)) for name in ("r/s0", "r/s1", "r")
    )
    [allocation] = Cluster([pool(device("a"))]).give(claim(_alternatives(2, 1), configs=configs))
    assert [config.requests for config in allocation.configs] == [("r/s1",), ("r",)]
