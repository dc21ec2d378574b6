"""The few protobuf bodies that kubectl sends without asking: decoded by a table of field numbers.

Typed Go clients post reviews, tokens, service accounts and small objects as protobuf and do not fall
back on 415. These messages are small and frozen, so a table of numbers reads them; any other kind is
answered 415, and JSON clients never come here.
"""

from __future__ import annotations

import datetime as dt
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from sandbox.apiserver import clock, errors

MEDIA = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"

Obj = dict[str, Any]
# number -> (name, type); a type is a message name, or text | bytes | int | bool | time,
# with [] for repeated fields and {} for maps from text.
Fields = dict[int, tuple[str, str]]

_ATTRIBUTES: Fields = {
    1: ("namespace", "text"),
    2: ("verb", "text"),
    3: ("group", "text"),
    4: ("version", "text"),
    5: ("resource", "text"),
    6: ("subresource", "text"),
    7: ("name", "text"),
}
_MESSAGES: dict[str, Fields] = {
    "ObjectMeta": {
        1: ("name", "text"),
        2: ("generateName", "text"),
        3: ("namespace", "text"),
        5: ("uid", "text"),
        6: ("resourceVersion", "text"),
        11: ("labels", "text{}"),
        12: ("annotations", "text{}"),
        13: ("ownerReferences", "OwnerReference[]"),
        14: ("finalizers", "text[]"),
    },
    "OwnerReference": {
        1: ("kind", "text"),
        3: ("name", "text"),
        4: ("uid", "text"),
        5: ("apiVersion", "text"),
        6: ("controller", "bool"),
        7: ("blockOwnerDeletion", "bool"),
    },
    "ResourceAttributes": _ATTRIBUTES,
    "NonResourceAttributes": {1: ("path", "text"), 2: ("verb", "text")},
    "AccessReviewSpec": {
        1: ("resourceAttributes", "ResourceAttributes"),
        2: ("nonResourceAttributes", "NonResourceAttributes"),
        3: ("user", "text"),
        4: ("groups", "text[]"),
        6: ("uid", "text"),
    },
    "SelfSubjectAccessReview": {1: ("metadata", "ObjectMeta"), 2: ("spec", "AccessReviewSpec")},
    "SubjectAccessReview": {1: ("metadata", "ObjectMeta"), 2: ("spec", "AccessReviewSpec")},
    "LocalSubjectAccessReview": {1: ("metadata", "ObjectMeta"), 2: ("spec", "AccessReviewSpec")},
    "RulesReviewSpec": {1: ("namespace", "text")},
    "SelfSubjectRulesReview": {1: ("metadata", "ObjectMeta"), 2: ("spec", "RulesReviewSpec")},
    "SelfSubjectReview": {1: ("metadata", "ObjectMeta")},
    "TokenReviewSpec": {1: ("token", "text"), 2: ("audiences", "text[]")},
    "TokenReview": {1: ("metadata", "ObjectMeta"), 2: ("spec", "TokenReviewSpec")},
    "BoundObjectReference": {
        1: ("kind", "text"),
        2: ("apiVersion", "text"),
        3: ("name", "text"),
        4: ("uid", "text"),
    },
    "TokenRequestSpec": {
        1: ("audiences", "text[]"),
        3: ("boundObjectRef", "BoundObjectReference"),
        4: ("expirationSeconds", "int"),
    },
    "TokenRequest": {1: ("metadata", "ObjectMeta"), 2: ("spec", "TokenRequestSpec")},
    "LocalObjectReference": {1: ("name", "text")},
    "ServiceAccount": {
        1: ("metadata", "ObjectMeta"),
        3: ("imagePullSecrets", "LocalObjectReference[]"),
        4: ("automountServiceAccountToken", "bool"),
    },
    "Namespace": {1: ("metadata", "ObjectMeta")},
    "ConfigMap": {
        1: ("metadata", "ObjectMeta"),
        2: ("data", "text{}"),
        3: ("binaryData", "bytes{}"),
        4: ("immutable", "bool"),
    },
    "Secret": {
        1: ("metadata", "ObjectMeta"),
        2: ("data", "bytes{}"),
        3: ("type", "text"),
        4: ("stringData", "text{}"),
        5: ("immutable", "bool"),
    },
    "PriorityClass": {
        1: ("metadata", "ObjectMeta"),
        2: ("value", "int"),
        3: ("globalDefault", "bool"),
        4: ("description", "text"),
        5: ("preemptionPolicy", "text"),
    },
    "PolicyRule": {
        1: ("verbs", "text[]"),
        2: ("apiGroups", "text[]"),
        3: ("resources", "text[]"),
        4: ("resourceNames", "text[]"),
        5: ("nonResourceURLs", "text[]"),
    },
    "Role": {1: ("metadata", "ObjectMeta"), 2: ("rules", "PolicyRule[]")},
    "ClusterRole": {1: ("metadata", "ObjectMeta"), 2: ("rules", "PolicyRule[]")},
    "Subject": {
        1: ("kind", "text"),
        2: ("apiGroup", "text"),
        3: ("name", "text"),
        4: ("namespace", "text"),
    },
    "RoleRef": {1: ("apiGroup", "text"), 2: ("kind", "text"), 3: ("name", "text")},
    "RoleBinding": {
        1: ("metadata", "ObjectMeta"),
        2: ("subjects", "Subject[]"),
        3: ("roleRef", "RoleRef"),
    },
    "ClusterRoleBinding": {
        1: ("metadata", "ObjectMeta"),
        2: ("subjects", "Subject[]"),
        3: ("roleRef", "RoleRef"),
    },
    "Preconditions": {1: ("uid", "text"), 2: ("resourceVersion", "text")},
    "DeleteOptions": {
        1: ("gracePeriodSeconds", "int"),
        2: ("preconditions", "Preconditions"),
        3: ("orphanDependents", "bool"),
        4: ("propagationPolicy", "text"),
        5: ("dryRun", "text[]"),
    },
    "Eviction": {1: ("metadata", "ObjectMeta"), 2: ("deleteOptions", "DeleteOptions")},
    "ObjectReference": {
        1: ("kind", "text"),
        2: ("namespace", "text"),
        3: ("name", "text"),
        4: ("uid", "text"),
        5: ("apiVersion", "text"),
    },
    "Binding": {1: ("metadata", "ObjectMeta"), 2: ("target", "ObjectReference")},
    "LeaseSpec": {
        1: ("holderIdentity", "text"),
        2: ("leaseDurationSeconds", "int"),
        3: ("acquireTime", "time"),
        4: ("renewTime", "time"),
        5: ("leaseTransitions", "int"),
    },
    "Lease": {1: ("metadata", "ObjectMeta"), 2: ("spec", "LeaseSpec")},
}
_TYPE_META: Fields = {1: ("apiVersion", "text"), 2: ("kind", "text")}
_TIME: Fields = {1: ("seconds", "int"), 2: ("nanos", "int")}


