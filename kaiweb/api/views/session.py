"""The caller and their preferences, the version, and the answer to an unknown address."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec
from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q
from django.middleware.csrf import get_token
from drf_spectacular.utils import extend_schema
from msgspec import UNSET, Meta, UnsetType
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import Shows, View, caller
from kaiweb.api.database_writes import write_database
from kaiweb.api.errors import Problem
from kaiweb.api.http import parameters
from kaiweb.api.schema import access as schema
from queues import live
from queues.access.preferences import choose, preferences_of
from queues.models import Role
from scheduler.tools.simulate.what_if.question import Struct, read_body

NAMED_ADMINS = 5
MOST_TABLES, MOST_COLUMNS = 64, 64
Name = Annotated[str, Meta(max_length=64, pattern=r"^[\w .-]*$")]
Columns = Annotated[list[Name], Meta(max_length=MOST_COLUMNS)]


class _Choices(Struct, frozen=True, kw_only=True):
    density: Literal["comfortable", "compact"] | UnsetType = UNSET
    theme: Literal["light", "dark", "auto"] | UnsetType = UNSET
    memory_unit: Literal["GB", "GiB"] | UnsetType = UNSET
    utc: bool | UnsetType = UNSET
    shortcuts: bool | UnsetType = UNSET
    nav_folded: bool | UnsetType = UNSET
    hidden_columns: Annotated[dict[Name, Columns], Meta(max_length=MOST_TABLES)] | UnsetType = UNSET


class Me(View):
    """The caller's effective rights."""

    shows = Shows.ITSELF
    needs_read = False

    @extend_schema(operation_id="getMe", responses=schema.Me)
    def get(self, request: Request) -> Response:
        """Return who the caller is and what the caller may do."""
        me = {**caller(request).as_me(), "admins": _admin_names()}
        if request.auth is None:
            me["csrfToken"] = get_token(request._request)
        return Response(me, headers={"Cache-Control": "no-store"})


def _admin_names() -> list[str]:
    """Return the names of the first admins: whom to ask for a right that is missing."""
    admins = User.objects.filter(
        Q(is_superuser=True) | Q(role_bindings__role=Role.ADMIN), is_active=True
    )
    listed = admins.distinct().order_by("username")[:NAMED_ADMINS]
    return [user.get_full_name() or user.get_username() for user in listed]


class Preferences(View):
    """The choices of the caller, who is logged in: tokens look at nothing."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"patch": ("dryRun",)}

    @extend_schema(operation_id="getPreferences", responses=schema.Preferences)
    def get(self, request: Request) -> Response:
        """Return what the caller has chosen."""
        return Response(preferences_of(_user(request)))

    @extend_schema(
        operation_id="patchPreferences",
        request=schema.Preferences,
        parameters=[parameters.ONLY_DRY_RUN],
        responses=schema.Preferences,
    )
    def patch(self, request: Request) -> Response:
        """Store some choices; the others stay."""
        user = _user(request)
        choices = msgspec.to_builtins(read_body(request.data, _Choices))
        return write_database(request, lambda: Response(choose(user, choices)))


def _user(request: Request) -> User:
    if request.auth is not None or not isinstance(request.user, User):
        raise Problem("forbidden", "preferences belong to a log-in, not to a token")
    return request.user


class Version(View):
    """What is running."""

    shows = Shows.ITSELF
    needs_read = False

    @extend_schema(operation_id="getVersion", responses=schema.Version)
    def get(self, request: Request) -> Response:
        """Return the version and the epoch of the live log."""
        return Response({"version": settings.KAIWEB_VERSION, "epoch": live.epoch()})


@extend_schema(exclude=True)
class Unknown(View):
    """Any other address below the API."""

    permission_classes = (AllowAny,)

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        """Refuse before anything else is looked at."""
        raise Problem("not-found", f"there is nothing at {request.path}")

    def get(self, request: Request) -> Response:
        """Never reached; `initial` refuses."""
        return Response(status=404)

    post = put = patch = delete = get
