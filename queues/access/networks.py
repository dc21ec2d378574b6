"""Networks from which a token may be used."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv6Address, ip_address, ip_network


def read_network(text: str) -> str:
    """Return a network as it is stored; a lone address is a network of one.

    Raises
    ------
    ValueError : it is no network, or has bits set beyond its length
    """
    return str(ip_network(text))


def may_be_used_from(networks: Sequence[str], address: str) -> bool:
    """Return whether an address is in one of the networks; without a network every address is."""
    if not networks:
        return True
    try:
        client = ip_address(address)
    except ValueError:
        return False
    if isinstance(client, IPv6Address) and client.ipv4_mapped is not None:
        client = client.ipv4_mapped
    return any(client in ip_network(network) for network in networks)