def is_protobuf(media: str, data: bytes) -> bool:
    return media == MEDIA or data.startswith(MAGIC)


def decode_object(data: bytes) -> Obj:
    """Decode the envelope and the object inside it.

    Raises
    ------
    ApiError : 415 for a kind that is not in the table, 400 for bytes that are no such message
    """
    if not data.startswith(MAGIC):
        raise errors.bad_request("provided data does not appear to be a protobuf message")
    head: Obj = {}
    raw = b""
    try:
        for number, value in _wire(data[len(MAGIC) :]):
            if number == 1:
                head = _message(value, _TYPE_META)
            elif number == 2:
                raw = value
        kind = head.get("kind", "")
        if kind not in _MESSAGES:
            raise errors.unsupported_body(["application/json", "application/yaml"])
        return {**head, **_message(raw, _MESSAGES[kind])}
    except (IndexError, UnicodeDecodeError) as error:
        raise errors.bad_request(f"the protobuf body is damaged: {error}") from error


def _message(data: bytes, fields: Fields) -> Obj:
    result: Obj = {}
    for number, value in _wire(data):
        if number not in fields:
            continue
        name, kind = fields[number]
        if kind.endswith("[]"):
            result.setdefault(name, []).append(_value(value, kind[:-2]))
        elif kind.endswith("{}"):
            pair = _message(value, {1: ("key", "text"), 2: ("value", kind[:-2])})
            result.setdefault(name, {})[pair.get("key", "")] = pair.get("value", "")
        else:
            decoded = _value(value, kind)
            if decoded not in ("", {}):  # Go writes empty strings and structs, JSON omits them
                result[name] = decoded
    return result


def _value(value: Any, kind: str) -> Any:
    match kind:
        case "text":
            return value.decode()
        case "bytes":
            return b64encode(value).decode()
        case "bool":
            return bool(value)
        case "int":
            return value - (1 << 64) if value >= 1 << 63 else value
        case "time":
            moment = _message(value, _TIME)
            at = dt.datetime.fromtimestamp(moment.get("seconds", 0), dt.UTC)
            fraction = moment.get("nanos", 0) // 1000
            return clock.stamp(at).replace("Z", f".{fraction:06d}Z")
        case _:
            return _message(value, _MESSAGES[kind])


def _wire(data: bytes) -> Iterator[tuple[int, Any]]:
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == 0:
            value, position = _varint(data, position)
            yield number, value
        elif wire_type == 2:
            length, position = _varint(data, position)
            if position + length > len(data):
                raise IndexError("a field is longer than the message")
            yield number, data[position : position + length]
            position += length
        elif wire_type in (1, 5):
            position += 8 if wire_type == 1 else 4
        else:
            raise IndexError(f"unknown wire type {wire_type}")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
