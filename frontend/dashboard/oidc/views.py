"""The two addresses of the log-in: one sends the browser to the identity provider, the other takes it back."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.template.loader import render_to_string
from django.views.decorators.cache import never_cache
from mozilla_django_oidc.views import (
    OIDCAuthenticationCallbackView,
    OIDCAuthenticationRequestView,
)

from frontend.dashboard import login_guard
from frontend.dashboard.external_users import SignInError
from frontend.dashboard.oidc import provider
from frontend.dashboard.oidc.provider import ProviderError

log = logging.getLogger(__name__)

EXPIRED = "The log-in took too long, or was begun in another browser."
NO_PROVIDER = (
    "The identity provider does not answer as expected. The log of the web process has the details."
)


class _Begin(OIDCAuthenticationRequestView):  # type: ignore[misc]  # the library has no types
    """Sends the browser to the provider, with state, nonce and the challenge of PKCE."""

    get_settings = staticmethod(provider.setting)


class _Callback(OIDCAuthenticationCallbackView):  # type: ignore[misc]  # the library has no types
    """Takes the browser back and logs the user in."""

    get_settings = staticmethod(provider.setting)

    def login_failure(self) -> HttpResponse:
        """Refuse a callback without a code or without a log-in that was begun here."""
        raise SignInError(EXPIRED)

    def login_success(self) -> HttpResponse:
        """Begin a session that ends after some hours, so that changed groups take effect."""
        response: HttpResponse = super().login_success()
        self.request.session.set_expiry(timedelta(hours=settings.KAIWEB_OIDC_SESSION_HOURS))
        return response


@never_cache
def begin(request: HttpRequest) -> HttpResponseBase:
    """Send the browser to the identity provider."""
    _require_provider()
    wait_s = login_guard.locked_for_s(login_guard.attempt_of(request))
    if wait_s:
        text = "Too many failed attempts from your address. Try again in a few minutes."
        headers = login_guard.FAILURES.refusal_headers(wait_s)
        return _refusal(request, text, status=429, headers=headers)
    try:
        answer: HttpResponseBase = _Begin.as_view()(request)
    except ProviderError as error:
        log.warning("cannot begin a log-in at the identity provider: %s", error)
        return _refusal(request, NO_PROVIDER, status=502)
    return answer


@never_cache
def callback(request: HttpRequest) -> HttpResponseBase:
    """Log in whom the identity provider has sent back, or say why not."""
    _require_provider()
    if "error" in request.GET:
        code = request.GET["error"][:60]
        return _failed(request, f"The identity provider refused the log-in ({code}).", status=403)
    try:
        answer: HttpResponseBase = _Callback.as_view()(request)
    except SignInError as error:
        return _failed(request, str(error), status=403)
    except SuspiciousOperation:
        return _failed(request, EXPIRED, status=403)
    except ProviderError as error:
        log.warning("log-in through the identity provider refused: %s", error)
        return _failed(request, NO_PROVIDER, status=502)
    login_guard.ATTEMPTS.labels("ok").inc()
    return answer


def _require_provider() -> None:
    if not settings.KAIWEB_OIDC_ISSUER:
        raise Http404("no identity provider is set up")


def _failed(request: HttpRequest, text: str, *, status: int) -> HttpResponse:
    login_guard.note_failure(login_guard.attempt_of(request))
    return _refusal(request, text, status=status)


def _refusal(
    request: HttpRequest, text: str, *, status: int, headers: dict[str, str] | None = None
) -> HttpResponse:
    context: dict[str, Any] = {"reason": text, "name": settings.KAIWEB_OIDC_NAME}
    page = render_to_string("dashboard/refused.html", context, request)
    return HttpResponse(page, status=status, headers=headers)
