"""The pages Django renders itself: log-in, log-out and the shell of the single page app."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import ensure_csrf_cookie

from frontend.assets import NoBuildError, load_assets
from queues.rights import rights_of


class Login(LoginView):
    """A plain form, usable without JavaScript."""

    template_name = "frontend/login.html"
    authentication_form = AuthenticationForm
    redirect_authenticated_user = True


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
        return render(request, "frontend/unbuilt.html", {"error": str(error)}, status=503)
    boot: dict[str, Any] = {
        "me": rights_of(request.user).as_me(),
        "version": settings.KAIWEB_VERSION,
        "livePath": "/api/v1/live",
    }
    return render(request, "frontend/shell.html", {"assets": assets, "boot": boot})
