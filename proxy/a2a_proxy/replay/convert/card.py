"""Agent cards between JSON and ProtoJSON, because dialects up to 0.3 write security differently in
each (manual/protocol.md "JSON objects before 1.0")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from a2a_proxy.model.values import Binding
from a2a_proxy.protocol.canonical import Json, without_members
from a2a_proxy.protocol.security_schemes import SCHEME_TYPES, SCHEME_WRAPPERS


def convert_card(value: Json, binding: Binding) -> Json:
    """Return a card as a binding carries it. Cards of 1.0 are the same on all bindings."""
    if "supportedInterfaces" in value:
        return value
    protobuf = binding in (Binding.GRPC, Binding.REST)
    scheme, requirement = (
        (_wrap_scheme, _wrap_requirements) if protobuf else (_unwrap_scheme, _unwrap_requirements)
    )
    converted = _convert_security(value, scheme, requirement)
    if isinstance(value.get("skills"), list):
        converted["skills"] = [
            _convert_security(one, scheme, requirement)
            for one in value["skills"]
            if isinstance(one, dict)
        ]
    return converted


def _convert_security(
    value: Json, scheme: Callable[[Json], Json], requirement: Callable[[Json], Json]
) -> Json:
    converted = dict(value)
    if isinstance(value.get("securitySchemes"), dict):
        found = value["securitySchemes"].items()
        converted["securitySchemes"] = {
            name: scheme(one) if isinstance(one, dict) else one for name, one in found
        }
    if isinstance(value.get("security"), list):
        converted["security"] = [
            requirement(one) for one in value["security"] if isinstance(one, dict)
        ]
    return converted


def _wrap_scheme(value: Json) -> Json:
    member = SCHEME_WRAPPERS.get(str(value.get("type")))
    if member is None:
        return value
    inner = without_members(value, "type", "in")
    return {member: inner | {"location": value["in"]} if "in" in value else inner}


def _unwrap_scheme(value: Json) -> Json:
    member = next((name for name in value if name in SCHEME_TYPES), None)
    if member is None or not isinstance(value[member], dict):
        return value
    inner: Json = {"type": SCHEME_TYPES[member], **without_members(value[member], "location")}
    return inner | {"in": value[member]["location"]} if "location" in value[member] else inner


def _wrap_requirements(value: Json) -> Json:
    """Return `{"key": [...]}` as `{"schemes": {"key": {"list": [...]}}}`."""
    if set(value) == {"schemes"} and isinstance(value["schemes"], dict):
        return value
    return {"schemes": {name: {"list": scopes} if scopes else {} for name, scopes in value.items()}}


def _unwrap_requirements(value: Json) -> Json:
    found: Any = value.get("schemes")
    if set(value) != {"schemes"} or not isinstance(found, dict):
        return value
    return {
        name: one.get("list", []) if isinstance(one, dict) else one for name, one in found.items()
    }
