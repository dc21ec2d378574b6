"""The shared certificate module: validity, host names, files."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature

from kube.certificates import (
    is_valid,
    issue_authority,
    issue_server,
    read_issued,
    write_issued,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
AUTHORITY = issue_authority("test authority", NOW, 10 * DAY)


def test_a_server_certificate_is_signed_by_its_authority_and_by_no_other() -> None:
    server = issue_server(AUTHORITY, "test", ["localhost"], NOW, DAY).certificate
    server.verify_directly_issued_by(AUTHORITY.certificate)
    other = issue_authority("test authority", NOW, 10 * DAY)
    with pytest.raises(InvalidSignature):
        server.verify_directly_issued_by(other.certificate)


def test_a_client_whose_clock_is_59_minutes_behind_accepts_a_new_certificate() -> None:
    server = issue_server(AUTHORITY, "test", ["localhost"], NOW, DAY).certificate
    for certificate in (server, AUTHORITY.certificate):
        assert is_valid(certificate, NOW - timedelta(minutes=59), timedelta())
        assert not is_valid(certificate, NOW - timedelta(minutes=61), timedelta())


def test_a_certificate_is_valid_until_its_lifetime_less_the_margin_is_over() -> None:
    certificate = issue_server(AUTHORITY, "test", ["localhost"], NOW, 2 * DAY).certificate
    assert is_valid(certificate, NOW + DAY - timedelta(seconds=1), DAY)
    assert not is_valid(certificate, NOW + DAY, DAY)


def test_hosts_become_dns_names_and_addresses() -> None:
    hosts = ["webhook.kai.svc", "127.0.0.1", "::1"]
    certificate = issue_server(AUTHORITY, "n" * 80, hosts, NOW, DAY).certificate
    stated = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert stated.get_values_for_type(x509.DNSName) == ["webhook.kai.svc"]
    assert [str(ip) for ip in stated.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]


def test_a_saved_pair_is_read_back_and_its_key_is_private(tmp_path: Path) -> None:
    files = tmp_path / "tls.crt", tmp_path / "tls.key"
    write_issued(AUTHORITY, *files)
    saved = read_issued(*files)
    assert saved is not None
    assert saved.certificate == AUTHORITY.certificate
    assert files[1].stat().st_mode & 0o777 == 0o600


def test_a_pair_that_is_missing_damaged_or_mixed_is_not_read(tmp_path: Path) -> None:
    files = tmp_path / "tls.crt", tmp_path / "tls.key"
    assert read_issued(*files) is None
    write_issued(issue_authority("other", NOW, DAY), *files)
    (tmp_path / "tls.crt").write_bytes(b"no certificate")
    assert read_issued(*files) is None
    write_issued(AUTHORITY, files[0], tmp_path / "authority.key")
    assert read_issued(*files) is None
