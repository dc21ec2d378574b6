"""`POST /login/kubernetes`: exchange a token of the cluster for an API token that lives a quarter of an hour."""

from __future__ import annotations

import json
import logging
import re
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.http import Http404, HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from frontend.dashboard import login_guard
from frontend.dashboard.external_users import ExternalUser, SignInError, admit
from frontend.dashboard.kubernetes.review import Identity, review
from kube.errors import KubeError
from queues.access import tokens
from queues.access.rights import SCOPES
from queues.models import ApiToken

log = logging.getLogger(__name__)

ISSUER = "kubernetes"
TOKEN_NAME = "kubeconfig"
LIFETIME = timedelta(minutes=15)
MAX_TOKEN_LENGTH = 16 * 1024
JWT = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+")
SERVICE_ACCOUNT = re.compile(r"system:serviceaccount:([^:]+):([^:]+)")
UNUSABLE = re.compile(r"[^\w.@+-]")
REFUSED = "The token is unknown, expired, or was not made for kaiweb."


@never_cache
@csrf_exempt  # the token is in the body; no cookie is read
@require_POST
def log_in(request: HttpRequest) -> JsonResponse:
    """Answer with an API token that has the roles of the owner of the token in the body."""
    if not settings.KAIWEB_KUBERNETES_AUDIENCES:
        raise Http404("log-in with tokens of the cluster is not set up")
    attempt = login_guard.attempt_of(request)
    wait_s = login_guard.locked_for_s(attempt)
    if wait_s:
        headers = login_guard.FAILURES.refusal_headers(wait_s)
        return _problem(429, "Too many failed attempts from your address.", headers)
    token = _token_of(request)
    if token is None:
        return _problem(400, 'Expected {"token": "<a JSON Web Token of the cluster>"}.')
    try:
        identity = review(token, settings.KAIWEB_KUBERNETES_AUDIENCES)
    except KubeError as error:
        log.warning("cannot ask the cluster about a token: %s", error)
        return _problem(502, "The cluster does not say whose token this is.")
    if identity is None:
        login_guard.note_failure(attempt)
        return _problem(401, REFUSED)
    try:
        user = admit(_external(identity), settings.KAIWEB_KUBERNETES_ROLES)
    except SignInError as error:
        return _problem(403, str(error))
    login_guard.ATTEMPTS.labels("ok").inc()
    return _token_for(user)


def _token_of(request: HttpRequest) -> str | None:
    try:
        body = json.loads(request.body)
    except ValueError:
        return None
    token = body.get("token") if isinstance(body, dict) else None
    is_token = isinstance(token, str) and len(token) <= MAX_TOKEN_LENGTH and JWT.fullmatch(token)
    return token if is_token else None


def _external(identity: Identity) -> ExternalUser:
    """Return the identity with a user name that an account can have; its subject is the name in the cluster."""
    account = SERVICE_ACCOUNT.fullmatch(identity.username)
    name = f"{account[2]}@{account[1]}" if account else UNUSABLE.sub("_", identity.username)
    return ExternalUser(
        issuer=ISSUER,
        subject=identity.username,
        username=name,
        display_name=identity.username,
        groups=identity.groups,
        reason="log-in with a token of the cluster",
    )


def _token_for(user: User) -> JsonResponse:
    """Make the API token; those of earlier log-ins that have expired are deleted."""
    now = timezone.now()
    with transaction.atomic():
        ApiToken.objects.filter(user=user, name=TOKEN_NAME, expires_at__lte=now).delete()
        row, secret = tokens.create(
            user=user,
            name=TOKEN_NAME,
            scopes=[*SCOPES],
            subtree="",
            expires_at=now + LIFETIME,
            now=now,
        )
    assert row.expires_at is not None
    body = {
        "token": secret,
        "expiresAt": row.expires_at.isoformat(timespec="seconds"),
        "username": user.get_username(),
    }
    return JsonResponse(body, status=201)


def _problem(status: int, detail: str, headers: dict[str, str] | None = None) -> JsonResponse:
    body = {"type": "about:blank", "status": status, "detail": detail}
    return JsonResponse(
        body, status=status, headers=headers, content_type="application/problem+json"
    )
