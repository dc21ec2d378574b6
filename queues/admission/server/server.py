"""The HTTPS server of the webhooks: an ASGI application on uvicorn in a thread of the web process.

It does not use Django, because pods wait for a review and it should take about a millisecond. A second thread renews
the certificates and keeps the registration in the cluster up to date, and retries until the cluster answers.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvicorn

from kube.errors import KubeError
from kube.gateway import Gateway
from queues.access.http_guard import ConnectionLimits, guarded
from queues.admission.install.certificates import Certificates, ensure_certificates
from queues.admission.install.registration import Registration, UrlTarget, install
from queues.admission.install.secret import ensure_shared_certificates
from queues.admission.review import BadReviewError
from queues.admission.routes import Routes

log = logging.getLogger(__name__)

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MAX_BODY = 8 * 1024 * 1024
CHECK_S = 6 * 3600.0
RETRY_S = 2.0
HANDSHAKE_S = 5.0
BODY_S = 10.0
#: The API server uses a few connections, and no other client is expected.
CONNECTIONS = ConnectionLimits(total=200, per_address=200)
PORT_FILE = "port"


def application(routes: Routes) -> Callable[[Message, Receive, Send], Awaitable[None]]:
    """Return the ASGI application: POST a review to one of the paths; GET /healthz."""

    async def app(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["path"] in ("/healthz", "/readyz"):
            await _reply(send, 200, b"ok", b"text/plain")
            return
        try:
            async with asyncio.timeout(BODY_S):
                body = await _body(receive)
        except TimeoutError:
            await _reply(send, 408, b"", b"text/plain")
            return
        if scope["method"] != "POST" or body is None:
            await _reply(send, 405 if body is not None else 413, b"", b"text/plain")
            return
        try:
            # Queue reviews read the cluster and must not block the event loop.
            answer = await asyncio.to_thread(routes.answer, scope["path"], body)
        except BadReviewError as error:
            await _reply(send, 400, str(error).encode(), b"text/plain")
        except KubeError as error:
            log.warning("review %s: %s", scope["path"], error)
            await _reply(send, 503, str(error).encode(), b"text/plain")
        else:
            is_known = answer is not None
            await _reply(send, 200 if is_known else 404, answer or b"", b"application/json")

    return app


class _Loop(asyncio.SelectorEventLoop):
    """An event loop with a short timeout for TLS handshakes, which uvicorn cannot configure."""

    async def create_server(self, *args: Any, **options: Any) -> asyncio.Server:
        """Create a server with the timeout."""
        return await super().create_server(*args, ssl_handshake_timeout=HANDSHAKE_S, **options)


@dataclass(slots=True)
class AdmissionServer:
    """Serves the webhooks and keeps them registered.

    Parameters
    ----------
    folder : for certificates and the port of the last run
    registration : with an empty bundle; a `UrlTarget` gets the real port
    secret_namespace : where replicas share their certificates; "" keeps them in the folder alone
    follow : starts to follow what the routes read, until the event is set
    """

    gateway: Gateway
    routes: Routes
    folder: Path
    registration: Registration
    host: str = "127.0.0.1"
    port: int = 0
    names: Sequence[str] = ("127.0.0.1", "localhost")
    secret_namespace: str = ""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    follow: Callable[[threading.Event], None] = lambda _stop: None
    _stop: threading.Event = field(default_factory=threading.Event)
    _server: uvicorn.Server | None = None
    _socket: socket.socket | None = None
    _context: ssl.SSLContext | None = None
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> int:
        """Start the server and its registration in threads; return the port."""
        certificates = self._certificates()
        self._socket = self._bound_socket()
        self.port = self._socket.getsockname()[1]
        (self.folder / PORT_FILE).write_text(str(self.port))
        config = uvicorn.Config(
            application(self.routes),
            # Separate limits, so that load on the web pages cannot starve reviews.
            http=guarded(CONNECTIONS),
            ssl_certfile=str(certificates.certificate),
            ssl_keyfile=str(certificates.key),
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
        )
        config.load()
        self._context = config.ssl
        self._server = uvicorn.Server(config)
        self.follow(self._stop)
        self._thread("admission", self._serve)
        self._thread("admission-upkeep", lambda: self._keep_registered(certificates))
        log.info("admission webhooks at https://%s:%d", self.host, self.port)
        return self.port

    def stop(self) -> None:
        """Stop the server; the registration stays for the next start."""
        self._stop.set()
        if self._server is not None:
            self._server.should_exit = True
        for thread in self._threads:
            thread.join(timeout=5)

    def register(self, bundle: bytes) -> None:
        """Register the address and the CA bundle in the cluster."""
        registration = replace(self.registration, bundle=bundle)
        if isinstance(registration.target, UrlTarget):
            base = f"https://{self.host}:{self.port}"
            registration = replace(registration, target=UrlTarget(base=base))
        install(self.gateway, registration)

    def _serve(self) -> None:
        assert self._server is not None
        assert self._socket is not None
        with asyncio.Runner(loop_factory=_Loop) as runner:
            runner.run(self._server.serve(sockets=[self._socket]))

    def _keep_registered(self, certificates: Certificates) -> None:
        bundle = certificates.bundle
        while not self._stop.is_set():
            try:
                self.register(bundle)
            except KubeError as error:
                log.info("cannot register the webhooks, will retry: %s", error)
                self._stop.wait(RETRY_S)
                continue
            if self._stop.wait(CHECK_S):
                return
            try:
                renewed = self._certificates()
            except KubeError as error:
                log.warning("cannot check the certificates, will retry: %s", error)
                continue
            bundle = renewed.bundle
            if renewed.is_new and self._context is not None:
                # New connections use the new certificate; the bundle already contains both authorities.
                self._context.load_cert_chain(renewed.certificate, renewed.key)

    def _certificates(self) -> Certificates:
        if not self.secret_namespace:
            return ensure_certificates(self.folder, self.names, self.now())
        return ensure_shared_certificates(
            self.gateway, self.secret_namespace, self.folder, self.names, self.now()
        )

    def _bound_socket(self) -> socket.socket:
        """Return a listening socket, on the port of the last run if it is free."""
        bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # asyncio sets this for sockets that it makes itself. Without it the body of an answer waits for the client's
        # delayed acknowledgement of the head: 40 ms for each review.
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for port in (self.port or self._last_port(), 0):
            try:
                bound.bind((self.host, port))
            except OSError:
                if self.port:
                    bound.close()
                    raise
                continue
            # Connections wait from now on, instead of being refused until uvicorn is ready.
            bound.listen()
            return bound
        raise OSError(f"no free port on {self.host}")

    def _last_port(self) -> int:
        try:
            return int((self.folder / PORT_FILE).read_text())
        except (OSError, ValueError):
            return 0

    def _thread(self, name: str, run: Callable[[], None]) -> None:
        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()


async def _body(receive: Receive) -> bytes | None:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part = message.get("body", b"")
        size += len(part)
        if size > MAX_BODY:
            return None
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


async def _reply(send: Send, status: int, body: bytes, kind: bytes) -> None:
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
