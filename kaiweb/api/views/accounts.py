"""Users and their roles, for admins. Accounts with a password are written with a log-in, not with a token."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from django.contrib.auth.models import User
from drf_spectacular.utils import extend_schema
from msgspec import UNSET, Meta, UnsetType
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import Shows, View, filtered
from kaiweb.api.database_writes import write_database
from kaiweb.api.errors import Problem
from kaiweb.api.http import parameters
from kaiweb.api.schema import access as schema
from kaiweb.api.writes import require_admin, write_request
from kaiweb.items.amounts import timestamp
from queues.editing import accounts
from queues.models import Role, RoleBinding
from queues.selectors import has_queue, row_with_number
from queues.tree.shape import shown
from scheduler.tools.simulate.what_if.question import Struct, read_body

WRITE = ("dryRun", "reason")
#: Without control characters: names appear in logs, and PostgreSQL stores no NUL.
Text = Annotated[str, Meta(max_length=150, pattern=r"^[^\x00-\x1f\x7f]*$")]
Username = Annotated[str, Meta(min_length=1, max_length=150, pattern=r"^[\w.@+-]+$")]
Password = Annotated[str, Meta(max_length=1024, pattern=r"^[^\x00]*$")]


class _UserEdit(Struct, frozen=True, kw_only=True):
    display_name: Text | UnsetType = UNSET
    password: Password | UnsetType | None = UNSET
    is_active: bool | UnsetType = UNSET


class _NewUser(_UserEdit, frozen=True, kw_only=True):
    username: Username


class _NewBinding(Struct, frozen=True, kw_only=True):
    username: str
    role: Literal["viewer", "editor", "admin"]
    subtree: str | None = None


class Users(View):
    """The collection."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"post": WRITE}

    @extend_schema(operation_id="listUsers", responses=schema.UserList)
    def get(self, request: Request) -> Response:
        """List all users with their roles."""
        require_admin(request, "listing users")
        rows = User.objects.prefetch_related("role_bindings").order_by("username")
        return Response({"items": [_user_item(row) for row in rows]})

    @extend_schema(
        operation_id="createUser",
        request=schema.UserCreate,
        parameters=[parameters.ONLY_DRY_RUN, parameters.REASON],
        responses={201: schema.User},
    )
    def post(self, request: Request) -> Response:
        """Create a user without roles, who may read."""
        _require_admin_login(request)
        return write_database(request, lambda: _create(request), is_kept=False)


class UserDetail(View):
    """One user."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"patch": WRITE}

    @extend_schema(operation_id="getUser", responses=schema.User)
    def get(self, request: Request, username: str) -> Response:
        """Return the user with the roles."""
        require_admin(request, "reading users")
        return Response(_user_item(_find_user(username)))

    @extend_schema(
        operation_id="patchUser",
        request=schema.UserEdit,
        parameters=[parameters.ONLY_DRY_RUN, parameters.REASON],
        responses=schema.User,
    )
    def patch(self, request: Request, username: str) -> Response:
        """Change the name, set a password (null: none), or lock the user out; tokens of a locked user are dead."""
        _require_admin_login(request)
        return write_database(request, lambda: _edit(request, username), is_kept=False)


class RoleBindings(View):
    """The collection."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"get": ("username", "subtree"), "post": WRITE}
    repeatable: ClassVar = frozenset({"username", "subtree"})

    @extend_schema(
        operation_id="listRoleBindings",
        parameters=parameters.BINDING_FILTERS,
        responses=schema.RoleBindingList,
    )
    def get(self, request: Request) -> Response:
        """List who has which role below which queue; superusers are admins without a binding."""
        require_admin(request, "listing role bindings")
        rows = RoleBinding.objects.select_related("user").order_by("user__username", "pk")
        rows = filtered(request, rows, {"username": "user__username", "subtree": "subtree"})
        return Response({"items": [_binding_item(row) for row in rows]})

    @extend_schema(
        operation_id="createRoleBinding",
        request=schema.RoleBindingCreate,
        parameters=[parameters.ONLY_DRY_RUN, parameters.REASON, parameters.IDEMPOTENCY_KEY],
        responses={201: schema.RoleBinding},
    )
    def post(self, request: Request) -> Response:
        """Give a user a role: viewer, editor below a queue (or of everything), or admin of everything."""
        require_admin(request, "giving roles")
        return write_database(request, lambda: _bind(request))


