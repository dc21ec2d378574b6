"""The certificates of the webhook server: an authority and a server certificate, renewed before they expire.

The API server trusts only the bundle in the webhook configuration. A new authority is added to the bundle
while the old one is still in it, so that calls during a renewal succeed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509

from kube.certificates import (
    Issued,
    host_names,
    is_valid,
    issue_authority,
    issue_server,
    read_issued,
    write_certificates,
    write_issued,
)
from kube.process.files import private_folder

AUTHORITY_LIFE = timedelta(days=3650)
AUTHORITY_RENEWAL = timedelta(days=365)
SERVER_LIFE = timedelta(days=90)
SERVER_RENEWAL = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """Files of one webhook server.

    Attributes
    ----------
    bundle : PEM of every authority to trust, newest first
    is_new : the server certificate was issued by this call
    """

    certificate: Path
    key: Path
    bundle: bytes
    is_new: bool


def ensure_certificates(folder: Path, names: Sequence[str], now: datetime) -> Certificates:
    """Return valid certificates for `names`; issue those that are missing, old or for other names.

    Parameters
    ----------
    folder : where they are kept, created if missing
    names : DNS names and IP addresses of the server
    """
    private_folder(folder)
    authority = _ensure_authority(folder, now)
    certificate_file, key_file = folder / "tls.crt", folder / "tls.key"
    server = read_issued(certificate_file, key_file)
    is_new = server is None or not _is_usable(server.certificate, authority, names, now)
    if is_new:
        server = issue_server(authority, names[0], names, now, SERVER_LIFE)
        write_issued(server, certificate_file, key_file)
    return Certificates(
        certificate=certificate_file,
        key=key_file,
        bundle=(folder / "bundle.crt").read_bytes(),
        is_new=is_new,
    )


def _ensure_authority(folder: Path, now: datetime) -> Issued:
    certificate_file, key_file = folder / "ca.crt", folder / "ca.key"
    authority = read_issued(certificate_file, key_file)
    if authority is None or not is_valid(authority.certificate, now, AUTHORITY_RENEWAL):
        authority = issue_authority("kaiweb admission authority", now, AUTHORITY_LIFE)
        write_issued(authority, certificate_file, key_file)
    _write_bundle(folder / "bundle.crt", authority.certificate, now)
    return authority


def _is_usable(
    certificate: x509.Certificate, authority: Issued, names: Sequence[str], now: datetime
) -> bool:
    if not is_valid(certificate, now, SERVER_RENEWAL):
        return False
    try:
        certificate.verify_directly_issued_by(authority.certificate)
    except Exception:
        # The library raises its own types, ValueError or TypeError, depending on what differs.
        return False
    hosts = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return set(hosts) == set(host_names(names))


def _write_bundle(file: Path, newest: x509.Certificate, now: datetime) -> None:
    """Write the newest authority and the older ones that are still valid."""
    try:
        older = x509.load_pem_x509_certificates(file.read_bytes())
    except (OSError, ValueError):
        older = []
    trusted = [c for c in older if c != newest and is_valid(c, now, timedelta())]
    write_certificates(file, [newest, *trusted])
