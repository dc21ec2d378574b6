"""What a check of the doctor reports, and what it may look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from kube.gateway import Gateway
from kube.keys import SCHEDULER_NAME, SYSTEM_NAMESPACE
from kube.resources import Resource
from kube.values.times import parse_time


class Severity(StrEnum):
    """How bad a finding is."""

    #: Something does not work, or will go wrong.
    FAULT = "fault"
    #: It works, but somebody should look at it.
    WARNING = "warning"
    #: For information, such as what could not be checked.
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a check found.

    Attributes
    ----------
    subject : the object or account it is about
    remedy : what to do, with the command where there is one
    """

    severity: Severity
    subject: str
    text: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterContext:
    """The cluster that is examined.

    Attributes
    ----------
    deploy : the folder with our definitions and roles
    accounts : the folder with a kubeconfig for each account; None without one
    scheduler_name : of the pods that are ours
    """

    gateway: Gateway
    deploy: Path
    accounts: Path | None = None
    namespace: str = SYSTEM_NAMESPACE
    scheduler_name: str = SCHEDULER_NAME
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))

    def all_of(self, kind: Resource, namespace: str = "") -> list[dict[str, Any]]:
        """Return all objects of a kind as they are."""
        return list(self.gateway.list(kind, as_type=dict, namespace=namespace).items)


Check = Callable[[ClusterContext], Iterator[Finding]]


def fault(subject: str, text: str, remedy: str) -> Finding:
    return Finding(severity=Severity.FAULT, subject=subject, text=text, remedy=remedy)


def warning(subject: str, text: str, remedy: str) -> Finding:
    return Finding(severity=Severity.WARNING, subject=subject, text=text, remedy=remedy)


def note(subject: str, text: str, remedy: str = "") -> Finding:
    return Finding(severity=Severity.NOTE, subject=subject, text=text, remedy=remedy)


def age_s(timestamp: str | None, now: datetime) -> float:
    """Return the seconds since a timestamp of the API; infinite without one."""
    if not timestamp:
        return float("inf")
    return (now - parse_time(timestamp)).total_seconds()
