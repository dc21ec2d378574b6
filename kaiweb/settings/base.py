"""Settings of every installation. Environment variables are read through `env`."""

from __future__ import annotations

from pathlib import Path

from kaiweb import __version__
from kaiweb.places import ROOT, deploy_folder
from kaiweb.settings import ci, env, oidc
from kaiweb.settings.celery import *  # noqa: F403  (settings modules compose by import)
from kaiweb.settings.channels import *  # noqa: F403
from kaiweb.settings.logging import logging_config

KAIWEB_HOME = env.home()
KAIWEB_PORT = env.port("KAIWEB_PORT", 8000)
# The bearer token for /metrics of the web process; without one only this machine may scrape.
KAIWEB_METRICS_TOKEN = env.text("KAIWEB_METRICS_TOKEN")
# Reverse proxies whose X-Forwarded-For is trusted: addresses, networks, or "*".
KAIWEB_TRUSTED_PROXIES = env.words("KAIWEB_TRUSTED_PROXIES")
KAIWEB_MAX_CONNECTIONS = env.number("KAIWEB_MAX_CONNECTIONS", 2000)
KAIWEB_MAX_CONNECTIONS_PER_ADDRESS = env.number("KAIWEB_MAX_CONNECTIONS_PER_ADDRESS", 500)
KAIWEB_SHARDS = env.shards()
# Where a scheduling worker serves KAI's metrics; port 0: nowhere.
KAIWEB_SCHEDULER_METRICS_HOST = env.text("KAIWEB_SCHEDULER_METRICS_HOST", "127.0.0.1")
KAIWEB_SCHEDULER_METRICS_PORT = env.port("KAIWEB_SCHEDULER_METRICS_PORT", 0, may_be_off=True)
# The token for the debug pages of that port; without one they are off.
KAIWEB_DEBUG_TOKEN = env.text("KAIWEB_DEBUG_TOKEN")
KAIWEB_DEMO = env.flag("DEMO", True)
# The cluster ("in-cluster" in a pod); by default the embedded one. KUBECONFIG is not read, so that a developer's
# own cluster is never written to by accident.
KAIWEB_KUBECONFIG = env.text("KAIWEB_KUBECONFIG", str(KAIWEB_HOME / "kubeconfig"))
KAIWEB_DEPLOY = Path(env.text("KAIWEB_DEPLOY", str(deploy_folder())))
# Who may read what: "all" for every log-in, or "granted": the subtrees of the own role bindings.
KAIWEB_READING = env.choice("KAIWEB_READING", "ALL", ("ALL", "GRANTED")).lower()
# Days after which an API token expires at the latest; 0: it may be valid forever.
KAIWEB_TOKEN_MAX_DAYS = env.number("KAIWEB_TOKEN_MAX_DAYS", 365)
# History and usage: hourly and daily sums are kept this long; prices are per GPU-hour and model.
KAIWEB_USAGE_HOURLY_DAYS = env.number("KAIWEB_USAGE_HOURLY_DAYS", 62)
KAIWEB_USAGE_DAILY_DAYS = env.number("KAIWEB_USAGE_DAILY_DAYS", 1100)
KAIWEB_GPU_PRICES = env.prices("KAIWEB_GPU_PRICES")
KAIWEB_CURRENCY = env.text("KAIWEB_CURRENCY", "EUR")
# Private networks that webhooks of Settings > Notifications may reach.
KAIWEB_NOTIFY_NETWORKS = env.networks("KAIWEB_NOTIFY_NETWORKS")
# Where the series of the DCGM exporter are read; by default from the Prometheus of the Config.
KAIWEB_PROMETHEUS_URL = env.http_url("KAIWEB_PROMETHEUS_URL")
KAIWEB_PROMETHEUS_TOKEN_FILE = env.text("KAIWEB_PROMETHEUS_TOKEN_FILE")
# A GPU that a pod holds counts as idle below this utilisation in percent.
KAIWEB_IDLE_BELOW_PERCENT = env.number("KAIWEB_IDLE_BELOW_PERCENT", 5)
KAIWEB_VERSION = __version__

# Log-in through an identity provider.
_oidc = oidc.settings_of()
KAIWEB_OIDC_ISSUER: str = _oidc["KAIWEB_OIDC_ISSUER"]
KAIWEB_OIDC_NAME: str = _oidc["KAIWEB_OIDC_NAME"]
KAIWEB_OIDC_USERNAME_CLAIM: str = _oidc["KAIWEB_OIDC_USERNAME_CLAIM"]
KAIWEB_OIDC_GROUPS_CLAIM: str = _oidc["KAIWEB_OIDC_GROUPS_CLAIM"]
KAIWEB_OIDC_ROLES: tuple[tuple[str, str, str], ...] = _oidc["KAIWEB_OIDC_ROLES"]
KAIWEB_OIDC_SESSION_HOURS: int = _oidc["KAIWEB_OIDC_SESSION_HOURS"]
AUTHENTICATION_BACKENDS: list[str] = _oidc["AUTHENTICATION_BACKENDS"]
OIDC_RP_CLIENT_ID: str = _oidc["OIDC_RP_CLIENT_ID"]
OIDC_RP_CLIENT_SECRET: str = _oidc["OIDC_RP_CLIENT_SECRET"]
OIDC_RP_SIGN_ALGO: str = _oidc["OIDC_RP_SIGN_ALGO"]
OIDC_RP_SCOPES: str = _oidc["OIDC_RP_SCOPES"]
OIDC_USE_PKCE: bool = _oidc["OIDC_USE_PKCE"]
OIDC_TIMEOUT: int = _oidc["OIDC_TIMEOUT"]
OIDC_VERIFY_SSL: str | bool = _oidc["OIDC_VERIFY_SSL"]
OIDC_AUTHENTICATION_CALLBACK_URL: str = _oidc["OIDC_AUTHENTICATION_CALLBACK_URL"]

