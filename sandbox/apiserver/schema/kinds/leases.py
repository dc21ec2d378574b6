"""The rules of Leases, with which controllers elect their leader."""

from __future__ import annotations

import re

from sandbox.apiserver.model import errors
from sandbox.apiserver.model.errors import Cause
from sandbox.apiserver.schema.kinds.base import Obj

_TIMES = ("acquireTime", "renewTime")
_MICRO_TIME = re.compile(r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$")


def default_lease(lease: Obj) -> None:
    """Refuse times that are none, as decoding does on the real server.

    Raises
    ------
    ApiError : 400 for such a time
    """
    spec = lease.get("spec") or {}
    for field in _TIMES:
        value = spec.get(field)
        if isinstance(value, str) and not _MICRO_TIME.match(value):
            raise errors.bad_request(
                'Lease in version "v1" cannot be handled as a Lease: parsing time '
                f'"{value}" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "{value}" as "2006"'
            )


def validate_lease(lease: Obj) -> list[Cause]:
    spec = lease.get("spec") or {}
    causes = []
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        detail = "must be greater than 0"
        causes.append(errors.invalid_value("spec.leaseDurationSeconds", duration, detail))
    if transitions is not None and transitions < 0:
        detail = "must be greater than or equal to 0"
        causes.append(errors.invalid_value("spec.leaseTransitions", transitions, detail))
    return causes
