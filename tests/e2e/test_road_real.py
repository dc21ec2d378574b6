"""The main job once more, on a real kube-apiserver: the checks of the embedded cluster, and those of rights."""

from __future__ import annotations

import pytest

from kaiweb.supervisor.layout import ACCOUNTS
from tests.e2e.audit import FORBIDDEN, AuditLog
from tests.integration.road import RoadChecks, road  # noqa: F401 - a fixture
from tests.integration.stack import Stack, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.integration, pytest.mark.timeout(300)]


class TestRoadReal(RoadChecks):
    """Every check of the road; those below come last, when the processes have used their rights."""

    def test_every_process_acts_under_its_own_account(self, road: Stack, audit: AuditLog):  # noqa: F811
        def bound_by() -> set[str]:
            return {r.account for r in audit.requests() if r.resource == "pods/binding"}

        assert wait_until(bound_by, what="a binding in the audit log") == {"binder"}
        assert {request.account for request in audit.requests()} == set(ACCOUNTS)

    def test_no_request_of_ours_was_forbidden(self, road: Stack, audit: AuditLog):  # noqa: F811
        refused = {request for request in audit.requests() if request.code == FORBIDDEN}
        assert sorted(refused) == []