# Log-in with tokens of the cluster; off without an audience.
KAIWEB_KUBERNETES_AUDIENCES = env.words("KAIWEB_KUBERNETES_AUDIENCES", "")
KAIWEB_KUBERNETES_ROLES = oidc.role_rules("KAIWEB_KUBERNETES_ROLES", env.ENVIRON)

# ID tokens of CI pipelines that are exchanged for API tokens; off without a rule.
KAIWEB_CI_RULES = ci.ci_rules()
KAIWEB_CI_CA_FILE = env.text("KAIWEB_CI_CA_FILE")

SECRET_KEY = env.text("KAIWEB_SECRET_KEY")
DEBUG = False
ALLOWED_HOSTS = env.words("KAIWEB_HOSTS", "127.0.0.1,localhost,[::1]")
CSRF_TRUSTED_ORIGINS = env.words("KAIWEB_ORIGINS")

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "rest_framework",
    "drf_spectacular",
    "queues",
    "scheduler",
    "binder",
    "frontend.dashboard",
    "sandbox",
    "kaiweb",
    "kaiweb.usage",
    "kaiweb.notifications",
    "kaiweb.utilisation",
]

MIDDLEWARE = [
    "kaiweb.request_id.RequestIdMiddleware",
    # Before any middleware that reads the host: Django's own refusal logs a traceback each time.
    "kaiweb.guards.hosts.AllowedHostMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "kaiweb.api.http.compression.JsonGZipMiddleware",
    "kaiweb.http_metrics.HttpMetricsMiddleware",
    "kaiweb.api.http.headers.ApiHeadersMiddleware",
    "kaiweb.api.http.conditional.ConditionalGetMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "frontend.dashboard.csp.ContentSecurityPolicyMiddleware",
]

ROOT_URLCONF = "kaiweb.urls"
ASGI_APPLICATION = "kaiweb.asgi.application"
WSGI_APPLICATION = "kaiweb.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASES = {
    "default": env.database(env.text("DATABASE_URL"), sqlite_file=KAIWEB_HOME / "kaiweb.sqlite3")
}
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    # Counts of failed log-ins, by user name and by address. The cache holds so many that whoever tries many
    # user names cannot push out the count of their own address.
    "login": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "LOCATION": "login",
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    },
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
# The single page app reads the CSRF cookie to set the X-CSRFToken header.
CSRF_COOKIE_HTTPONLY = False
CSRF_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False

STATIC_URL = "/static/"
# None: files are served from where the finders locate them. Set it to serve a collected copy.
STATIC_ROOT = env.text("KAIWEB_STATIC_ROOT") or None
FRONTEND_DIST = ROOT / "frontend" / "web" / "dist"
# A folder that does not exist (no build so far) would be a system check warning.
STATICFILES_DIRS = [FRONTEND_DIST] if FRONTEND_DIST.is_dir() else []
# Vite names its files by content, so they are served without a collectstatic step.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False
WHITENOISE_IMMUTABLE_FILE_TEST = r"^/static/assets/.+-[A-Za-z0-9_-]{8,}\.\w+$"

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "kaiweb.api.authentication.BearerAuthentication",
        "kaiweb.api.authentication.CsrfSessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["kaiweb.api.http.renderers.OrjsonRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "kaiweb.api.http.negotiation.JsonNegotiation",
    "DEFAULT_PARSER_CLASSES": ["kaiweb.api.http.parsers.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "kaiweb.api.deprecation.Schema",
    "EXCEPTION_HANDLER": "kaiweb.api.errors.problem_response",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "kaiweb",
    "DESCRIPTION": "Queues, workloads, nodes and scheduling sessions of a GPU cluster.",
    "VERSION": "v1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    # Several objects have a field `state` or `action`, so their types need names.
    "ENUM_NAME_OVERRIDES": {
        "WorkloadState": ["pending", "gated", "partial", "running", "finished", "failed"],
        "SimulationState": "kaiweb.models.SimulationState",
        "ChangeSetState": "kaiweb.models.ChangeSetState",
        "ChangeStepState": "kaiweb.models.ChangeStepState",
        "AuditState": "queues.models.ChangeState",
        "EditAction": ["update", "replace", "create", "delete"],
        "AuditAction": "queues.models.AuditAction",
        "AuditKind": "queues.models.AuditKind",
        "Role": "queues.models.Role",
        "Policy": "queues.models.BelowUse",
        "ApprovalRule": "queues.models.ApprovalRule",
        "NotificationEvent": "kaiweb.notifications.models.Event",
        "DeliveryState": "kaiweb.notifications.models.DeliveryState",
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "kaiweb.api.problems.add_problems",
        "kaiweb.api.http.conditional.describe",
    ],
}

LOGGING = logging_config(
    level=env.choice("KAIWEB_LOG_LEVEL", "INFO", env.LOG_LEVELS),
    json_lines=env.flag("KAIWEB_LOG_JSON", False),
)
