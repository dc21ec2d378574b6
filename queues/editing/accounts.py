"""Users and their role bindings, written with an entry in the audit log.

Who may do this is decided by the caller. Here it is only made sure that an admin remains who can log in.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from queues.access.rights import Grant
from queues.editing.audit_entries import record
from queues.editing.edits import Difference
from queues.editing.write_requests import WriteRequest
from queues.models import AuditAction, AuditKind, Role, RoleBinding


class LastAdminError(Exception):
    """After the change nobody could administer the installation."""

    def __init__(self) -> None:
        super().__init__("nobody would be left who can log in as an admin")


class AccountExistsError(Exception):
    """There is such a user, or such a role binding, already."""


class AccountFieldError(Exception):
    """A field of a user is not valid."""

    def __init__(self, field: str, messages: list[str]) -> None:
        super().__init__(f"{field}: {' '.join(messages)}")
        self.field = field


def admins() -> QuerySet[User]:
    """Return the users who can log in and are admins."""
    is_admin = Q(is_superuser=True) | Q(role_bindings__role=Role.ADMIN)
    return User.objects.filter(is_admin, is_active=True).distinct()


def create_user(
    *, username: str, display_name: str, password: str | None, request: WriteRequest
) -> User:
    """Create a user; without a password only another way of logging in can be used.

    Raises
    ------
    AccountExistsError, AccountFieldError
    """
    user = User(username=User.normalize_username(username))
    _set_name(user, display_name)
    _set_password(user, password)
    _validate(user)
    with transaction.atomic():
        try:
            with transaction.atomic():
                user.save()
        except IntegrityError as error:
            raise AccountExistsError(f"user '{username}' exists already") from error
        _record_user(AuditAction.CREATE, user, {"isActive": (None, True)}, request)
    return user


def edit_user(user: User, changes: dict[str, Any], request: WriteRequest) -> User:
    """Change the named fields of a user: `display_name`, `password`, `is_active`.

    Raises
    ------
    LastAdminError, AccountFieldError
    """
    with transaction.atomic():
        user = _locked_with_admins(user)
        old = {"displayName": user.get_full_name(), "isActive": user.is_active}
        if "display_name" in changes:
            _set_name(user, changes["display_name"])
        if "is_active" in changes:
            user.is_active = changes["is_active"]
        if "password" in changes:
            _set_password(user, changes["password"])
        _validate(user)
        user.save()
        _require_admin()
        new = {"displayName": user.get_full_name(), "isActive": user.is_active}
        diff = {name: (old[name], new[name]) for name in old if old[name] != new[name]}
        if "password" in changes:
            diff["password"] = (None, "changed")
        _record_user(AuditAction.UPDATE, user, diff, request)
    return user


def bind(user: User, role: Role, subtree: str, request: WriteRequest) -> RoleBinding:
    """Give a user a role.

    Raises
    ------
    AccountExistsError
    """
    with transaction.atomic():
        binding, is_new = RoleBinding.objects.get_or_create(user=user, role=role, subtree=subtree)
        if not is_new:
            raise AccountExistsError(f"the binding exists already: {binding}")
        _record_binding(AuditAction.CREATE, binding, request)
    return binding


def set_provided_roles(user: User, grants: Collection[Grant], request: WriteRequest) -> None:
    """Make the bindings that the identity provider gives be exactly these; those that admins gave stay.

    Unlike `unbind` this may take the last admin away: the provider decides about its users.
    """
    bindings = {Grant(row.role, row.subtree): row for row in user.role_bindings.all()}
    for grant, binding in bindings.items():
        if binding.is_provided and grant not in grants:
            _record_binding(AuditAction.DELETE, binding, request)
            binding.delete()
    for grant in sorted(set(grants) - set(bindings), key=lambda grant: (grant.role, grant.subtree)):
        binding = RoleBinding.objects.create(
            user=user, role=grant.role, subtree=grant.subtree, is_provided=True
        )
        _record_binding(AuditAction.CREATE, binding, request)


def unbind(binding: RoleBinding, request: WriteRequest) -> None:
    """Take a role from its user.

    Raises
    ------
    LastAdminError
    """
    with transaction.atomic():
        _locked_with_admins(binding.user)
        _record_binding(AuditAction.DELETE, binding, request)
        binding.delete()
        _require_admin()


def _locked_with_admins(user: User) -> User:
    """Lock the rows of the user and all admins, so that two admins do not remove each other at once."""
    admin_ids = list(admins().values_list("pk", flat=True))
    rows = User.objects.select_for_update().filter(pk__in=[*admin_ids, user.pk]).order_by("pk")
    return next(row for row in rows if row.pk == user.pk)


def _require_admin() -> None:
    if not admins().exists():
        raise LastAdminError


def _set_name(user: User, display_name: str) -> None:
    first, _, last = display_name.strip().partition(" ")
    user.first_name, user.last_name = first, last.strip()


def _set_password(user: User, password: str | None) -> None:
    if password is None:
        user.set_unusable_password()
        return
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise AccountFieldError("password", error.messages) from error
    user.set_password(password)


def _validate(user: User) -> None:
    try:
        user.clean_fields(exclude={"password"})
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        names = {"first_name": "displayName", "last_name": "displayName"}
        raise AccountFieldError(names.get(field, field), messages) from error


def _record_user(
    action: AuditAction, user: User, diff: dict[str, tuple[Any, Any]], request: WriteRequest
) -> None:
    record(
        AuditKind.USER,
        action,
        user.get_username(),
        request,
        diff=[Difference(f"/{name}", before, after) for name, (before, after) in diff.items()],
    )


def _record_binding(action: AuditAction, binding: RoleBinding, request: WriteRequest) -> None:
    value = {"role": binding.role, "subtree": binding.subtree or None}
    before, after = (None, value) if action == AuditAction.CREATE else (value, None)
    record(
        AuditKind.ROLE_BINDING,
        action,
        binding.user.get_username(),
        request,
        queue=binding.subtree,
        diff=[Difference("", before, after)],
    )
