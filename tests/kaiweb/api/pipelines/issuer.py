"""A CI system on 127.0.0.1 that signs ID tokens: discovery document and keys."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

AUDIENCE = "https://kaiweb.example.com"
PIPELINE = {
    "sub": "repo:acme/quotas:ref:refs/heads/main",
    "repository": "acme/quotas",
    "ref": "refs/heads/main",
    "ref_protected": True,
}


@dataclass(slots=True)
class Issuer:
    """What the CI system answers; tests change its fields to make it misbehave.

    Attributes
    ----------
    keys : id -> private key
    reads : how often its keys were read
    """

    url: str
    keys: dict[str, Any] = field(
        default_factory=lambda: {"k1": ec.generate_private_key(ec.SECP256R1())}
    )
    name: str = ""
    reads: int = 0

    def document(self) -> dict[str, Any]:
        return {"issuer": self.name or self.url, "jwks_uri": f"{self.url}/jwks"}

    def jwks(self) -> dict[str, Any]:
        self.reads += 1
        return {"keys": [_public(key) | {"kid": kid} for kid, key in self.keys.items()]}

    def id_token(self, *, kid: str = "k1", key: Any = None, **changed: Any) -> str:
        """Return the ID token of a pipeline; a changed claim that is None is left out."""
        now = int(time.time())
        claims = {"iss": self.url, "aud": AUDIENCE, "iat": now, "exp": now + 300, **PIPELINE}
        claims = {name: value for name, value in (claims | changed).items() if value is not None}
        signing = key or self.keys[kid]
        algorithm = "RS256" if isinstance(signing, rsa.RSAPrivateKey) else "ES256"
        return jwt.encode(claims, signing, algorithm=algorithm, headers={"kid": kid})


def _public(key: Any) -> dict[str, Any]:
    is_rsa = isinstance(key, rsa.RSAPrivateKey)
    algorithm = jwt.algorithms.RSAAlgorithm if is_rsa else jwt.algorithms.ECAlgorithm
    jwk: dict[str, Any] = json.loads(algorithm.to_jwk(key.public_key()))
    return jwk


@contextmanager
def running_issuer() -> Iterator[Issuer]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers = {"/.well-known/openid-configuration": issuer.document, "/jwks": issuer.jwks}
            answer = answers.get(self.path)
            raw = json.dumps(answer() if answer else {}).encode()
            self.send_response(200 if answer else 404)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer = Issuer(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
