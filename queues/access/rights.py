"""The rights of users and tokens, for REST, the live socket and the shell.

Every user with a role may read, and a local account has at least the role of a viewer; a token needs the scope `read`,
or `admin`, which includes all others. Editors may
change queues strictly below the queue of their binding (everywhere if it names none); admins may do everything.
A token has at most the rights of its owner, narrowed by its scopes and subtree. With `KAIWEB_READING=granted` reading
needs a role too, and ends at its subtree (`kaiweb.items.visibility`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User

from queues.models import ApiToken, ExternalIdentity, Role

READ = "read"
QUEUES_WRITE = "queues:write"
WORKLOADS_WRITE = "workloads:write"
SIMULATE = "simulate"
APPLY_FORCE = "apply:force"
ADMIN = "admin"
READING_GRANTED = "granted"
SCOPES = (READ, QUEUES_WRITE, WORKLOADS_WRITE, SIMULATE, APPLY_FORCE, ADMIN)


@dataclass(frozen=True, slots=True)
class Grant:
    """A role below a queue; an empty subtree is the whole cluster."""

    role: str
    subtree: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """The effective rights of one caller."""

    username: str
    display_name: str
    kind: str
    grants: tuple[Grant, ...]
    scopes: frozenset[str] = frozenset(SCOPES)
    token_subtree: str = ""
    #: Whether reading is limited to the subtrees of the grants (the setting KAIWEB_READING).
    reads_only_granted: bool = False

    @property
    def is_admin(self) -> bool:
        has_role = any(grant.role == Role.ADMIN for grant in self.grants)
        return has_role and ADMIN in self.scopes and not self.token_subtree

    @property
    def may_read(self) -> bool:
        """Return whether this caller may read: whoever has a role; tokens also need the scope `read`."""
        return bool(self.grants) and bool(self.scopes & {READ, ADMIN})

    @property
    def may_simulate(self) -> bool:
        """Return whether this caller may run simulations: whoever has a role; tokens also need the scope `simulate`."""
        return bool(self.grants) and bool(self.scopes & {SIMULATE, ADMIN})

    @property
    def may_write_queues(self) -> bool:
        """Return whether this caller may change any queue."""
        return self._may_write(QUEUES_WRITE)

    @property
    def may_force(self) -> bool:
        """Return whether this caller may take over fields of other managers: an admin, whose token needs a scope for it.

        Unlike the scope `admin`, that scope goes with a subtree: whoever may edit the queue is asked apart from this.
        """
        has_role = any(grant.role == Role.ADMIN for grant in self.grants)
        return has_role and bool(self.scopes & {APPLY_FORCE, ADMIN})

    @property
    def may_write_workloads(self) -> bool:
        """Return whether this caller may act on any workload."""
        return self._may_write(WORKLOADS_WRITE)

    def may_edit(self, path: Sequence[str]) -> bool:
        """Return whether the queue may be changed.

        Parameters
        ----------
        path : the queue's own name, then its parent, up to the root
        """
        return self.may_write_queues and self._covers(path[1:])

    def may_place_under(self, path: Sequence[str]) -> bool:
        """Return whether a queue may be created below, or moved to, `path[0]`.

        An empty path is the top level, where only callers without a subtree may place queues.
        """
        return self.may_write_queues and self._covers(path)

    def may_act_on_work_in(self, path: Sequence[str]) -> bool:
        """Return whether the workloads of the queue `path[0]` may be acted upon."""
        return self.may_write_workloads and self._covers(path)

    def _may_write(self, scope: str) -> bool:
        has_role = any(grant.role in (Role.ADMIN, Role.EDITOR) for grant in self.grants)
        return has_role and bool(self.scopes & {scope, ADMIN})

    def _covers(self, ancestors: Sequence[str]) -> bool:
        if self.token_subtree and self.token_subtree not in ancestors:
            return False
        return any(
            grant.role == Role.ADMIN
            or (grant.role == Role.EDITOR and (not grant.subtree or grant.subtree in ancestors))
            for grant in self.grants
        )

    @property
    def fingerprint(self) -> str:
        """Return a short value that changes whenever the rights change."""
        parts = (
            self.username,
            sorted((grant.role, grant.subtree) for grant in self.grants),
            sorted(self.scopes),
            self.token_subtree,
            self.reads_only_granted,
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]

    @property
    def seen_subtrees(self) -> list[str] | None:
        """Return the subtrees that this caller may read; None for everything."""
        subtrees = {grant.subtree for grant in self.grants}
        if not self.reads_only_granted or ("" in subtrees and not self.token_subtree):
            return None
        return [self.token_subtree] if self.token_subtree else sorted(subtrees)

    def as_me(self) -> dict[str, Any]:
        """Return the body of `GET /api/v1/me`."""
        return {
            "username": self.username,
            "displayName": self.display_name,
            "kind": self.kind,
            "isAdmin": self.is_admin,
            "roles": [
                {"role": grant.role, "subtree": grant.subtree or None} for grant in self.grants
            ],
            "seesOnly": self.seen_subtrees,
            "rights": {
                "editQueues": self.may_write_queues,
                "actOnWorkloads": self.may_write_workloads,
                "adminQueues": self.is_admin,
                "simulate": self.may_simulate,
                "manageTokens": self.kind == "session",
            },
        }


def rights_of(user: AbstractBaseUser | AnonymousUser, token: ApiToken | None = None) -> Rights:
    """Return the rights of a logged-in user, narrowed by the token if there is one."""
    if not isinstance(user, User):
        raise TypeError(f"rights_of: expected a logged-in user, got {type(user).__name__}")
    bindings = user.role_bindings.order_by("role", "subtree")
    grants = [Grant(binding.role, binding.subtree) for binding in bindings]
    if user.is_superuser:
        grants.insert(0, Grant(Role.ADMIN))
    reads_only_granted = settings.KAIWEB_READING == READING_GRANTED
    if not (grants or reads_only_granted or ExternalIdentity.objects.filter(user=user).exists()):
        # A local account may read. One of the identity provider needs a role for anything.
        grants.append(Grant(Role.VIEWER))
    return Rights(
        username=user.get_username(),
        display_name=user.get_full_name() or user.get_username(),
        kind="token" if token else "session",
        grants=tuple(grants),
        scopes=frozenset(token.scopes) if token else frozenset(SCOPES),
        token_subtree=token.subtree if token else "",
        reads_only_granted=reads_only_granted,
    )
