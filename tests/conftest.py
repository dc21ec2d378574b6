"""What every test needs: the audit log may be emptied between tests, and only there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from django.db import connection

from queues.editing import audit_guard


@pytest.fixture(scope="session", autouse=True)
def _flush_the_audit_log_too() -> Iterator[None]:
    """Lift the guard of the audit log while Django empties the tables after a test with transactions of its own."""
    operations = type(connection.ops)
    flush = operations.execute_sql_flush

    def flush_without_guard(self: Any, sql_list: Sequence[str]) -> None:
        with audit_guard.lifted(self.connection):
            flush(self, sql_list)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operations, "execute_sql_flush", flush_without_guard)
        yield
