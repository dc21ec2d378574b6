"""The OpenAPI v2 document in protobuf, reduced to the part that kubectl reads.

kubectl requests v2 (in protobuf only) when a kind is not in the v3 index that it read before, e.g. when
one command applies a CRD and then an object of it. It only looks for a PATCH with the parameter
`fieldValidation` of that kind, or of Namespace for a custom kind.
"""

from __future__ import annotations

from sandbox.apiserver.model.resources import Registry

MEDIA = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


def is_wanted(accept: str) -> bool:
    """Return whether a client accepts v2 as protobuf only; old clients write the media type with @."""
    return "proto-openapi.spec.v2" in accept and "json" not in accept


def encode(registry: Registry) -> bytes:
    """Return a gnostic `openapi_v2.Document` with the PATCH operation of every kind."""
    paths = b""
    for resource in registry.all():
        if "patch" not in resource.verbs:
            continue
        base = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
        gvk = (
            f"group: {_yaml(resource.group)}\nkind: {resource.kind}\nversion: {resource.version}\n"
        )
        paths += _field(2, _named(f"{base}/{resource.plural}/{{name}}", _path_item(gvk)))
    info = _text(1, "Kubernetes") + _text(2, registry.bundle.version.get("gitVersion", ""))
    return _text(1, "2.0") + _field(2, info) + _field(8, paths)


def _path_item(gvk: str) -> bytes:
    parameter = _text(2, "query") + _text(4, "fieldValidation") + _text(6, "string")
    # wrapped as ParametersItem.parameter > Parameter.non_body_parameter > .query_parameter_sub_schema
    wrapped = _field(1, _field(2, _field(3, parameter)))
    extension = _named("x-kubernetes-group-version-kind", _text(2, gvk))
    operation = _field(8, wrapped) + _field(13, extension)
    return _field(8, operation)  # PathItem.patch


def _named(name: str, value: bytes) -> bytes:
    return _text(1, name) + _field(2, value)


def _text(number: int, text: str) -> bytes:
    return _field(number, text.encode())


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _yaml(text: str) -> str:
    return text or '""'
