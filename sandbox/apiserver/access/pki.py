"""A certificate authority of our own, the server's certificate, and the kubeconfig that trusts it.

kubectl sends no token over plain http, so even a server on loopback must speak TLS. The CA is made
once per home directory and kept; the serving certificate is renewed when a month is left.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import secrets
from base64 import b64encode
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = dt.timedelta(days=3650)
_RENEW_BEFORE = dt.timedelta(days=30)
_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_ADDRESSES = ("127.0.0.1", "::1", "10.96.0.1")


class Pki:
    """The files below `<home>/pki`: ca.crt, ca.key, server.crt, server.key."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "pki"
        self.ca_file = self._folder / "ca.crt"
        self.cert_file = self._folder / "server.crt"
        self.key_file = self._folder / "server.key"

    def ensure(self, now: dt.datetime) -> None:
        """Make whatever is missing or about to expire."""
        self._folder.mkdir(parents=True, exist_ok=True)
        ca_key_file = self._folder / "ca.key"
        if not self.ca_file.exists() or not ca_key_file.exists():
            key = ec.generate_private_key(ec.SECP256R1())
            name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kaiweb-sandbox-ca")])
            builder = _certificate(name, name, key.public_key(), now).add_extension(
                x509.BasicConstraints(ca=True, path_length=0), critical=True
            )
            builder = builder.add_extension(_key_usage(signs_certificates=True), critical=True)
            _write_private(ca_key_file, key)
            self.ca_file.write_bytes(_pem(builder.sign(key, hashes.SHA256())))
            self.cert_file.unlink(missing_ok=True)
        if not self._is_fresh(now):
            self._issue(ca_key_file, now)

    def _is_fresh(self, now: dt.datetime) -> bool:
        if not self.cert_file.exists() or not self.key_file.exists():
            return False
        certificate = x509.load_pem_x509_certificate(self.cert_file.read_bytes())
        return certificate.not_valid_after_utc > now + _RENEW_BEFORE

    def _issue(self, ca_key_file: Path, now: dt.datetime) -> None:
        authority = x509.load_pem_x509_certificate(self.ca_file.read_bytes())
        ca_key = serialization.load_pem_private_key(ca_key_file.read_bytes(), password=None)
        assert isinstance(ca_key, ec.EllipticCurvePrivateKey)
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kaiweb-sandbox")])
        alternatives: list[x509.GeneralName] = [x509.DNSName(host) for host in _NAMES]
        alternatives += [x509.IPAddress(ipaddress.ip_address(text)) for text in _ADDRESSES]
        builder = (
            _certificate(name, authority.subject, key.public_key(), now)
            .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()),
                critical=False,
            )
        )
        _write_private(self.key_file, key)
        self.cert_file.write_bytes(_pem(builder.sign(ca_key, hashes.SHA256())))


def write_kubeconfig(path: Path, *, server: str, ca_file: Path, token: str, user: str) -> None:
    """Write a kubeconfig that stands alone: CA and token inside, readable by its owner only."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "kaiweb-sandbox",
                "cluster": {
                    "server": server,
                    "certificate-authority-data": b64encode(ca_file.read_bytes()).decode(),
                },
            }
        ],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [
            {"name": "kaiweb-sandbox", "context": {"cluster": "kaiweb-sandbox", "user": user}}
        ],
        "current-context": "kaiweb-sandbox",
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config, sort_keys=False))


def new_token() -> str:
    return secrets.token_urlsafe(24)


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: dt.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
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


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _write_private(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
