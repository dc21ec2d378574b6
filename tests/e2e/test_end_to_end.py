"""The main job once more, on a real kube-apiserver: the checks of the embedded cluster, and those of rights."""

from __future__ import annotations

import pytest

from kaiweb.supervisor.layout import ACCOUNTS
from tests.e2e.audit import FORBIDDEN, AuditLog
from tests.e2e.manifests import DEVICE, VOLUME
from tests.e2e.rest import Session
from tests.integration.end_to_end import EndToEndChecks, workloads  # noqa: F401 - a fixture
from tests.integration.stack import Stack, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.integration, pytest.mark.timeout(300)]


def _node_of(stack: Stack, name: str) -> str:
    (pod,) = stack.objects("pod", name, "-n", "kai-test")
    return str(pod["spec"].get("nodeName", ""))


class TestEndToEndOnRealCluster(EndToEndChecks):
    """Every end-to-end check; those of rights come last, after the processes have used their accounts."""

    def test_the_webhooks_are_registered_by_url_with_our_authority(self, workloads: Stack):  # noqa: F811
        hooks = [
            hook
            for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
            for configuration in workloads.objects(kind)
            for hook in configuration["webhooks"]
        ]
        assert {hook["name"] for hook in hooks} == {
            "admission.kai-scheduler.svc",
            "topology.admission.kai-scheduler.svc",
            "queue-validation.kai.scheduler",
            "podgroup-validation.kai.scheduler",
        }
        for hook in hooks:
            assert hook["clientConfig"]["url"].startswith("https://127.0.0.1:")
            assert hook["clientConfig"]["caBundle"]

    def test_a_quota_edited_through_rest_arrives_in_the_cluster(self, workloads: Stack):  # noqa: F811
        person = Session(workloads)
        _, etag = person.call("GET", "queues/speech")
        body = {"quota": {"gpu": 9}}
        answer, _ = person.call("PATCH", "queues/speech", body, If_Match=etag)
        assert answer["changed"]
        queue = workloads.objects("queue", "speech")[0]
        assert queue["spec"]["resources"]["gpu"]["quota"] == 9

    def test_a_pod_waits_for_its_static_volume_and_follows_it(self, workloads: Stack):  # noqa: F811
        """The simulated volume controller binds the claim once the scheduler has chosen the volume."""
        workloads.kubectl("apply", "-f", "-", stdin=VOLUME)
        wait_until(
            lambda: _node_of(workloads, "reader"), what="the bound pod reader", stack=workloads
        )
        claim = workloads.objects("pvc", "books", "-n", "kai-test")[0]
        assert (claim["status"]["phase"], claim["spec"]["volumeName"]) == ("Bound", "shelf")
        reference = workloads.objects("pv", "shelf")[0]["spec"]["claimRef"]
        assert (reference["namespace"], reference["name"]) == ("kai-test", "books")
        assert _node_of(workloads, "reader") == "a100-2"

    def test_a_claimed_device_is_written_into_the_claim(self, workloads: Stack):  # noqa: F811
        workloads.kubectl("apply", "-f", "-", stdin=DEVICE)
        wait_until(
            lambda: _node_of(workloads, "viewer"), what="the bound pod viewer", stack=workloads
        )
        assert _node_of(workloads, "viewer") == "a100-3"
        status = workloads.objects("resourceclaim", "one-lens", "-n", "kai-test")[0]["status"]
        (result,) = status["allocation"]["devices"]["results"]
        assert (result["driver"], result["pool"], result["request"]) == (
            "optics.example.test",
            "a100-3",
            "lens",
        )
        assert [user["name"] for user in status["reservedFor"]] == ["viewer"]

    def test_every_process_acts_under_its_own_account(self, workloads: Stack, audit: AuditLog):  # noqa: F811
        def bound_by() -> set[str]:
            return {r.account for r in audit.requests() if r.resource == "pods/binding"}

        assert wait_until(bound_by, what="a binding in the audit log") == {"binder"}
        assert {request.account for request in audit.requests()} == set(ACCOUNTS)

    def test_no_request_of_ours_was_forbidden(self, workloads: Stack, audit: AuditLog):  # noqa: F811
        refused = {request for request in audit.requests() if request.code == FORBIDDEN}
        assert sorted(refused) == []
