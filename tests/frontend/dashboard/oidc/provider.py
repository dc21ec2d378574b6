"""An identity provider on 127.0.0.1: discovery, keys, authorization code with PKCE, tokens and user info."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT_ID, CLIENT_SECRET = "kaiweb", "a-secret"


@cache
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass(slots=True)
class Provider:
    """What the provider answers; tests change its fields to make it misbehave."""

    url: str
    claims: dict[str, Any]
    #: Claims of the ID token that differ from what they should be; None leaves one out.
    wrong: dict[str, Any] = field(default_factory=dict)
    signing_key: Any = None
    issuer_in_document: str = ""
    _requests: dict[str, dict[str, str]] = field(default_factory=dict)

    def authorize(self, address: str) -> str:
        """Answer the browser's request: the user agrees, and goes back with a code."""
        query = dict(parse_qsl(urlsplit(address).query))
        code = f"code-{len(self._requests)}"
        self._requests[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def document(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer_in_document or self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "userinfo_endpoint": f"{self.url}/userinfo",
        }

    def keys(self) -> dict[str, Any]:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key().public_key()))
        return {"keys": [{**public, "kid": "k1", "alg": "RS256", "use": "sig"}]}

    def token(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        request = self._requests.pop(form.get("code", ""), None)
        verifier = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(verifier).decode().rstrip("=")
        is_client = (form.get("client_id"), form.get("client_secret")) == (CLIENT_ID, CLIENT_SECRET)
        if (
            request is None
            or not is_client
            or request["code_challenge"] != challenge
            or request["code_challenge_method"] != "S256"
            or request["redirect_uri"] != form["redirect_uri"]
        ):
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        claims = {
            "iss": self.url, "aud": CLIENT_ID, "sub": self.claims["sub"],
            "iat": now, "exp": now + 300, "nonce": request["nonce"], **self.wrong,
        }  # fmt: skip
        claims = {name: value for name, value in claims.items() if value is not None}
        id_token = jwt.encode(
            claims, self.signing_key or key(), algorithm="RS256", headers={"kid": "k1"}
        )
        return 200, {"access_token": "access", "token_type": "Bearer", "id_token": id_token}


@contextmanager
def running_provider(**claims: Any) -> Iterator[Provider]:
    """Serve a provider whose user has these claims."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers = {
                "/.well-known/openid-configuration": provider.document,
                "/keys": provider.keys,
                "/userinfo": lambda: provider.claims,
            }
            answer = answers.get(self.path)
            self._send(200 if answer else 404, answer() if answer else {})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._send(
                *provider.token({name: values[0] for name, values in parse_qs(body).items()})
            )

        def _send(self, status: int, body: dict[str, Any]) -> None:
            raw = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider = Provider(f"http://127.0.0.1:{server.server_port}", {"sub": "s-1", **claims})
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
