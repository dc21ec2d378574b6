"""The parts of one running server, which every handler receives."""

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
class ServerParts:
    """Everything that a handler may need; `Server` builds it once."""

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
