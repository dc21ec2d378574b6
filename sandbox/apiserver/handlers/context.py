"""The parts of one running server, handed to every handler."""

from __future__ import annotations

from dataclasses import dataclass, field

from sandbox.apiserver.access.authn import Authenticator
from sandbox.apiserver.access.rbac import Authorizer
from sandbox.apiserver.handlers.paging import Snapshots
from sandbox.apiserver.lifecycle.deletion import Deleter
from sandbox.apiserver.lifecycle.writes import Writer
from sandbox.apiserver.model.resources import Registry
from sandbox.apiserver.schema.openapi import OpenApi
from sandbox.apiserver.storage.store import Store
from sandbox.apiserver.tables.render import Tables


@dataclass(slots=True, kw_only=True)
class Context:
    """Everything a handler may need; built once by `server.assemble`."""

    store: Store
    registry: Registry
    authenticator: Authenticator
    authorizer: Authorizer
    writer: Writer
    deleter: Deleter
    openapi: OpenApi
    tables: Tables
    snapshots: Snapshots = field(default_factory=Snapshots)
    bookmark_interval_s: float = 60.0
