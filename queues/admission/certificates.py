"""The webhooks' own certificates: an authority of ours, a server certificate under it, both renewed in time.

The API server trusts the bundle in the webhook configuration and nothing else. A new authority is added to the
bundle before the old one is dropped, so a renewal never breaks calls in flight. Keys are readable by us only.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFE = timedelta(days=3650)
AUTHORITY_RENEWAL = timedelta(days=365)
SERVER_LIFE = timedelta(days=90)
SERVER_RENEWAL = timedelta(days=30)
# Clocks of API server and webhook differ a little.
SKEW = timedelta(hours=1)

Key = ec.EllipticCurvePrivateKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """Files of one webhook server.

    Attributes
    ----------
    bundle : PEM of every authority to trust, newest first
    is_new : something was made just now
    """

    certificate: Path
    key: Path
    bundle: bytes
    is_new: bool


def ensure_certificates(folder: Path, names: Sequence[str], now: datetime) -> Certificates:
    """Return valid certificates for `names`, making or renewing what is missing, old or for other names.

    Parameters
    ----------
    folder : where they are kept, made if missing
    names : DNS names and IP addresses of the server
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    authority, authority_key, made_authority = _authority(folder, now)
    certificate_file, key_file = folder / "tls.crt", folder / "tls.key"
    is_good = not made_authority and _is_good(certificate_file, key_file, authority, names, now)
    if not is_good:
        _make_server(certificate_file, key_file, (authority, authority_key), names, now)
    return Certificates(
        certificate=certificate_file,
        key=key_file,
        bundle=(folder / "bundle.crt").read_bytes(),
        is_new=not is_good,
    )


def _authority(folder: Path, now: datetime) -> tuple[x509.Certificate, Key, bool]:
    certificate_file, key_file = folder / "ca.crt", folder / "ca.key"
    known = _read(certificate_file)
    key = _read_key(key_file)
    is_pair = known is not None and key is not None and _matches(known, key)
    if known is not None and key is not None and is_pair and _lives(known, now, AUTHORITY_RENEWAL):
        _write_bundle(folder, known, now)
        return known, key, False
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kaiweb admission authority")])
    made = (
        _builder(name, name, key, now, AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    _write_secret(key_file, _key_pem(key))
    _write(certificate_file, made.public_bytes(serialization.Encoding.PEM))
    _write_bundle(folder, made, now)
    return made, key, True


def _make_server(
    certificate_file: Path,
    key_file: Path,
    authority: tuple[x509.Certificate, Key],
    names: Sequence[str],
    now: datetime,
) -> None:
    issuer, issuer_key = authority
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    made = (
        _builder(subject, issuer.subject, key, now, SERVER_LIFE)
        .add_extension(
            x509.SubjectAlternativeName([_general_name(n) for n in names]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
            critical=False,
        )
        .sign(issuer_key, hashes.SHA256())
    )
    _write_secret(key_file, _key_pem(key))
    _write(certificate_file, made.public_bytes(serialization.Encoding.PEM))


def _is_good(
    certificate_file: Path,
    key_file: Path,
    authority: x509.Certificate,
    names: Sequence[str],
    now: datetime,
) -> bool:
    certificate, key = _read(certificate_file), _read_key(key_file)
    if certificate is None or key is None or not _matches(certificate, key):
        return False
    if not _lives(certificate, now, SERVER_RENEWAL) or certificate.issuer != authority.subject:
        return False
    try:
        certificate.verify_directly_issued_by(authority)
    except Exception:
        return False
    stated = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return set(stated) == {_general_name(name) for name in names}


def _write_bundle(folder: Path, newest: x509.Certificate, now: datetime) -> None:
    """Keep older authorities that still live below the newest one."""
    file = folder / "bundle.crt"
    older = []
    if file.exists():
        try:
            older = x509.load_pem_x509_certificates(file.read_bytes())
        except ValueError:
            older = []
    kept = [newest, *(c for c in older if c != newest and _lives(c, now, timedelta()))]
    pem = b"".join(c.public_bytes(serialization.Encoding.PEM) for c in kept)
    if not file.exists() or file.read_bytes() != pem:
        _write(file, pem)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: Key, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + life)
    )


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


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _lives(certificate: x509.Certificate, now: datetime, margin: timedelta) -> bool:
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc - margin


def _matches(certificate: x509.Certificate, key: Key) -> bool:
    return certificate.public_key() == key.public_key()


def _read(file: Path) -> x509.Certificate | None:
    try:
        return x509.load_pem_x509_certificate(file.read_bytes())
    except (OSError, ValueError):
        return None


def _read_key(file: Path) -> Key | None:
    try:
        key = serialization.load_pem_private_key(file.read_bytes(), password=None)
    except (OSError, ValueError):
        return None
    return key if isinstance(key, ec.EllipticCurvePrivateKey) else None


def _key_pem(key: Key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write(file: Path, data: bytes) -> None:
    fresh = file.with_suffix(f"{file.suffix}.new")
    fresh.write_bytes(data)
    fresh.replace(file)


def _write_secret(file: Path, data: bytes) -> None:
    fresh = file.with_suffix(f"{file.suffix}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(data)
    fresh.replace(file)
