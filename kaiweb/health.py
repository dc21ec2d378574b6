"""Liveness and readiness: is the process alive, and can it serve (database, broker, tables)?"""

from __future__ import annotations

from collections.abc import Callable

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse

Check = Callable[[], str]


def healthz(_request: HttpRequest) -> JsonResponse:
    """Answer as long as the process can answer at all."""
    return JsonResponse({"status": "ok"})


def readyz(_request: HttpRequest) -> JsonResponse:
    """Answer 200 when every check passes, else 503; the body names each check and its fault."""
    faults = {name: check() for name, check in CHECKS.items()}
    is_ready = not any(faults.values())
    body = {
        "status": "ok" if is_ready else "unready",
        "checks": {name: fault or "ok" for name, fault in faults.items()},
    }
    return JsonResponse(body, status=200 if is_ready else 503)


def _database_fault() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        return f"database: {error}"
    return ""


def _migrations_fault() -> str:
    try:
        executor = MigrationExecutor(connection)
        waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError as error:
        return f"migrations: {error}"
    return f"{len(waiting)} migrations are not applied" if waiting else ""


def _broker_fault() -> str:
    url: str = settings.CELERY_BROKER_URL
    if url.startswith("memory://"):
        return ""
    try:
        with redis.Redis.from_url(url, socket_timeout=1, socket_connect_timeout=1) as client:
            client.ping()
    except redis.RedisError as error:
        return f"broker: {error}"
    return ""


CHECKS: dict[str, Check] = {
    "database": _database_fault,
    "migrations": _migrations_fault,
    "broker": _broker_fault,
}
