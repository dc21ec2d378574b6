"""X.509 certificates that the product issues itself: an authority, and server certificates under it.

The admission webhooks and the embedded API server both serve TLS with a certificate of their own, and
both hand out the authority's certificate to their clients. When to renew is their decision.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kube.process.files import write_private

# A certificate is valid from this long before it was issued, because the clocks of its client and of its
# server may differ.
CLOCK_SKEW = timedelta(hours=1)

Key = ec.EllipticCurvePrivateKey


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: Key


def issue_authority(common_name: str, now: datetime, lifetime: timedelta) -> Issued:
    """Return a new self-signed authority that may sign server certificates."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _distinguished_name(common_name)
    certificate = (
        _builder(name, name, key, now, lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Issued(certificate, key)


def issue_server(
    authority: Issued, common_name: str, hosts: Sequence[str], now: datetime, lifetime: timedelta
) -> Issued:
    """Return a new server certificate for `hosts` (DNS names and IP addresses)."""
    key = ec.generate_private_key(ec.SECP256R1())
    authority_key_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(
        authority.key.public_key()
    )
    certificate = (
        _builder(
            _distinguished_name(common_name), authority.certificate.subject, key, now, lifetime
        )
        .add_extension(x509.SubjectAlternativeName(host_names(hosts)), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(authority_key_id, critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    return Issued(certificate, key)


def host_names(hosts: Sequence[str]) -> list[x509.GeneralName]:
    """Return DNS names and IP addresses in the form of a certificate."""
    return [_host_name(host) for host in hosts]


def is_valid(certificate: x509.Certificate, now: datetime, margin: timedelta) -> bool:
    """Return whether a certificate is valid now and for `margin` longer."""
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc - margin


def read_issued(certificate_file: Path, key_file: Path) -> Issued | None:
    """Return a saved certificate with its key; None if one is missing, damaged or of another pair."""
    try:
        certificate = x509.load_pem_x509_certificate(certificate_file.read_bytes())
        key = serialization.load_pem_private_key(key_file.read_bytes(), password=None)
    except (OSError, ValueError):
        return None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        return None
    return Issued(certificate, key) if certificate.public_key() == key.public_key() else None


def write_issued(issued: Issued, certificate_file: Path, key_file: Path) -> None:
    """Save a certificate with its key; the key is readable by its owner only."""
    key_pem = issued.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    write_private(key_file, key_pem)
    write_certificates(certificate_file, [issued.certificate])


def write_certificates(file: Path, certificates: Sequence[x509.Certificate]) -> None:
    """Save certificates as one PEM file; a file that is the same already is left alone."""
    pem = b"".join(c.public_bytes(serialization.Encoding.PEM) for c in certificates)
    if not file.exists() or file.read_bytes() != pem:
        write_private(file, pem)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: Key, now: datetime, lifetime: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _distinguished_name(common_name: str) -> x509.Name:
    # X.509 allows at most 64 characters in a common name; clients look at the host names only.
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:64])])


def _host_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
