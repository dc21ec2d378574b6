"""One set of credentials for an API server, and the connections that use them. The only file that imports `kubernetes`.

That package supplies the configuration (kubeconfig or service account), the authentication with its
token refresh, and the TLS connection pool for watches and behind proxies; short requests go over
`kube.wire`. Its models are not used, because msgspec decodes a pod about twenty times faster.
The import takes two thirds of a second, so it is delayed until the first connection.
"""

from __future__ import annotations

import os
import ssl
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import HTTPError

from kube.errors import ServerError
from kube.wire import Endpoint, Wire

CONNECT_TIMEOUT_S = 15.0
READ_TIMEOUT_S = 60.0
AUTH_CACHE_S = 10.0
JSON = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Which API server to talk to.

    `kubeconfig` None (or absent inside a cluster) means the pod's service account, else KUBECONFIG.
    """

    kubeconfig: Path | None = None
    context: str | None = None
    pool_size: int = 64
    user_agent: str = "kaiweb"


@dataclass(slots=True)
class Link:
    """One set of credentials and the connection pools that use them.

    Parameters
    ----------
    wire : the connections for short requests; None behind a proxy, where `pool` carries these too
    prefix : the path of the server's URL, which comes before every request path
    generation : how often the credentials have been loaded, 1 for the first time
    """

    api: Any
    pool: Any
    wire: Wire | None
    prefix: str
    user_agent: str
    generation: int
    #: The authorization header.
    _auth: dict[str, str] = field(default_factory=dict)
    _auth_until: float = 0.0

    def headers(self, content_type: str) -> dict[str, str]:
        """Return the headers of a request; an empty content type is left out."""
        headers = {"Accept": JSON, "User-Agent": self.user_agent, **self._authorization()}
        if content_type:
            headers["Content-Type"] = content_type
        return headers

    def close(self) -> None:
        """Close all connections."""
        self.pool.close()
        if self.wire is not None:
            self.wire.close()

    def _authorization(self) -> dict[str, str]:
        """Return the authorization header, cached because the package takes 250 us to make it."""
        now = time.monotonic()
        if now >= self._auth_until:
            auth: dict[str, str] = {}
            self.api.update_params_for_auth(auth, [], ["BearerToken"], None, None, None)
            self._auth, self._auth_until = auth, now + AUTH_CACHE_S
        return self._auth


def load_link(target: Target, generation: int) -> Link:
    """Read the configuration and return its credentials with connections.

    Raises
    ------
    ServerError : there is no usable configuration
    """
    from kubernetes import client
    from kubernetes import config as untyped_config
    from kubernetes.config.config_exception import ConfigException

    config: Any = untyped_config

    configuration = client.Configuration()
    configuration.connection_pool_maxsize = target.pool_size
    configuration.retries = False
    try:
        if _is_inside_cluster(target):
            config.load_incluster_config(client_configuration=configuration)
        else:
            path = str(target.kubeconfig) if target.kubeconfig else None
            config.load_kube_config(
                config_file=path, context=target.context, client_configuration=configuration
            )
    except (ConfigException, OSError) as error:
        raise ServerError(
            f"no usable cluster configuration ({target.kubeconfig}): {error}"
        ) from error
    api = client.ApiClient(configuration)
    return Link(
        api=api,
        pool=api.rest_client.pool_manager.connection_from_url(configuration.host),
        wire=None if configuration.proxy else Wire(_endpoint(configuration), target.pool_size),
        prefix=urlsplit(configuration.host).path.rstrip("/"),
        user_agent=target.user_agent,
        generation=generation,
    )


def context_namespace(target: Target) -> str:
    """Return the namespace of the kubeconfig's context; `default` if it names none.

    Raises
    ------
    ServerError : there is no usable configuration
    """
    from kubernetes import config as untyped_config
    from kubernetes.config.config_exception import ConfigException

    config: Any = untyped_config
    path = str(target.kubeconfig) if target.kubeconfig else None
    try:
        _all, active = config.list_kube_config_contexts(config_file=path)
    except (ConfigException, OSError) as error:
        raise ServerError(
            f"no usable cluster configuration ({target.kubeconfig}): {error}"
        ) from error
    namespace: str = active["context"].get("namespace") or "default"
    return namespace


def _endpoint(configuration: Any) -> Endpoint:
    """Return the address and the TLS settings of a configuration."""
    address = urlsplit(configuration.host)
    tls = None
    if address.scheme == "https":
        tls = ssl.create_default_context(
            cafile=configuration.ssl_ca_cert, cadata=configuration.ca_cert_data
        )
        if not configuration.verify_ssl:
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        elif configuration.assert_hostname is False:
            tls.check_hostname = False
        if configuration.cert_file:
            tls.load_cert_chain(configuration.cert_file, configuration.key_file)
    return Endpoint(
        host=address.hostname or "",
        port=address.port or (443 if tls else 80),
        tls=tls,
        server_name=configuration.tls_server_name or "",
        connect_timeout_s=CONNECT_TIMEOUT_S,
    )


def _is_inside_cluster(target: Target) -> bool:
    """Return whether the pod's service account is used: not if there is a kubeconfig file."""
    has_file = target.kubeconfig is not None and target.kubeconfig.exists()
    return not has_file and "KUBERNETES_SERVICE_HOST" in os.environ


def exchange(
    link: Link,
    method: str,
    path: str,
    body: bytes | None,
    content_type: str,
    read_timeout_s: float | None,
) -> Any:
    """Send a request, a GET twice if need be; without `read_timeout_s` the body of the answer is read."""
    headers = link.headers(content_type)
    # The server may have closed a kept connection meanwhile; a GET can safely be sent again.
    attempts = 2 if method == "GET" else 1
    for attempt in range(1, attempts + 1):
        try:
            if link.wire is not None and read_timeout_s is None:
                return link.wire.exchange(method, link.prefix + path, headers, body, READ_TIMEOUT_S)
            return link.pool.urlopen(
                method,
                link.prefix + path,
                body=body,
                headers=headers,
                retries=False,
                redirect=False,
                timeout=urllib3.Timeout(
                    connect=CONNECT_TIMEOUT_S, read=read_timeout_s or READ_TIMEOUT_S
                ),
                preload_content=read_timeout_s is None,
            )
        except (HTTPError, OSError) as error:
            if attempt == attempts:
                raise ServerError(f"{method} {path}: no answer: {error}") from error
    raise AssertionError("unreachable: the last attempt returns or raises")
