"""Count requests and their time by route, not by path, because names of objects must not become labels."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from prometheus_client import Counter, Histogram

REQUESTS = Counter(
    "kaiweb_http_requests", "Requests answered", labelnames=["method", "route", "status"]
)
SECONDS = Histogram(
    "kaiweb_http_request_seconds",
    "Time to answer",
    labelnames=["route"],
    buckets=(0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class HttpMetricsMiddleware:
    """Measures every request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = time.perf_counter()
        response = self._get_response(request)
        match = request.resolver_match
        route = match.view_name if match else ""
        method = request.method if request.method in METHODS else "other"
        REQUESTS.labels(method, route or "none", response.status_code).inc()
        SECONDS.labels(route or "none").observe(time.perf_counter() - started)
        return response
