"""Which addresses webhooks may have, so that nobody reaches through kaiweb what only its own network may reach."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from kaiweb.notifications.models import MAX_URL

#: IPv4 addresses behind a translation (RFC 6052) are in the last 32 bits of these.
_TRANSLATED = ip_network("64:ff9b::/96")
SETTING = "KAIWEB_NOTIFY_NETWORKS"


class RefusedAddressError(OSError):
    """The address is private, and the setting does not allow it."""


def url_fault(url: str, allowed: Sequence[str]) -> str:
    """Return what is wrong with the URL of a webhook; empty if nothing is. A name is resolved at each delivery only."""
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError:
        return "expected a URL"
    if parts.scheme not in ("http", "https") or not host:
        return "expected a URL that begins with https:// or http://"
    if len(url) > MAX_URL or any(ord(letter) <= 0x20 or ord(letter) == 0x7F for letter in url):
        return f"expected at most {MAX_URL} characters, without spaces"
    if parts.username is not None or parts.password is not None:
        return "expected no user name and no password in the URL; sign with a secret instead"
    try:
        refuse_private(host, allowed)
    except RefusedAddressError as error:
        return str(error)
    return ""


def refuse_private(host: str, allowed: Sequence[str]) -> None:
    """Raise RefusedAddressError if a host is a private address and in none of the allowed networks; ignore names."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return
    plain = _plain(address)
    if any(plain in ip_network(network) for network in allowed):
        return
    if not plain.is_global or plain.is_multicast:
        raise RefusedAddressError(f"{host} is a private address; {SETTING} can allow its network")


def _plain(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address that an IPv6 address stands for, if it does."""
    if isinstance(address, IPv4Address):
        return address
    if address in _TRANSLATED:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address
