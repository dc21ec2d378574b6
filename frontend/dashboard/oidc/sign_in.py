"""What a log-in does: find or create the user, and make the role bindings agree with the groups.

A user is known by issuer and subject, never by name or e-mail, which people can often choose themselves. Bindings that
an admin has made stay; those that groups gave are replaced at each log-in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from frontend.dashboard.oidc.roles import grants_of, groups_of
from queues.access.rights import Rights, rights_of
from queues.editing import accounts
from queues.editing.write_requests import WriteRequest
from queues.models import ExternalIdentity


class SignInError(Exception):
    """The provider knows the user, but kaiweb lets them not in; the message is for the user."""


def sign_in(claims: Mapping[str, Any]) -> User:
    """Return the user of checked claims, with the roles of its groups; both are written to the audit log.

    Raises
    ------
    SignInError : no role, locked, or a name that cannot be used
    """
    grants = grants_of(
        groups_of(claims.get(settings.KAIWEB_OIDC_GROUPS_CLAIM)), settings.KAIWEB_OIDC_ROLES
    )
    with transaction.atomic():
        user = _known_user(claims) or _new_user(claims)
        accounts.set_provided_roles(user, grants, _request(user.get_username()))
    if not user.is_active:
        raise SignInError(f"The account '{user.get_username()}' is locked. An admin can unlock it.")
    if not rights_of(user).grants:
        raise SignInError(
            f"The account '{user.get_username()}' has no role in kaiweb. An admin can give it one,"
            " or put it into a group of the identity provider that has one."
        )
    return user


def _known_user(claims: Mapping[str, Any]) -> User | None:
    identity = (
        ExternalIdentity.objects.select_related("user")
        .filter(issuer=settings.KAIWEB_OIDC_ISSUER, subject=claims["sub"])
        .first()
    )
    return identity.user if identity else None


def _new_user(claims: Mapping[str, Any]) -> User:
    claim: str = settings.KAIWEB_OIDC_USERNAME_CLAIM
    username = claims.get(claim)
    if not isinstance(username, str) or not username:
        raise SignInError(f"The identity provider sent no '{claim}', which names the account.")
    display_name = claims.get("name")
    try:
        user = accounts.create_user(
            username=username,
            display_name=display_name[:150] if isinstance(display_name, str) else "",
            password=None,
            request=_request(username[:150]),
        )
    except accounts.AccountExistsError as error:
        raise SignInError(
            f"There is a local account '{username[:150]}' already. An admin can rename or remove it."
        ) from error
    except accounts.AccountFieldError as error:
        raise SignInError(f"This account cannot be used in kaiweb: {error}") from error
    ExternalIdentity.objects.create(
        user=user, issuer=settings.KAIWEB_OIDC_ISSUER, subject=claims["sub"]
    )
    return user


def _request(username: str) -> WriteRequest:
    rights = Rights(username=username, display_name=username, kind="session", grants=())
    return WriteRequest(
        rights=rights, now=timezone.now(), reason="log-in through the identity provider"
    )
