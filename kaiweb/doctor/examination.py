"""Run all checks of the doctor, each on its own: one that cannot be made does not keep back the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from kaiweb.doctor.definitions import check_definitions, check_versions
from kaiweb.doctor.finding import Check, ClusterContext, Finding, Severity, fault, note
from kaiweb.doctor.objects import (
    check_bind_requests,
    check_config,
    check_pods,
    check_queues,
    check_reservations,
)
from kaiweb.doctor.rights import check_rights
from kaiweb.doctor.schedulers import (
    check_leases,
    check_other_schedulers,
    check_shards,
    check_writers,
)
from kaiweb.doctor.surroundings import check_clock, check_stores
from kaiweb.doctor.webhooks import check_order, check_webhooks
from kube.errors import ForbiddenError, KubeError

CHECKS: Mapping[str, Check] = {
    "definitions": check_definitions,
    "versions": check_versions,
    "config": check_config,
    "rights": check_rights,
    "other schedulers": check_other_schedulers,
    "leases": check_leases,
    "writers": check_writers,
    "shards": check_shards,
    "clock": check_clock,
    "webhooks": check_webhooks,
    "webhook order": check_order,
    "queues": check_queues,
    "pods": check_pods,
    "bind requests": check_bind_requests,
    "reservations": check_reservations,
    "stores": check_stores,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The findings of one check."""

    check: str
    findings: tuple[Finding, ...]

    def as_json(self) -> dict[str, Any]:
        return {"check": self.check, "findings": [asdict(finding) for finding in self.findings]}


def examine(context: ClusterContext, checks: Mapping[str, Check] = CHECKS) -> Iterator[Result]:
    """Yield the result of each check, in their order."""
    for name, check in checks.items():
        yield Result(check=name, findings=tuple(_findings(check, context)))


def has_fault(results: Iterable[Result]) -> bool:
    return any(
        finding.severity is Severity.FAULT for result in results for finding in result.findings
    )


def _findings(check: Check, context: ClusterContext) -> Iterator[Finding]:
    try:
        yield from check(context)
    except ForbiddenError as error:
        yield note("this check", f"cannot be made: {error}", "run the doctor as an administrator")
    except KubeError as error:
        yield fault("this check", f"cannot be made: {error}", "see whether the API server answers")
