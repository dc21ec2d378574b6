"""Admission webhooks: find those that match a request, call them, and apply their responses.

A webhook is called over HTTPS with the AdmissionReview of the real server. Mutating webhooks run one after
the other, and each receives the changes of the previous ones; validating webhooks run at the same time.
The sandbox has no service network, so a webhook needs a `url`. A webhook with a service is treated as
unreachable, and its failurePolicy decides.
"""

from __future__ import annotations

import asyncio
import ssl
import uuid
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson

from sandbox.apiserver.model import errors
from sandbox.apiserver.model.entry import Entry, Obj
from sandbox.apiserver.model.selectors import object_selector
from sandbox.apiserver.patch.operations import apply_operations
from sandbox.apiserver.schema.rules import RuleError, Rules
from sandbox.apiserver.storage.store import Store
from sandbox.apiserver.wire.request import Target

MUTATING = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
VALIDATING = "validatingwebhookconfigurations.admissionregistration.k8s.io"
_EXEMPT_GROUP = "admissionregistration.k8s.io"


class WebhookUnreachableError(Exception):
    """A webhook gave no usable response; its failurePolicy decides what follows."""


@dataclass(frozen=True, slots=True)
class HookCall:
    """The data of a request that webhooks receive."""

    operation: str
    target: Target
    user: dict[str, Any]
    dry_run: bool
    warnings: list[str]
    options: Obj


class Webhooks:
    """The registered webhooks, parsed, and the connections to them."""

    def __init__(self, store: Store, rules: Rules) -> None:
        self._store = store
        self._rules = rules
        self._mutating: list[Obj] = []
        self._validating: list[Obj] = []
        self._session: aiohttp.ClientSession | None = None
        #: CA bundle -> the TLS context that trusts it.
        self._contexts: dict[str, ssl.SSLContext] = {}
        store.listeners.append(self._on_change)

    @property
    def has_mutating(self) -> bool:
        return bool(self._mutating)

    @property
    def has_validating(self) -> bool:
        return bool(self._validating)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def mutate(self, call: HookCall, obj: Obj, old: Obj | None) -> Obj:
        """Return the object after all matching mutating webhooks."""
        for hook in self._mutating:
            if not self._matches(hook, call, obj, old):
                continue
            response = await self._call(hook, call, obj, old)
            if response is None or not response.get("patch"):
                continue
            operations = orjson.loads(b64decode(response["patch"]))
            obj = apply_operations(obj, operations)
        return obj

    async def validate(self, call: HookCall, obj: Obj | None, old: Obj | None) -> None:
        """Call the matching validating webhooks; raise the first refusal."""
        matching = [hook for hook in self._validating if self._matches(hook, call, obj, old)]
        if matching:
            await asyncio.gather(*(self._call(hook, call, obj, old) for hook in matching))

    def _on_change(self, storage: str, before: Entry | None, after: Entry | None) -> None:
        if storage == MUTATING:
            self._mutating = self._read(MUTATING)
        elif storage == VALIDATING:
            self._validating = self._read(VALIDATING)

    def _read(self, storage: str) -> list[Obj]:
        entries = sorted(self._store.collection(storage).entries.values(), key=lambda e: e.name)
        return [hook for entry in entries for hook in entry.load().get("webhooks") or ()]

    def _matches(self, hook: Obj, call: HookCall, obj: Obj | None, old: Obj | None) -> bool:
        if call.target.resource.group == _EXEMPT_GROUP:
            return False
        if not any(_rule_matches(rule, call) for rule in hook.get("rules") or ()):
            return False
        if not self._namespace_matches(hook, call, obj or old or {}):
            return False
        selects = object_selector(hook.get("objectSelector"))
        if selects is not None and not any(
            selects(_labels(state)) for state in (obj, old) if state
        ):
            return False
        return self._conditions_hold(hook, call, obj, old)

    def _namespace_matches(self, hook: Obj, call: HookCall, obj: Obj) -> bool:
        selects = object_selector(hook.get("namespaceSelector"))
        if selects is None:
            return True
        if call.target.resource.storage == "namespaces":
            return selects(_labels(obj))
        if not call.target.resource.namespaced:
            return True
        entry = self._store.get("namespaces", "", call.target.namespace)
        return selects(entry.labels if entry else {})

    def _conditions_hold(self, hook: Obj, call: HookCall, obj: Obj | None, old: Obj | None) -> bool:
        conditions = hook.get("matchConditions")
        if not conditions:
            return True
        request = _request(call, "", obj, old)
        # Expressions read the objects as variables of their own.
        del request["object"], request["oldObject"]
        values = {"object": obj, "oldObject": old, "request": request}
        for condition in conditions:
            try:
                if not self._rules.decide(condition["expression"], values):
                    return False
            except RuleError as error:
                if hook["failurePolicy"] == "Ignore":
                    return False
                raise errors.internal(
                    f"failed evaluating matchConditions of {hook['name']}: {error}"
                ) from error
        return True

    async def _call(
        self, hook: Obj, call: HookCall, obj: Obj | None, old: Obj | None
    ) -> Obj | None:
        """Return the response that allows the request; None if the webhook failed and may be ignored."""
        try:
            response = await self._post(hook, _review(call, obj, old))
        except WebhookUnreachableError as error:
            message = f'failed calling webhook "{hook["name"]}": {error}'
            if hook["failurePolicy"] == "Ignore":
                return None
            raise errors.internal(message) from error
        call.warnings.extend(response.get("warnings") or ())
        if not response.get("allowed"):
            raise _denial(hook["name"], response.get("status") or {})
        return response

    async def _post(self, hook: Obj, review: Obj) -> Obj:
        config = hook["clientConfig"]
        url = config.get("url")
        if not url:
            service = config["service"]
            host = f"{service['name']}.{service['namespace']}.svc"
            raise WebhookUnreachableError(
                f'failed to call webhook: service "{host}" is not routed in the sandbox'
            )
        timeout_s = hook.get("timeoutSeconds", 10)
        if self._session is None:
            self._session = aiohttp.ClientSession()
        try:
            async with self._session.post(
                url,
                data=orjson.dumps(review),
                params={"timeout": f"{timeout_s}s"},
                headers={"content-type": "application/json", "accept": "application/json, */*"},
                ssl=self._context(config.get("caBundle", "")),
                timeout=aiohttp.ClientTimeout(total=timeout_s),
            ) as reply:
                body = await reply.read()
                if reply.status != 200:
                    raise WebhookUnreachableError(
                        f"failed to call webhook: the server returned {reply.status}"
                    )
        except TimeoutError as error:
            raise WebhookUnreachableError(
                f'failed to call webhook: Post "{url}?timeout={timeout_s}s": context deadline exceeded'
            ) from error
        except aiohttp.ClientError as error:
            raise WebhookUnreachableError(
                f'failed to call webhook: Post "{url}": {error}'
            ) from error
        return _response(body, review["request"]["uid"])

    def _context(self, bundle: str) -> ssl.SSLContext:
        if bundle not in self._contexts:
            context = ssl.create_default_context()
            if bundle:
                context.load_verify_locations(cadata=b64decode(bundle).decode())
            self._contexts[bundle] = context
        return self._contexts[bundle]


