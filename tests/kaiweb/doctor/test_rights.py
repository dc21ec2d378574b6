"""Each right of deploy/rbac is asked for, and what is missing is named."""

from __future__ import annotations

from kaiweb import install
from kaiweb.doctor.rights import ACCOUNTS, Right, check_rights, needed_rights
from kube.errors import ForbiddenError
from kube.resources import SERVICE_ACCOUNTS
from tests.kaiweb.doctor.cluster import DEPLOY, ReviewingGateway, body, findings, lines

NAMESPACE = "kai-scheduler"


def installed() -> ReviewingGateway:
    gateway = ReviewingGateway()
    gateway.seed(
        SERVICE_ACCOUNTS,
        *(body(SERVICE_ACCOUNTS, account, namespace=NAMESPACE) for account in ACCOUNTS),
    )
    return gateway


def test_rights_follow_the_bindings_to_the_accounts() -> None:
    rights = needed_rights(install.documents(DEPLOY / "rbac"), "gpu")
    assert Right("", "pods", "delete") in rights["scheduler"]
    assert Right("", "pods/binding", "create") in rights["binder"]
    assert Right("", "pods/binding", "create") not in rights["scheduler"]
    # Through the bindings of deploy/rbac/controllers.yaml.
    assert Right("scheduling.run.ai", "queues/status", "patch") in rights["pod-grouper"]
    # A Role of the installation's namespace, for one Secret.
    secret = Right("", "secrets", "update", "gpu", "kai-admission-webhook-tls-secret")
    assert secret in rights["web"]
    assert Right("", "secrets", "create", "gpu") in rights["web"]


def test_accounts_with_all_rights_cause_no_finding() -> None:
    gateway = installed()
    assert lines(check_rights, gateway) == []
    users = {user for user, _ in gateway.asked}
    assert users == {f"system:serviceaccount:{NAMESPACE}:{account}" for account in ACCOUNTS}


def test_missing_rights_are_named_by_account() -> None:
    gateway = installed()
    gateway.is_allowed = lambda user, right: (
        not (
            user.endswith(":binder")
            and right["resource"] == "pods"
            and right["subresource"] == "binding"
        )
    )
    assert lines(check_rights, gateway) == [
        "fault: account binder: may not: create pods/binding; patch pods/binding; update pods/binding"
    ]


def test_of_many_missing_rights_a_few_are_named() -> None:
    gateway = installed()
    gateway.is_allowed = lambda user, _right: not user.endswith(":operator")
    (finding,) = findings(check_rights, gateway)
    assert finding.text.count(";") == 4
    assert "more" in finding.text


def test_an_account_that_may_not_ask_about_others_asks_about_itself() -> None:
    gateway = installed()
    gateway.user = f"system:serviceaccount:{NAMESPACE}:web"

    def only_itself(user: str, _right: dict[str, str]) -> bool:
        if user != gateway.user:
            raise ForbiddenError("subjectaccessreviews is forbidden", status=403)
        return True

    gateway.is_allowed = only_itself
    results = findings(check_rights, gateway)
    assert [item.subject for item in results] == [
        f"account {account}" for account in ACCOUNTS if account != "web"
    ]
    assert all(str(item.severity) == "note" for item in results)


def test_an_installation_without_accounts_is_only_noted() -> None:
    (line,) = lines(check_rights, ReviewingGateway())
    assert line.startswith("note: accounts: the accounts of deploy/rbac are not in namespace")
