"""Pages for people. Every route of the single-page app is answered with the shell, also an unknown one."""

from __future__ import annotations

from django.urls import path, re_path

from frontend.dashboard import views
from frontend.dashboard.kubernetes import views as kubernetes
from frontend.dashboard.oidc import views as oidc

urlpatterns = [
    path("login", views.Login.as_view(), name="login"),
    path("login/oidc", oidc.begin, name="oidc-begin"),
    path("login/oidc/callback", oidc.callback, name="oidc-callback"),
    path("login/kubernetes", kubernetes.log_in, name="kubernetes-log-in"),
    path("logout", views.Logout.as_view(), name="logout"),
    # Excluded: unknown API calls and missing files must stay 404.
    re_path(r"^(?!api/|static/|metrics|healthz|readyz|login|logout)", views.shell, name="shell"),
]