def _response(body: bytes, uid: str) -> Obj:
    try:
        response: Obj = orjson.loads(body)["response"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise WebhookUnreachableError(
            "expected response in the body of an AdmissionReview"
        ) from error
    if response.get("uid") != uid:
        raise WebhookUnreachableError(f"expected response.uid={uid!r}, got {response.get('uid')!r}")
    return response


def _denial(name: str, status: Obj) -> errors.ApiError:
    message = status.get("message") or status.get("reason")
    verdict = (
        f"denied the request: {message}" if message else "denied the request without explanation"
    )
    code = max(status.get("code") or 0, 400)
    reason = status.get("reason") or ""
    details = status.get("details")
    return errors.ApiError(code, reason, f'admission webhook "{name}" {verdict}', details=details)


def _rule_matches(rule: Obj, call: HookCall) -> bool:
    resource = call.target.resource
    if not _includes(call.operation, rule.get("operations")):
        return False
    if not _includes(resource.group, rule.get("apiGroups")):
        return False
    if not _includes(resource.version, rule.get("apiVersions")):
        return False
    scope = rule.get("scope", "*")
    if scope != "*" and (scope == "Namespaced") != resource.namespaced:
        return False
    return any(
        _matches_resource(pattern, resource.plural, call.target.sub)
        for pattern in rule.get("resources") or ()
    )


def _includes(value: str, allowed: list[str] | None) -> bool:
    return bool(allowed) and ("*" in (allowed or ()) or value in (allowed or ()))


def _matches_resource(pattern: str, plural: str, sub: str) -> bool:
    plural_pattern, slash, sub_pattern = pattern.partition("/")
    if plural_pattern not in ("*", plural):
        return False
    return sub_pattern in ("*", sub) if slash else not sub


def _labels(obj: Mapping[str, Any] | None) -> dict[str, str]:
    labels: dict[str, str] = ((obj or {}).get("metadata") or {}).get("labels") or {}
    return labels


def _review(call: HookCall, obj: Obj | None, old: Obj | None) -> Obj:
    request = _request(call, str(uuid.uuid4()), obj, old)
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


def _request(call: HookCall, uid: str, obj: Obj | None, old: Obj | None) -> Obj:
    target, resource = call.target, call.target.resource
    state = obj or old or {}
    kind_group, _, kind_version = str(state.get("apiVersion", resource.api_version)).rpartition("/")
    kind = {"group": kind_group, "version": kind_version, "kind": state.get("kind", resource.kind)}
    plural = {"group": resource.group, "version": resource.version, "resource": resource.plural}
    request: Obj = {
        "uid": uid,
        "kind": kind,
        "resource": plural,
        "requestKind": kind,
        "requestResource": plural,
        "name": (state.get("metadata") or {}).get("name", target.name),
        "operation": call.operation,
        "userInfo": call.user,
        "object": obj,
        "oldObject": old,
        "dryRun": call.dry_run,
        "options": {
            "kind": f"{call.operation.capitalize()}Options",
            "apiVersion": "meta.k8s.io/v1",
            **call.options,
        },
    }
    if target.sub:
        request["subResource"] = request["requestSubResource"] = target.sub
    if resource.namespaced:
        request["namespace"] = target.namespace
    elif resource.storage == "namespaces":
        request["namespace"] = request["name"]
    return request
