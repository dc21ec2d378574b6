"""Check that each account has the rights that its process needs.

The rights are those of deploy/rbac. The API server is asked about each one: by a SelfSubjectAccessReview with the
credentials of the account where there are any, else by a SubjectAccessReview about the account.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from typing import Any

from kaiweb import install
from kaiweb.doctor.finding import ClusterContext, Finding, fault, note
from kube.client import connect
from kube.errors import ForbiddenError, KubeError, NotFoundError
from kube.gateway import Gateway
from kube.resources import (
    SELF_ACCESS_REVIEWS,
    SELF_SUBJECT_REVIEWS,
    SERVICE_ACCOUNTS,
    SUBJECT_ACCESS_REVIEWS,
)
from kube.values.texts import first_few

#: The namespace that deploy/rbac is written for; the installation may be in another one.
FILES_NAMESPACE = "kai-scheduler"
#: How many questions are open at the API server at a time.
PARALLEL = 8
#: How many rights one finding names.
SHOWN = 5
REMEDY = "kubectl apply -f deploy/rbac, or helm upgrade"
#: The accounts under which processes of kaiweb run; deploy/rbac also has others with KAI's names.
ACCOUNTS = ("web", "pod-grouper", "scheduler", "binder", "operator")

IsAllowed = Callable[["Right"], bool]


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One verb on one kind; `namespace` and `name` are empty for all."""

    group: str
    resource: str
    verb: str
    namespace: str = ""
    name: str = ""

    def text(self) -> str:
        kind = f"{self.resource}.{self.group}" if self.group else self.resource
        place = f" in {self.namespace}" if self.namespace else ""
        return f"{self.verb} {kind}{f' {self.name}' if self.name else ''}{place}"

    def attributes(self) -> dict[str, str]:
        """Return the right as a review asks for it."""
        resource, _, sub = self.resource.partition("/")
        return {
            "group": self.group,
            "resource": resource,
            "subresource": sub,
            "verb": self.verb,
            "namespace": self.namespace,
            "name": self.name,
        }


def check_rights(context: ClusterContext) -> Iterator[Finding]:
    """Report what an account may not do."""
    rights = needed_rights(install.documents(context.deploy / "rbac"), context.namespace)
    for account in ACCOUNTS:
        try:
            ask = _reviewer(context, account)
        except KubeError as error:
            yield note(f"account {account}", f"its rights cannot be checked: {error}")
            continue
        if ask is None:
            continue
        yield from _missing(account, rights[account], ask)
    if context.accounts is None and not _has_accounts(context):
        yield note(
            "accounts",
            f"the accounts of deploy/rbac are not in namespace {context.namespace}:"
            " every process acts as the user of one kubeconfig",
            REMEDY,
        )


def needed_rights(documents: list[install.Manifest], namespace: str) -> Mapping[str, set[Right]]:
    """Return the rights of each account that roles and bindings grant."""
    rules = {
        (item["kind"], item["metadata"]["name"], _scope(item["metadata"], namespace)): item["rules"]
        for item in documents
        if item["kind"] in ("ClusterRole", "Role")
    }
    rights: dict[str, set[Right]] = {account: set() for account in ACCOUNTS}
    for item in documents:
        if item["kind"] not in ("ClusterRoleBinding", "RoleBinding"):
            continue
        scope = _scope(item["metadata"], namespace)
        role = item["roleRef"]
        key = (role["kind"], role["name"], "" if role["kind"] == "ClusterRole" else scope)
        granted = {right for rule in rules[key] for right in _rights_of(rule, scope)}
        for subject in item["subjects"]:
            if subject["name"] in rights:
                rights[subject["name"]] |= granted
    return rights


def _scope(metadata: Mapping[str, Any], namespace: str) -> str:
    """Return the namespace of an object of deploy/rbac as it is installed; "" for the whole cluster."""
    written: str = metadata.get("namespace", "")
    return namespace if written == FILES_NAMESPACE else written


def _rights_of(rule: Mapping[str, Any], namespace: str) -> Iterator[Right]:
    names = rule.get("resourceNames", [""])
    for group, resource, verb, name in product(
        rule["apiGroups"], rule["resources"], rule["verbs"], names
    ):
        yield Right(group, resource, verb, namespace, name)


def _has_accounts(context: ClusterContext) -> bool:
    try:
        context.gateway.get(
            SERVICE_ACCOUNTS, "scheduler", as_type=dict, namespace=context.namespace
        )
    except NotFoundError:
        return False
    except ForbiddenError:
        return True  # an administrator would not be refused: this is one of the accounts
    return True


def _reviewer(context: ClusterContext, account: str) -> IsAllowed | None:
    """Return the function that asks about rights of an account; None if the accounts do not exist here."""
    if context.accounts is not None:
        gateway_of_account = connect(context.accounts / f"{account}.kubeconfig")
        return lambda right: _self_review(gateway_of_account, right)
    if not _has_accounts(context):
        return None
    user = f"system:serviceaccount:{context.namespace}:{account}"
    if _user_of(context.gateway) == user:
        return lambda right: _self_review(context.gateway, right)

    def ask(right: Right) -> bool:
        return _review_of(context.gateway, user, context.namespace, right)

    ask(Right("", "pods", "get"))  # raises if we may not ask about others
    return ask


def _user_of(gateway: Gateway) -> str:
    """Return who we are; "" where the API server does not say."""
    body = {"apiVersion": SELF_SUBJECT_REVIEWS.api_version, "kind": SELF_SUBJECT_REVIEWS.kind}
    try:
        answer = gateway.create(SELF_SUBJECT_REVIEWS, body)
    except (NotFoundError, ForbiddenError):
        return ""
    user: str = answer.get("status", {}).get("userInfo", {}).get("username", "")
    return user


def _self_review(gateway: Gateway, right: Right) -> bool:
    spec = {"resourceAttributes": right.attributes()}
    return _answer(gateway.create(SELF_ACCESS_REVIEWS, _review(SELF_ACCESS_REVIEWS.kind, spec)))


def _review_of(gateway: Gateway, user: str, namespace: str, right: Right) -> bool:
    spec = {
        "user": user,
        "groups": [
            "system:serviceaccounts",
            f"system:serviceaccounts:{namespace}",
            "system:authenticated",
        ],
        "resourceAttributes": right.attributes(),
    }
    review = _review(SUBJECT_ACCESS_REVIEWS.kind, spec)
    return _answer(gateway.create(SUBJECT_ACCESS_REVIEWS, review))


def _review(kind: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": SELF_ACCESS_REVIEWS.api_version, "kind": kind, "spec": spec}


def _answer(review: Mapping[str, Any]) -> bool:
    return bool(review.get("status", {}).get("allowed"))


def _missing(account: str, rights: set[Right], ask: IsAllowed) -> Iterator[Finding]:
    ordered = sorted(rights)
    with ThreadPoolExecutor(PARALLEL) as pool:
        answers = list(pool.map(ask, ordered))
    missing = [right for right, is_allowed in zip(ordered, answers, strict=True) if not is_allowed]
    if missing:
        listed = first_few([right.text() for right in missing], SHOWN, "; ")
        yield fault(f"account {account}", f"may not: {listed}", REMEDY)
