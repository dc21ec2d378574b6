"""Secrets of webhooks, and the signatures made with them, after the Standard Webhooks specification.

A secret is needed in plain text for each signature, so it is stored encrypted with a key that is derived from
`SECRET_KEY`, not hashed. No answer of REST has it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings

PREFIX = "whsec_"
SHORTEST, LONGEST = 24, 64
_PURPOSE = b"kaiweb.notifications.secret"


class LostSecretError(Exception):
    """The stored secret cannot be read: SECRET_KEY is another one than when it was set."""


def key_of(secret: str) -> bytes:
    """Return the key that a secret states.

    Raises
    ------
    ValueError : it is not `whsec_` and the Base64 of 24 to 64 bytes
    """
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(PREFIX) or not SHORTEST <= len(key) <= LONGEST:
        raise ValueError(
            f"expected {PREFIX} and the Base64 of {SHORTEST} to {LONGEST} random bytes"
        )
    return key


def encrypted(secret: str) -> str:
    """Return what is stored of a secret."""
    return _fernet().encrypt(secret.encode()).decode()


def decrypted(stored: str) -> str:
    """Return the secret of a stored value.

    Raises
    ------
    LostSecretError
    """
    try:
        return _fernet().decrypt(stored.encode()).decode()
    except InvalidToken as error:
        raise LostSecretError("the secret cannot be read any more; set it again") from error


def headers(message: str, sent_at_s: int, body: str, stored_secret: str) -> dict[str, str]:
    """Return the headers that name a message and, with a secret, prove who sent it and when.

    Parameters
    ----------
    sent_at_s : seconds since 1970

    Raises
    ------
    LostSecretError
    """
    lines = {"webhook-id": message, "webhook-timestamp": str(sent_at_s)}
    if stored_secret:
        signed = f"{message}.{sent_at_s}.{body}".encode()
        digest = hmac.digest(key_of(decrypted(stored_secret)), signed, "sha256")
        lines["webhook-signature"] = f"v1,{base64.b64encode(digest).decode()}"
    return lines


def _fernet() -> Fernet:
    digest = hmac.digest(settings.SECRET_KEY.encode(), _PURPOSE, hashlib.sha256)
    return Fernet(base64.urlsafe_b64encode(digest))
