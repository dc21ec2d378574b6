"""The caller, the version, and the answer to an unknown address."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q
from django.middleware.csrf import get_token
from drf_spectacular.utils import extend_schema
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import Shows, View, caller
from kaiweb.api.errors import Problem
from kaiweb.api.schema import access as schema
from queues import live
from queues.models import Role

NAMED_ADMINS = 5


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
        return Response(me)


def _admin_names() -> list[str]:
    """Return the names of the first admins: whom to ask for a right that is missing."""
    admins = User.objects.filter(
        Q(is_superuser=True) | Q(role_bindings__role=Role.ADMIN), is_active=True
    )
    listed = admins.distinct().order_by("username")[:NAMED_ADMINS]
    return [user.get_full_name() or user.get_username() for user in listed]


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
