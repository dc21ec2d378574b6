"""Rules by which an administrator taints devices: each has the effect of a taint in the slice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kube.objects import devices as api
from scheduler.core.cluster.constraints import Taint
from scheduler.core.cluster.device_inputs import Device, DeviceClass, DeviceSlice
from scheduler.load.selectors import Match
from scheduler.load.slices import cel


@dataclass(frozen=True, slots=True)
class TaintRule:
    """A taint for the devices that meet every condition of a rule; an empty text is no condition.

    Attributes
    ----------
    selects : False: the rule has no selector and so taints no device
    """

    taint: Taint
    selects: bool
    driver: str
    pool: str
    device: str
    device_class: str
    selectors: tuple[str, ...]


def taint_rule(item: api.DeviceTaintRule) -> TaintRule:
    """Read a rule."""
    stated = item.spec.device_selector
    selector = stated or api.DeviceTaintSelector()
    taint = item.spec.taint
    return TaintRule(
        taint=Taint(taint.key, taint.value, taint.effect),
        selects=stated is not None,
        driver=selector.driver,
        pool=selector.pool,
        device=selector.device,
        device_class=selector.device_class_name,
        selectors=tuple(cel(selector.selectors)),
    )


def with_taints(
    slices: Sequence[DeviceSlice],
    rules: Sequence[TaintRule],
    classes: Iterable[DeviceClass],
    matching: frozenset[Match] | None,
) -> Iterator[DeviceSlice]:
    """Yield slices with the taints of the rules added to their devices.

    Parameters
    ----------
    matching : (CEL text, driver, pool, device) for each device that a selector matches; None if there are
        no selectors at all
    """
    selectors_of = {item.name: item.selectors for item in classes}
    for device_slice in slices:
        own_rules = [
            (rule, (*selectors_of.get(rule.device_class, ()), *rule.selectors))
            for rule in rules
            if rule.selects
            and rule.driver in ("", device_slice.driver)
            and rule.pool in ("", device_slice.pool)
            and (not rule.device_class or rule.device_class in selectors_of)
        ]
        if not own_rules:
            yield device_slice
            continue
        tainted = []
        for device in device_slice.devices:
            identity = (device_slice.driver, device_slice.pool, device.name)
            taints = [
                rule.taint
                for rule, expressions in own_rules
                if rule.device in ("", device.name)
                and all((text, *identity) in (matching or ()) for text in expressions)
            ]
            tainted.append(_with_more_taints(device, taints))
        yield replace(device_slice, devices=tuple(tainted))


def _with_more_taints(device: Device, taints: Sequence[Taint]) -> Device:
    return replace(device, taints=(*device.taints, *taints)) if taints else device
