"""Access reviews and token reviews: the status of the posted object is the answer; nothing is stored."""

from __future__ import annotations

from sandbox.apiserver.access.rbac import AccessAttributes
from sandbox.apiserver.handlers.mutations import read_object
from sandbox.apiserver.handlers.parts import ServerParts
from sandbox.apiserver.model import clock, errors
from sandbox.apiserver.model.entry import Obj
from sandbox.apiserver.model.user import User
from sandbox.apiserver.wire.request import Reply, Request, Target, json_reply


async def review(parts: ServerParts, request: Request, target: Target) -> Reply:
    """Return the posted review with its status filled in."""
    body = await read_object(request)
    resource = target.resource
    body["apiVersion"], body["kind"] = resource.api_version, resource.kind
    body["metadata"] = body.get("metadata") or {}
    spec: Obj = body.get("spec") or {}
    if resource.plural.endswith("accessreviews"):
        _check_access_spec(resource.plural, spec)
    match resource.plural:
        case "selfsubjectaccessreviews":
            body["status"] = _decide(parts, request.user, spec)
        case "subjectaccessreviews" | "localsubjectaccessreviews":
            user = User(
                spec.get("user", ""), frozenset(spec.get("groups") or ()), spec.get("uid", "")
            )
            body["status"] = _decide(parts, user, spec)
        case "selfsubjectrulesreviews":
            body["status"] = _rules(parts, request.user, spec)
        case "tokenreviews":
            body["status"] = _review_token(parts, spec)
        case "selfsubjectreviews":
            body["metadata"] = {"creationTimestamp": clock.stamp()}
            body["status"] = {"userInfo": request.user.info}
        case other:
            raise errors.bad_request(f"no such review: {other}")
    return json_reply(body, 201)


def _check_access_spec(plural: str, spec: Obj) -> None:
    causes = []
    if bool(spec.get("resourceAttributes")) == bool(spec.get("nonResourceAttributes")):
        both = spec.get("resourceAttributes")
        detail = (
            "cannot be specified in combination with resourceAttributes"
            if both
            else "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        )
        field = "spec.nonResourceAttributes" if both else "spec.resourceAttributes"
        value = spec.get("nonResourceAttributes")
        causes.append(errors.invalid_value(field, value, detail))
    if not plural.startswith("self") and not spec.get("user") and not spec.get("groups"):
        detail = "at least one of user or group must be specified"
        causes.append(errors.invalid_value("spec.user", "", detail))
    if causes:
        raise errors.invalid("authorization.k8s.io", "", "", causes)


_UNKNOWN_TOKEN: Obj = {"user": {}, "error": "invalid bearer token"}


def _review_token(parts: ServerParts, spec: Obj) -> Obj:
    reviewed = parts.authenticator.review(spec.get("token", ""), spec.get("audiences") or ())
    if reviewed is None:
        return _UNKNOWN_TOKEN
    owner, audiences = reviewed
    return {"authenticated": True, "user": owner.info, "audiences": audiences}


def _decide(parts: ServerParts, user: User, spec: Obj) -> Obj:
    path = spec.get("nonResourceAttributes")
    if path:
        access = AccessAttributes(verb=path.get("verb", ""), path=path.get("path", ""))
    else:
        attributes: Obj = spec.get("resourceAttributes") or {}
        access = AccessAttributes(
            verb=attributes.get("verb", ""),
            group=attributes.get("group", ""),
            resource=attributes.get("resource", ""),
            namespace=attributes.get("namespace", ""),
            name=attributes.get("name", ""),
            sub=attributes.get("subresource", ""),
        )
    if parts.authorizer.allows(user, access):
        return {"allowed": True}
    return {"allowed": False}


def _rules(parts: ServerParts, user: User, spec: Obj) -> Obj:
    rules = parts.authorizer.rules(user, spec.get("namespace", ""))
    if "system:masters" in user.groups:
        rules = [
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
            {"verbs": ["*"], "nonResourceURLs": ["*"]},
        ]
    return {
        "resourceRules": [rule for rule in rules if rule.get("resources")],
        "nonResourceRules": [rule for rule in rules if rule.get("nonResourceURLs")],
        "incomplete": False,
    }
