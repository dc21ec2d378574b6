"""Random requests from the OpenAPI document, and chains of them: no 5xx, and only answers that it describes.

`make contract` runs many more. The API runs in this process, on the fake cluster.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.core import signals
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from django.middleware.csrf import get_token
from django.test import Client, RequestFactory
from hypothesis import HealthCheck, Phase, settings

from kaiweb.planning import simulations
from tests.kaiweb.api.conftest import Renew

schemathesis = pytest.importorskip("schemathesis", reason="part of the dev requirements")
checks = pytest.importorskip("schemathesis.specs.openapi.checks")

pytestmark = [pytest.mark.integration, pytest.mark.django_db]
EXAMPLES = int(os.environ.get("KAIWEB_CONTRACT_EXAMPLES", "6"))
CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
BOUNDS = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="KAIWEB_CONTRACT_EXAMPLES" not in os.environ,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
    database=None,
)
# The event stream does not end, and has tests of its own.
schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", get_wsgi_application()).exclude(
    operation_id="streamEvents"
)
# The log-in of `admin_headers` is used; a generated one would only be refused.
schema.config.generation.update(with_security_parameters=False)


@pytest.fixture
def open_connection(db: None) -> Iterator[None]:
    """Keep the database connection open between requests, as Django's own test client does."""
    request_signals = (signals.request_started, signals.request_finished)
    for signal in request_signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in request_signals:
        signal.connect(close_old_connections)


@pytest.fixture
def admin_headers(
    open_connection: None,
    renew: Renew,
    mirrored: None,
    monkeypatch: pytest.MonkeyPatch,
) -> dict[str, str]:
    """An admin with a session; simulations are stored and never run."""
    renew()
    monkeypatch.setattr(simulations, "send", lambda _pk: None)
    monkeypatch.setattr("kaiweb.api.views.changes.PREVIEW_WAIT_S", 0)
    monkeypatch.setattr("kaiweb.api.views.workloads.VERIFY_S", 0)
    for name in ("CHECK_WAIT_S", "MAX_WAIT_S", "PREVIEW_WAIT_S"):
        monkeypatch.setattr(f"kaiweb.api.views.simulations.{name}", 0)
    monkeypatch.setattr(simulations, "MAX_OF_USER", 10_000)
    browser = Client()
    browser.force_login(User.objects.create_superuser("contract"))
    session = browser.cookies[django_settings.SESSION_COOKIE_NAME].value
    request = RequestFactory().get("/")
    token = get_token(request)
    secret = request.META["CSRF_COOKIE"]
    cookies = f"{django_settings.SESSION_COOKIE_NAME}={session}; {django_settings.CSRF_COOKIE_NAME}={secret}"
    return {"Cookie": cookies, "X-CSRFToken": token, "Accept-Encoding": "identity"}


@schema.parametrize()
@BOUNDS
def test_an_operation_answers_as_its_description_says(
    case: Any, admin_headers: dict[str, str]
) -> None:
    case.call_and_validate(headers=admin_headers, checks=CHECKS)


class _Chains(schema.as_state_machine()):  # type: ignore[misc]
    headers: ClassVar[dict[str, str]] = {}

    def get_call_kwargs(self, case: Any) -> dict[str, Any]:
        return {"headers": type(self).headers}

    def validate_response(self, response: Any, case: Any, **_more: Any) -> None:
        case.validate_response(response, checks=CHECKS)


TestChains = _Chains.TestCase
TestChains.settings = settings(BOUNDS, stateful_step_count=6)


@pytest.fixture(autouse=True)
def chains_as_admin(request: pytest.FixtureRequest) -> None:
    if request.cls is TestChains:
        _Chains.headers = request.getfixturevalue("admin_headers")
