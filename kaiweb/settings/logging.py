"""Log lines for people, or JSON lines for machines, with the same fields."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

from kube.values.times import format_milli_time

STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
    "color_message",
}


def _extras(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in STANDARD}


def _time(record: logging.LogRecord) -> str:
    return format_milli_time(datetime.fromtimestamp(record.created, UTC))


class LineFormatter(logging.Formatter):
    """`2026-11-29T16:50:00.123Z INFO  queues.mirror  listed kind=Pod rows=12`."""

    def format(self, record: logging.LogRecord) -> str:
        extras = "".join(f" {key}={value}" for key, value in _extras(record).items())
        line = f"{_time(record)} {record.levelname:<7} {record.name}  {record.getMessage()}{extras}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class JsonFormatter(logging.Formatter):
    """One JSON object a line; the fields of `extra=` are keys of their own."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_extras(record),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def logging_config(*, level: str, json_lines: bool) -> dict[str, Any]:
    """Return the dictConfig: everything goes to stderr, which the supervisor writes to a log file."""
    formatter = JsonFormatter if json_lines else LineFormatter
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"default": {"()": formatter}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "default"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django.server": {"handlers": [], "propagate": True},
            # Refused requests are counted, not logged: they are faults of the client.
            "django.request": {"level": "ERROR"},
            "uvicorn.access": {"level": "WARNING"},
            "kombu": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
            "celery.beat": {"level": "WARNING"},
            # One line a second for each tick is of no use.
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.worker.request": {"level": "WARNING"},
        },
    }
