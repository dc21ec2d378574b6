"""Check that our webhooks are registered, reachable and trusted, and who else changes pods."""

from __future__ import annotations

import base64
import binascii
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509

from kaiweb.doctor.finding import ClusterContext, Finding, fault, note, warning
from kube.errors import NotFoundError
from queues.admission.install.registration import (
    MUTATING,
    POD_GROUP_VALIDATION,
    POD_MUTATION,
    POD_VALIDATION,
    QUEUE_VALIDATION,
    VALIDATING,
)

OURS = (
    (MUTATING, POD_MUTATION),
    (VALIDATING, POD_VALIDATION),
    (VALIDATING, QUEUE_VALIDATION),
    (VALIDATING, POD_GROUP_VALIDATION),
)
#: Certificates are renewed 30 days before their end, so one with only this left should have been renewed.
RENEWAL_OVERDUE = timedelta(days=14)
CONNECT_S = 5.0
RESTART_ADVICE = "restart the web process: it registers the webhooks at its start"


class UnresolvedError(OSError):
    """The name of a Service cannot be resolved, because we are not inside the cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a webhook listens."""

    host: str
    port: int


Handshake = Callable[[Address, str], datetime]


def check_webhooks(context: ClusterContext) -> Iterator[Finding]:
    """Examine our four configurations; each address and CA bundle is tried once."""
    tried: set[tuple[Address, str]] = set()
    for kind, name in OURS:
        try:
            body = context.gateway.get(kind, name, as_type=dict)
        except NotFoundError:
            yield warning(
                f"webhook {name}",
                "is not registered: invalid objects are accepted, and parts of GPUs are not prepared",
                RESTART_ADVICE,
            )
            continue
        for hook in body.get("webhooks", ()):
            bundle, address = _bundle(hook), address_of(hook["clientConfig"])
            if (address, bundle) not in tried:
                tried.add((address, bundle))
                yield from examine(name, address, bundle, context.now(), handshake)


def address_of(client: dict[str, Any]) -> Address:
    """Return the address in a webhook's clientConfig."""
    service = client.get("service")
    if service:
        host = f"{service['name']}.{service['namespace']}.svc"
        return Address(host=host, port=service.get("port", 443))
    parts = urlsplit(client["url"])
    return Address(host=parts.hostname or "", port=parts.port or 443)


def examine(
    name: str, address: Address, bundle: str, now: datetime, connect: Handshake
) -> Iterator[Finding]:
    """Examine one address and the authorities that are trusted for it."""
    subject = f"webhook {name} at {address.host}:{address.port}"
    try:
        authorities = x509.load_pem_x509_certificates(bundle.encode()) if bundle else []
    except ValueError as error:
        yield fault(subject, f"its CA bundle cannot be read: {error}", RESTART_ADVICE)
        return
    if authorities and all(
        item.not_valid_after_utc < now + RENEWAL_OVERDUE for item in authorities
    ):
        last = max(item.not_valid_after_utc for item in authorities)
        yield fault(subject, f"its authority ends on {last:%Y-%m-%d}", RESTART_ADVICE)
    try:
        end = connect(address, bundle)
    except UnresolvedError:
        yield note(
            subject,
            "is a Service, which cannot be reached from here",
            "run the doctor inside the cluster: kubectl exec deploy/kaiweb-web -- kaiweb doctor --cluster",
        )
    except (OSError, ValueError) as error:
        yield fault(
            subject,
            f"does not answer: {error}. Edits of queues and pods with a part of a GPU are refused",
            "look at the log of the web process",
        )
    else:
        if end < now + RENEWAL_OVERDUE:
            yield fault(subject, f"its certificate ends on {end:%Y-%m-%d}", RESTART_ADVICE)


def handshake(address: Address, bundle: str) -> datetime:
    """Connect as the API server does; return when the certificate ends.

    Raises
    ------
    UnresolvedError : the name of a Service is unknown here
    OSError : no connection, or a certificate that the bundle does not vouch for
    """
    trust = ssl.create_default_context(cadata=bundle or None)
    try:
        plain = socket.create_connection((address.host, address.port), timeout=CONNECT_S)
    except socket.gaierror as error:
        raise UnresolvedError(str(error)) from error
    with plain, trust.wrap_socket(plain, server_hostname=address.host) as link:
        certificate = x509.load_der_x509_certificate(link.getpeercert(binary_form=True) or b"")
    return certificate.not_valid_after_utc


def check_order(context: ClusterContext) -> Iterator[Finding]:
    """Report the other webhooks that change pods: those before ours that do not see what ours adds, and all after ours.

    The API server calls configurations in the order of their names. It calls one again after a later change if its
    reinvocationPolicy is IfNeeded, as that of ours is.
    """
    for item in context.all_of(MUTATING):
        name = item["metadata"]["name"]
        if name == POD_MUTATION:
            continue
        for hook in item.get("webhooks", ()):
            if not _asks_about_pods(hook):
                continue
            if name < POD_MUTATION and hook.get("reinvocationPolicy") != "IfNeeded":
                yield note(
                    f"webhook {name}",
                    f"{hook['name']} sees pods before ours has added volumes and variables for parts of GPUs",
                    "if it depends on them, set its reinvocationPolicy to IfNeeded",
                )
            elif name > POD_MUTATION:
                yield note(
                    f"webhook {name}",
                    f"{hook['name']} changes pods after ours, which is asked again",
                )


def _asks_about_pods(hook: dict[str, Any]) -> bool:
    return any(
        {"pods", "*", "*/*"} & set(rule.get("resources", ()))
        and {"", "*"} & set(rule.get("apiGroups", ()))
        for rule in hook.get("rules", ())
    )


def _bundle(hook: dict[str, Any]) -> str:
    text = hook["clientConfig"].get("caBundle", "")
    try:
        return base64.b64decode(text).decode()
    except (binascii.Error, UnicodeDecodeError):
        return "unreadable"  # no PEM, so `examine` reports it