class RoleBindingDetail(View):
    """One role binding."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"delete": WRITE}

    @extend_schema(
        operation_id="deleteRoleBinding",
        parameters=[parameters.ONLY_DRY_RUN, parameters.REASON],
        responses={204: None},
    )
    def delete(self, request: Request, pk: int) -> Response:
        """Take the role away; open live sockets follow within half a minute."""
        require_admin(request, "taking roles")
        return write_database(request, lambda: _unbind(request, pk))


def _create(request: Request) -> Response:
    body = read_body(request.data, _NewUser)
    if body.is_active is False:
        raise Problem("validation", "isActive: a new user is active")
    user = accounts.create_user(
        username=body.username,
        display_name=body.display_name or "",
        password=body.password or None,
        request=write_request(request),
    )
    headers = {"Location": f"/api/v1/users/{user.get_username()}"}
    return Response(_user_item(user), status=201, headers=headers)


def _edit(request: Request, username: str) -> Response:
    body = read_body(request.data, _UserEdit)
    values = {name: getattr(body, name) for name in ("display_name", "password", "is_active")}
    changes = {name: value for name, value in values.items() if value is not UNSET}
    user = accounts.edit_user(_find_user(username), changes, write_request(request))
    return Response(_user_item(user))


def _bind(request: Request) -> Response:
    body = read_body(request.data, _NewBinding)
    subtree = body.subtree or ""
    role = Role(body.role)
    if role is Role.ADMIN and subtree:
        raise Problem("validation", "subtree: an admin administers everything, expected none")
    if subtree and not has_queue(subtree):
        raise Problem("validation", f"subtree: expected a queue, got '{shown(subtree)}'")
    user = None
    if "\x00" not in body.username:
        user = User.objects.filter(username=body.username).first()
    if user is None:
        raise Problem("validation", f"username: expected a user, got '{shown(body.username)}'")
    binding = accounts.bind(user, role, subtree, write_request(request))
    return Response(_binding_item(binding), status=201)


def _unbind(request: Request, pk: int) -> Response:
    binding = row_with_number(RoleBinding.objects.select_related("user"), pk)
    if binding is None:
        raise Problem("not-found", f"role binding {pk} does not exist")
    accounts.unbind(binding, write_request(request))
    return Response(status=204)


def _require_admin_login(request: Request) -> None:
    require_admin(request, "managing users")
    if request.auth is not None:
        raise Problem("forbidden", "users are managed with a log-in, not with a token")


def _find_user(username: str) -> User:
    rows = User.objects.prefetch_related("role_bindings")
    user = rows.filter(username=username).first()
    if user is None:
        raise Problem("not-found", f"user '{shown(username)}' does not exist")
    return user


def _user_item(user: User) -> dict[str, Any]:
    bindings = sorted(user.role_bindings.all(), key=lambda row: (row.role, row.subtree))
    return {
        "username": user.get_username(),
        "displayName": user.get_full_name() or user.get_username(),
        "isActive": user.is_active,
        "isAdmin": user.is_superuser or any(row.role == Role.ADMIN for row in bindings),
        "hasPassword": user.has_usable_password(),
        "roles": [{"role": row.role, "subtree": row.subtree or None} for row in bindings],
        "createdAt": timestamp(user.date_joined),
        "lastLoginAt": timestamp(user.last_login),
    }


def _binding_item(row: RoleBinding) -> dict[str, Any]:
    return {
        "id": row.pk,
        "username": row.user.get_username(),
        "role": row.role,
        "subtree": row.subtree or None,
        "provided": row.is_provided,
    }
