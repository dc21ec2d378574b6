"""Users who log in elsewhere: find or create the user, and make the role bindings agree with the groups.

A user is known by issuer and subject, never by name or e-mail, which people can often choose themselves. Bindings that
an admin has made stay; those that groups gave are replaced at each log-in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from queues.access.rights import Grant, Rights, rights_of
from queues.editing import accounts
from queues.editing.write_requests import WriteRequest
from queues.models import ExternalIdentity

EVERYBODY = "*"
NAME_LENGTH = 150

#: (group, role, subtree); an empty subtree is the whole cluster.
RoleRule = tuple[str, str, str]


class SignInError(Exception):
    """The user is known elsewhere, but kaiweb does not let them in; the message is for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalUser:
    """What another system says about a user who has logged in there.

    Attributes
    ----------
    issuer, subject : what the user is known by
    username : the name of a new account
    reason : why roles change, for the audit log
    """

    issuer: str
    subject: str
    username: str
    display_name: str
    groups: frozenset[str]
    reason: str


def grants_of(groups: Collection[str], rules: Iterable[RoleRule]) -> frozenset[Grant]:
    """Return what the rules give to a member of the groups."""
    return frozenset(
        Grant(role, subtree) for group, role, subtree in rules if group in (EVERYBODY, *groups)
    )


def admit(external: ExternalUser, rules: Iterable[RoleRule]) -> User:
    """Return the user, with the roles of the groups; both are written to the audit log.

    Raises
    ------
    SignInError : no role, locked, or a name that cannot be used
    """
    grants = grants_of(external.groups, rules)
    with transaction.atomic():
        user = _known_user(external) or _new_user(external)
        request = _request(user.get_username(), external.reason)
        accounts.set_provided_roles(user, grants, request)
    if not user.is_active:
        raise SignInError(f"The account '{user.get_username()}' is locked. An admin can unlock it.")
    if not rights_of(user).grants:
        raise SignInError(
            f"The account '{user.get_username()}' has no role in kaiweb. An admin can give it one,"
            " or put it into a group of the identity provider that has one."
        )
    return user


def _known_user(external: ExternalUser) -> User | None:
    identity = (
        ExternalIdentity.objects.select_related("user")
        .filter(issuer=external.issuer, subject=external.subject)
        .first()
    )
    return identity.user if identity else None


def _new_user(external: ExternalUser) -> User:
    try:
        user = accounts.create_user(
            username=external.username,
            display_name=external.display_name[:NAME_LENGTH],
            password=None,
            request=_request(external.username[:NAME_LENGTH], external.reason),
        )
    except accounts.AccountExistsError as error:
        raise SignInError(
            f"There is another account '{external.username[:NAME_LENGTH]}' already. An admin can rename or remove it."
        ) from error
    except accounts.AccountFieldError as error:
        raise SignInError(f"This account cannot be used in kaiweb: {error}") from error
    ExternalIdentity.objects.create(user=user, issuer=external.issuer, subject=external.subject)
    return user


def _request(username: str, reason: str) -> WriteRequest:
    rights = Rights(username=username, display_name=username, kind="session", grants=())
    return WriteRequest(rights=rights, now=timezone.now(), reason=reason)
