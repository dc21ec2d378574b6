"""Questions in the form of objects: access reviews and token reviews. Nothing is stored."""

from __future__ import annotations

from sandbox.apiserver.access.rbac import Action
from sandbox.apiserver.handlers.context import Context
from sandbox.apiserver.handlers.mutations import read_object
from sandbox.apiserver.model import clock, errors
from sandbox.apiserver.model.entry import Obj
from sandbox.apiserver.model.user import User
from sandbox.apiserver.wire.request import Reply, Request, Target, json_reply


async def review(context: Context, request: Request, target: Target) -> Reply:
    """Answer a create on one of the review kinds."""
    body = await read_object(request)
    resource = target.resource
    body["apiVersion"], body["kind"] = resource.api_version, resource.kind
    body["metadata"] = body.get("metadata") or {}
    spec: Obj = body.get("spec") or {}
    match resource.plural:
        case "selfsubjectaccessreviews":
            body["status"] = _decide(context, request.user, spec)
        case "subjectaccessreviews" | "localsubjectaccessreviews":
            user = User(
                spec.get("user", ""), frozenset(spec.get("groups") or ()), spec.get("uid", "")
            )
            body["status"] = _decide(context, user, spec)
        case "selfsubjectrulesreviews":
            body["status"] = _rules(context, request.user, spec)
        case "tokenreviews":
            owner = context.authenticator.review(spec.get("token", ""))
            body["status"] = (
                {"authenticated": True, "user": owner.info} if owner else _UNKNOWN_TOKEN
            )
        case "selfsubjectreviews":
            body["metadata"] = {"creationTimestamp": clock.stamp()}
            body["status"] = {"userInfo": request.user.info}
        case other:
            raise errors.bad_request(f"no such review: {other}")
    return json_reply(body, 201)


_UNKNOWN_TOKEN: Obj = {"authenticated": False, "error": "invalid bearer token"}


def _decide(context: Context, user: User, spec: Obj) -> Obj:
    path = spec.get("nonResourceAttributes")
    if path:
        action = Action(verb=path.get("verb", ""), path=path.get("path", ""))
    else:
        asked: Obj = spec.get("resourceAttributes") or {}
        action = Action(
            verb=asked.get("verb", ""),
            group=asked.get("group", ""),
            resource=asked.get("resource", ""),
            namespace=asked.get("namespace", ""),
            name=asked.get("name", ""),
            sub=asked.get("subresource", ""),
        )
    if context.authorizer.allows(user, action):
        return {"allowed": True}
    return {"allowed": False}


def _rules(context: Context, user: User, spec: Obj) -> Obj:
    rules = context.authorizer.rules(user, spec.get("namespace", ""))
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
