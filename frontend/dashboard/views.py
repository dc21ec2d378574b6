"""The pages Django renders itself: log-in, log-out and the shell of the single page app."""

from __future__ import annotations

import math
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import ensure_csrf_cookie

from frontend.dashboard import login_guard
from frontend.dashboard.assets import NoBuildError, load_assets
from queues.access.preferences import preferences_of
from queues.access.rate_limits import RateLimit
from queues.access.rights import rights_of


class Login(LoginView):
    """A plain form, usable without JavaScript; `login_guard` limits the attempts."""

    template_name = "dashboard/login.html"
    authentication_form = AuthenticationForm
    redirect_authenticated_user = True

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        """Add the name of the identity provider, if there is one."""
        name = settings.KAIWEB_OIDC_NAME if settings.KAIWEB_OIDC_ISSUER else ""
        return super().get_context_data(**context, provider=name)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Check the password, unless too many were wrong or too many are being checked now."""
        attempt = self._attempt()
        with login_guard.SLOTS.take(attempt) as is_free:
            if not is_free:
                login_guard.note_busy()
                return self._refused(
                    "Others are logging in at this moment. Try again in a few seconds.",
                    login_guard.HASHES,
                    login_guard.BUSY_RETRY_S,
                )
            wait_s = login_guard.locked_for_s(attempt)
            if wait_s:
                minutes = math.ceil(wait_s / 60)
                unit = "minute" if minutes == 1 else "minutes"
                return self._refused(
                    f"Too many failed attempts from your address. Try again in {minutes} {unit}.",
                    login_guard.FAILURES,
                    wait_s,
                )
            return super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Log in."""
        login_guard.note_success(self._attempt())
        return super().form_valid(form)

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """Show the form with what is wrong."""
        login_guard.note_failure(self._attempt())
        return super().form_invalid(form)

    def _attempt(self) -> login_guard.LoginAttempt:
        return login_guard.attempt_of(self.request, self.request.POST.get("username", ""))

    def _refused(self, reason: str, limit: RateLimit, retry_after_s: int) -> HttpResponse:
        """Return the form with the reason of the refusal; the password was not checked."""
        form = self.authentication_form(
            self.request, initial={"username": self.request.POST.get("username", "")[:150]}
        )
        context = self.get_context_data(form=form, refusal=reason)
        headers = limit.refusal_headers(retry_after_s)
        return self.render_to_response(context, status=429, headers=headers)


class Logout(LogoutView):
    """POST only; then back to the log-in form."""

    next_page = "login"


@never_cache
@login_required
@ensure_csrf_cookie
def shell(request: HttpRequest) -> HttpResponse:
    """Answer every URL of the app with the same page; the app reads the URL itself."""
    try:
        assets = load_assets(settings.FRONTEND_DIST, settings.STATIC_URL)
    except NoBuildError as error:
        return render(request, "dashboard/unbuilt.html", {"error": str(error)}, status=503)
    boot: dict[str, Any] = {
        "me": rights_of(request.user).as_me(),
        "preferences": preferences_of(request.user),
        "version": settings.KAIWEB_VERSION,
        "livePath": "/api/v1/live",
    }
    return render(request, "dashboard/shell.html", {"assets": assets, "boot": boot})
