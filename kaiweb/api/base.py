"""The base of all views: rights of the caller, and checks of query parameters."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, TypeVar

from django.db.models import Model, QuerySet
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.views import APIView

from kaiweb.api import database_wait
from kaiweb.api.deprecation import Deprecation
from kaiweb.api.errors import Problem, bad_parameter
from kaiweb.items.visibility import EVERYTHING, Visibility, visibility_of
from queues.access.rights import READ, Rights, rights_of
from queues.errors import UnknownQueueError
from queues.models import ApiToken, PodGroup, Queue
from queues.tree.shape import shown

M = TypeVar("M", bound=Model)
RIGHTS, VISIBILITY = "_kaiweb_rights", "_kaiweb_visibility"

# Long enough for lists of names, and within the limits of every database for patterns and statements.
MAX_PARAMETER_LENGTH = 4096


class Shows(Enum):
    """How a view keeps to what a caller may see.

    QUEUE and WORKLOAD: the address names one, which is looked at before the view is called. ITSELF: the view leaves
    out what may not be seen, or has nothing of the kind.
    """

    NOTHING = "nothing"
    QUEUE = "queue"
    WORKLOAD = "workload"
    ITSELF = "itself"


class View(APIView):
    """An API view that refuses query parameters it does not know, for each method.

    `accepts` maps a method to the names it accepts. An unknown name is an error, because a misspelt filter that
    is ignored returns the wrong rows. A name that occurs twice is an error unless it is in `repeatable`, because
    `dryRun=true&dryRun=false` has no clear meaning.
    """

    accepts: ClassVar[Mapping[str, Sequence[str]]] = {}
    repeatable: ClassVar[frozenset[str]] = frozenset()
    #: What a caller sees of it who may see only some queues. A new view shows nothing to them until it says how.
    shows: ClassVar[Shows] = Shows.NOTHING
    #: Whether a token needs the scope `read` for safe methods.
    needs_read: ClassVar[bool] = True
    #: Methods whose operation will go away.
    deprecated: ClassVar[Mapping[str, Deprecation]] = {}
    has_short_waits = False

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        """Authenticate first, so that a caller without a log-in learns nothing about parameters."""
        has_credentials = "Authorization" in request.headers or bool(request.COOKIES)
        is_write = request.method not in SAFE_METHODS
        if has_credentials and (is_write or database_wait.needs_no_query()):
            database_wait.shorten_waits()
            self.has_short_waits = True
        super().initial(request, *args, **kwargs)
        _check_scope(request, needs_read=self.needs_read)
        if caller_visibility(request).is_partial:
            _check_visible(request, self.shows, kwargs)
        _check_texts(request)
        allowed = self.accepts.get((request.method or "").lower(), ())
        _check_names(request, allowed, self.repeatable)

    def finalize_response(
        self, request: Request, response: Any, *args: object, **kwargs: object
    ) -> Any:
        """Let the connection wait for locks as long as before again; announce that the operation will go away."""
        if self.has_short_waits:
            database_wait.restore_waits()
        deprecation = self.deprecated.get((request.method or "").lower())
        if deprecation is not None:
            deprecation.announce(response)
        return super().finalize_response(request, response, *args, **kwargs)


def _check_scope(request: Request, *, needs_read: bool) -> None:
    if not needs_read or request.method not in SAFE_METHODS:
        return
    rights = caller(request)
    if not rights.grants:
        raise Problem("forbidden", "you have no role; an admin can give you one")
    if not rights.may_read:
        raise Problem("forbidden", f"reading needs a token with the scope '{READ}'")


def _check_visible(request: Request, shows: Shows, address: Mapping[str, Any]) -> None:
    """Refuse what the caller may not see as if it did not exist."""
    visibility = caller_visibility(request)
    if shows is Shows.NOTHING:
        raise Problem("forbidden", "this is not shown to callers who see only some queues")
    if shows is Shows.QUEUE:
        name = address.get("name") or address["root"]
        if _is_hidden(request, name):
            raise UnknownQueueError(name)
    elif shows is Shows.WORKLOAD:
        key = f"{address['namespace']}/{address['name']}"
        queue = PodGroup.objects.filter(key=key).values_list("queue", flat=True).first()
        if queue is None or not visibility.shows(queue):
            raise Problem("not-found", f"workload '{key}' does not exist")


def _is_hidden(request: Request, queue: str) -> bool:
    """Return whether there is a queue of this name that the caller may not see."""
    return not caller_visibility(request).shows(queue) and Queue.objects.filter(name=queue).exists()


def _check_texts(request: Request) -> None:
    texts = [text for name, values in request.query_params.lists() for text in (name, *values)]
    if any("\x00" in text for text in (request.path, *texts)):
        raise Problem("bad-request", "a NUL character is in no name and no filter")
    for name, values in request.query_params.lists():
        for value in values:
            if len(value) > MAX_PARAMETER_LENGTH:
                expected = f"expected at most {MAX_PARAMETER_LENGTH} characters, got {len(value)}"
                raise bad_parameter(name, expected, value)


def _check_names(request: Request, allowed: Sequence[str], repeatable: Collection[str]) -> None:
    unknown = sorted(set(request.query_params) - set(allowed))
    if unknown:
        allowed_names = ", ".join(sorted(allowed)) or "none"
        raise Problem(
            "bad-request",
            f"unknown query parameter '{shown(unknown[0])}'; known here: {allowed_names}",
            errors=[
                {
                    "pointer": f"?{shown(name)}",
                    "code": "unknown-parameter",
                    "message": f"'{shown(name)}' is not a parameter of this call",
                    "given": shown(name),
                    "allowed": sorted(allowed),
                }
                for name in unknown
            ],
        )
    for name, values in request.query_params.lists():
        if len(values) > 1 and name not in repeatable:
            raise bad_parameter(name, f"expected once, got {len(values)} times", values[-1])


def caller(request: Request) -> Rights:
    """Return the rights of the caller, read once for a request."""
    rights: Rights | None = getattr(request, RIGHTS, None)
    if rights is None:
        token = request.auth if isinstance(request.auth, ApiToken) else None
        rights = rights_of(request.user, token)
        setattr(request, RIGHTS, rights)
    return rights


def caller_visibility(request: Request) -> Visibility:
    """Return what the caller may see, read once for a request."""
    visibility: Visibility | None = getattr(request, VISIBILITY, None)
    if visibility is None:
        visibility = visibility_of(caller(request)) if request.user.is_authenticated else EVERYTHING
        setattr(request, VISIBILITY, visibility)
    return visibility


def flag(request: Request, name: str) -> bool:
    """Return whether a boolean query parameter is true; an absent one is not."""
    raw = request.query_params.get(name)
    if raw is None or raw == "false":
        return False
    if raw in ("true", ""):
        return True
    raise bad_parameter(name, "expected true or false", raw, ["true", "false"])


def words(request: Request, name: str) -> list[str]:
    """Return the parts of a comma-separated query parameter, of all its occurrences if it is repeated."""
    values = request.query_params.getlist(name)
    return [part for value in values for part in value.split(",") if part]


def filtered(
    request: Request, rows: QuerySet[M], columns: Sequence[str] | Mapping[str, str]
) -> QuerySet[M]:
    """Return the rows whose columns have one of the values that the parameters list.

    Parameters
    ----------
    columns : names of parameters that are columns too, or parameter -> column
    """
    column_of = columns if isinstance(columns, Mapping) else {name: name for name in columns}
    for name, column in column_of.items():
        values = words(request, name)
        if values:
            rows = rows.filter(**{f"{column}__in": values})
    return rows
