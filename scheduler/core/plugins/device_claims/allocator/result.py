"""The allocation of a claim: its devices, the settings for their drivers, the nodes that may use it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from uuid import NAMESPACE_OID, uuid5

from scheduler.core.cluster.constraints import Expression, NodeTerm, Operator
from scheduler.core.cluster.device_inputs import (
    AllocatedDevice,
    ClaimAllocation,
    ConfigSource,
    DeviceClaim,
    DeviceClass,
    DeviceConfig,
    DeviceRequest,
)
from scheduler.core.plugins.device_claims.allocator.offers import Offers
from scheduler.core.plugins.device_claims.allocator.search import Pick


def allocation_of(
    claim: DeviceClaim, picks: Sequence[Pick], node: str, offers: Offers
) -> ClaimAllocation:
    """Return what a claim gets on a node.

    Parameters
    ----------
    picks : its devices, in the order of its requests
    """
    requests = list({pick.request.name: pick.request for pick in picks}.values())
    return ClaimAllocation(
        claim=claim.name,
        namespace=claim.namespace,
        devices=tuple(_device(claim, pick, position) for position, pick in enumerate(picks)),
        node_terms=_node_terms(picks, node),
        configs=(*_class_configs(requests, offers), *_claim_configs(claim, requests)),
        requests=claim.requests if claim.is_extended_resource else (),
    )


def _device(claim: DeviceClaim, pick: Pick, position: int) -> AllocatedDevice:
    driver, pool, device = pick.candidate.id
    share = ""
    if pick.candidate.device.is_shareable:
        # Made from the claim and the device, not drawn at random, so that a replayed cycle gives the same id.
        owner = claim.uid or f"{claim.namespace}/{claim.name}"
        share = str(uuid5(NAMESPACE_OID, f"{owner}/{driver}/{pool}/{device}/{position}"))
    return AllocatedDevice(
        driver=driver,
        pool=pool,
        device=device,
        request=pick.request.name,
        is_admin=pick.request.is_admin,
        tolerations=pick.request.tolerations,
        share=share,
        consumed=pick.consumed if share else (),
        binding_conditions=pick.candidate.device.binding_conditions,
        binding_failure_conditions=pick.candidate.device.binding_failure_conditions,
    )


def _node_terms(picks: Iterable[Pick], node: str) -> tuple[NodeTerm, ...] | None:
    """Return the nodes that can use all devices: the one node if any device is local to it."""
    labels: dict[Expression, None] = {}
    fields: dict[Expression, None] = {}
    for pick in picks:
        if pick.candidate.node or pick.candidate.device.binds_to_node:
            return (NodeTerm(fields=(Expression("metadata.name", Operator.IN, (node,)),)),)
        # The node selector of a slice or device has one term, by the rules of the API.
        for term in (pick.candidate.node_terms or ())[:1]:
            labels.update(dict.fromkeys(term.labels))
            fields.update(dict.fromkeys(term.fields))
    if not labels and not fields:
        return None
    return (NodeTerm(labels=tuple(labels), fields=tuple(fields)),)


def _class_configs(requests: Iterable[DeviceRequest], offers: Offers) -> list[DeviceConfig]:
    """Return the settings of the classes, each class once with all requests for it."""
    names: dict[str, list[str]] = {}  # of the requests, by device class
    for request in requests:
        names.setdefault(request.device_class, []).append(request.name)
    classes = [(offers.device_class(name), request_names) for name, request_names in names.items()]
    return [
        DeviceConfig(settings=settings, requests=tuple(request_names), source=ConfigSource.CLASS)
        for device_class, request_names in classes
        if isinstance(device_class, DeviceClass)
        for settings in device_class.settings
    ]


def _claim_configs(claim: DeviceClaim, requests: Iterable[DeviceRequest]) -> list[DeviceConfig]:
    """Return the settings of the claim that concern one of these requests, or all requests."""
    names = {request.name for request in requests}
    # Settings may name an alternative (`request/alternative`) or its request.
    names |= {name.partition("/")[0] for name in names}
    return [
        replace(config, source=ConfigSource.CLAIM)
        for config in claim.configs
        if not config.requests or not names.isdisjoint(config.requests)
    ]
