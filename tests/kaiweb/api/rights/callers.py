"""The callers of the rights matrix, the places that a request is about, and what a row of its table states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from kube.resources import QUEUES
from queues.access import tokens
from queues.editing.tags import tag_of_body
from queues.models import ApiToken
from tests.fakes.gateway import FakeGateway
from tests.kaiweb.api.conftest import QUEUE_AT

# The editors of this table are bound to `science`, and the tokens are narrowed to it.
INSIDE, BORDER, OUTSIDE = "inside", "border", "outside"
PLACES = (INSIDE, BORDER, OUTSIDE)
EVERYWHERE = frozenset(PLACES)
NOWHERE: frozenset[str] = frozenset()
BELOW = frozenset({INSIDE})
IN_SUBTREE = frozenset({INSIDE, BORDER})

CALLERS = (
    "anonymous", "viewer", "editor", "admin",
    "read token", "queues token", "workloads token", "simulate token", "admin token",
)  # fmt: skip
#: Scopes of the tokens; all belong to the admin, and those with a scope to write are for `science` only.
SCOPES = {
    "read token": ["read"], "queues token": ["queues:write"],
    "workloads token": ["workloads:write"], "simulate token": ["simulate"],
    "admin token": ["admin"],
}  # fmt: skip
NARROWED = ("queues token", "workloads token")


def _may(**places: frozenset[str]) -> Mapping[str, frozenset[str]]:
    """Return caller -> places, from keyword arguments with `_` for a blank."""
    named = {name.replace("_", " "): where for name, where in places.items()}
    return {caller: named.get(caller, NOWHERE) for caller in CALLERS}


LOGGED_IN = _may(**{caller.replace(" ", "_"): EVERYWHERE for caller in CALLERS[1:]})
EVERYBODY = dict.fromkeys(CALLERS, EVERYWHERE)
READ = _may(viewer=EVERYWHERE, editor=EVERYWHERE, admin=EVERYWHERE, read_token=EVERYWHERE, admin_token=EVERYWHERE)  # fmt: skip
EDIT = _may(editor=BELOW, admin=EVERYWHERE, queues_token=BELOW, admin_token=EVERYWHERE)
PLACE = _may(editor=IN_SUBTREE, admin=EVERYWHERE, queues_token=IN_SUBTREE, admin_token=EVERYWHERE)
WORK = _may(editor=IN_SUBTREE, admin=EVERYWHERE, workloads_token=IN_SUBTREE, admin_token=EVERYWHERE)
NODE_WORK = _may(editor=EVERYWHERE, admin=EVERYWHERE, workloads_token=EVERYWHERE, admin_token=EVERYWHERE)  # fmt: skip
ACCESS = _may(editor=IN_SUBTREE, admin=EVERYWHERE, admin_token=EVERYWHERE)
DRAFT = _may(editor=EVERYWHERE, admin=EVERYWHERE, queues_token=EVERYWHERE, admin_token=EVERYWHERE)
SIMULATE = _may(viewer=EVERYWHERE, editor=EVERYWHERE, admin=EVERYWHERE, simulate_token=EVERYWHERE, admin_token=EVERYWHERE)  # fmt: skip
ADMIN = _may(admin=EVERYWHERE, admin_token=EVERYWHERE)
USE = _may(viewer=EVERYWHERE, editor=IN_SUBTREE, admin=EVERYWHERE, read_token=EVERYWHERE, admin_token=EVERYWHERE)  # fmt: skip
ADMIN_LOGIN = _may(admin=EVERYWHERE)
LOGIN = _may(viewer=EVERYWHERE, editor=EVERYWHERE, admin=EVERYWHERE)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What a request is about: the caller, the place, and the cluster."""

    user: User
    other: User
    place: str
    cluster: FakeGateway

    @property
    def queue(self) -> str:
        return QUEUE_AT[self.place]

    def tag(self) -> dict[str, str]:
        return {"If-Match": f'"{tag_of_body(self.cluster.raw(QUEUES, self.queue))}"'}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request: parameters of the path, query, body and headers."""

    path: Mapping[str, object] = field(default_factory=dict)
    query: str = ""
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """Who may call an operation, and how it is called.

    Attributes
    ----------
    ok : statuses that show that the call was allowed
    has_place : whether the answer depends on the place of a queue
    """

    allowed: Mapping[str, frozenset[str]]
    call: Callable[[World], Call] = lambda _world: Call()
    ok: tuple[int, ...] = (200, 201, 202, 204)

    @property
    def has_place(self) -> bool:
        return any(0 < len(places) < len(PLACES) for places in self.allowed.values())


def token_of(admin: User, caller: str) -> str:
    """Create the token of a caller of the table and return its secret."""
    subtree = "science" if caller in NARROWED else ""
    row, secret = tokens.create(
        user=admin, name=caller, scopes=SCOPES[caller], subtree=subtree, expires_at=None,
        now=timezone.now(),
    )  # fmt: skip
    assert isinstance(row, ApiToken)
    return secret
