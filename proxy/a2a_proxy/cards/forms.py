"""The bytes of a card that are signed, in each form that the specification and the SDKs use.

Needs the extra `cards`.
"""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
import rfc8785

from a2a_proto import RenderError, from_dict, to_dict
from a2a_proto.shapes.json_0_3 import json_0_3
from a2a_proto.shapes.required_members import REQUIRED_MEMBERS
from a2a_proto.shapes.shape import JsonKind, camel_case
from a2a_proxy.model.card_signature import CardForm

Json = dict[str, Any]

MAX_DEPTH = 128
"""Open objects and arrays; SDKs refuse cards that nest deeper."""
_MAX_PATHS = 20

_FLOW_0_3: Json = {
    "authorizationUrl": None,
    "refreshUrl": None,
    "scopes": {"*": None},
    "tokenUrl": None,
}
_OBJECTS_0_3: Json = {
    "security": {"*": None},
    **dict.fromkeys(("authorizationCode", "clientCredentials", "implicit", "password"), _FLOW_0_3),
}
"""The members of objects whose content the shapes of 0.3 leave open."""
_DEFAULTS_0_3 = {"preferredTransport": "JSONRPC", "protocolVersion": "0.3.0"}


class SignedForm(msgspec.Struct, frozen=True):
    """A card in one form."""

    form: CardForm
    data: bytes
    covered: Json
    """The members that `data` has, or that it lacks only because they have a default."""


def signed_forms(card: Json) -> Iterator[SignedForm]:
    """Yield the card, as served, in each form that it has, in the order in which verifiers should
    try them.

    A card that is no valid 1.0 card lacks the forms of 1.0; one that nests too deeply, or has a
    number that RFC 8785 cannot represent, may lack any.
    """
    served = {name: value for name, value in card.items() if name != "signatures"}
    if nests_too_deeply(served):
        return
    yield from _forms_1_0(served)
    known = clean_empty(_known_members(served, _members_0_3("AgentCard"))) or {}
    bare = clean_empty(_without_defaults_0_3(known)) or {}
    yield SignedForm(CardForm.PYTHON_0_3, _dump_python(bare), known)
    if (data := _dump_canonical(served)) is not None:
        yield SignedForm(CardForm.AS_SERVED, data, served)


def _forms_1_0(served: Json) -> Iterator[SignedForm]:
    try:
        message = from_dict("1.0", "AgentCard", served, lenient=True)
        rendered = _with_float_params(to_dict(message))
        present = _with_required(message, _with_float_params(to_dict(message)))
    except (
        RenderError,
        RecursionError,
        AttributeError,
    ):  # protobuf raises the last one for arrays in wrong places
        return
    cleaned = clean_empty(rendered) or {}
    if (data := _dump_canonical(present)) is not None:
        yield SignedForm(CardForm.SPECIFICATION, data, present)
    if (data := _dump_canonical(cleaned)) is not None:
        yield SignedForm(CardForm.SDK, data, cleaned)
    yield SignedForm(CardForm.PYTHON_1_1_2, _dump_python(cleaned), cleaned)
    if "securitySchemes" in cleaned:
        rest = {name: value for name, value in cleaned.items() if name != "securitySchemes"}
        if (data := _dump_canonical(rest)) is not None:
            yield SignedForm(CardForm.JAVASCRIPT_OBJECT, data, rest)


def _with_float_params(rendered: Json) -> Json:
    """Make each number in the parameters of extensions a float, as protobuf has it: Python SDKs
    sign `1.0` for `1`."""
    for extension in rendered.get("capabilities", {}).get("extensions", ()):
        if "params" in extension:
            extension["params"] = _to_floats(extension["params"])
    return rendered


def _to_floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _to_floats(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_to_floats(each) for each in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _dump_canonical(value: Json) -> bytes | None:
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError):
        return None


def _dump_python(value: Json) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def nests_too_deeply(value: Any, depth: int = 1) -> bool:
    """Whether a JSON value has more than `MAX_DEPTH` open objects and arrays."""
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return depth > MAX_DEPTH or any(nests_too_deeply(each, depth + 1) for each in inner)


def clean_empty(value: Any) -> Any:
    """Return a JSON value without empty texts, arrays and objects at any depth; None if nothing is
    left."""
    if isinstance(value, dict):
        kept = {
            name: inner for name, each in value.items() if (inner := clean_empty(each)) is not None
        }
        return kept or None
    if isinstance(value, list):
        return [inner for each in value if (inner := clean_empty(each)) is not None] or None
    return None if value == "" else value


def _with_required(message: Any, rendered: Json) -> Json:
    """Add the required members at their default, which are signed too, to the ProtoJSON of a
    message, at any depth."""
    needed = REQUIRED_MEMBERS.get(message.DESCRIPTOR.name, "").split()
    for field in message.DESCRIPTOR.fields:
        inner = field.message_type
        name = field.json_name
        if name in needed and name not in rendered:
            if inner is not None and inner.GetOptions().map_entry:
                rendered[name] = {}
            elif field.is_repeated:
                rendered[name] = []
            elif inner is None:
                rendered[name] = field.default_value
        if inner is None or name not in rendered or inner.full_name.startswith("google.protobuf."):
            continue
        value = getattr(message, field.name)
        if inner.GetOptions().map_entry:
            if inner.fields_by_name["value"].message_type is not None:
                for key in value:
                    _with_required(value[key], rendered[name][key])
        elif field.is_repeated:
            for each, shown in zip(value, rendered[name], strict=True):
                _with_required(each, shown)
        else:
            _with_required(value, rendered[name])
    return rendered


@cache
def _members_0_3(shape: str) -> Json:
    """Return the members of an object of 0.3; `*` stands for every name, None for a value that is
    kept as it is."""
    found: Json = {}
    for name, member in json_0_3().shapes[shape].members.items():
        inner = _members_0_3(member.type_name) if member.type_name else _OBJECTS_0_3.get(name)
        found[name] = {"*": inner} if member.kind is JsonKind.MAP else inner
    return found


def _known_members(value: Any, members: Json | None) -> Any:
    """Return a value of 0.3 without members that its schema does not define, and without `null`."""
    if members is None:
        return value
    if isinstance(value, list):
        return [_known_members(each, members) for each in value]
    if not isinstance(value, dict):
        return value
    any_name = "*" in members
    return {
        name: _known_members(each, members["*"] if any_name else members[name])
        for name, each in value.items()
        if each is not None and (any_name or name in members)
    }


def _without_defaults_0_3(card: Json) -> Json:
    """Return a card of 0.3 without members at the default of its schema; `type` of a scheme is such
    a member."""
    kept = {name: value for name, value in card.items() if _DEFAULTS_0_3.get(name) != value}
    schemes = kept.get("securitySchemes")
    if isinstance(schemes, dict):
        kept["securitySchemes"] = {
            name: {member: each for member, each in scheme.items() if member != "type"}
            if isinstance(scheme, dict)
            else scheme
            for name, scheme in schemes.items()
        }
    return kept


def uncovered_members(card: Json, covered: Json) -> tuple[str, ...]:
    """Return the paths of members of a card that are not in `covered`, at most 20.

    Members at a default (`false`, 0, an empty text or array) are not listed, because leaving them
    out says the same.
    """
    served = {name: value for name, value in card.items() if name != "signatures"}
    return tuple(
        path for path, _ in zip(_missing(served, covered, ""), range(_MAX_PATHS), strict=False)
    )


def _missing(served: Any, covered: Any, path: str) -> Iterator[str]:
    if isinstance(served, dict) and isinstance(covered, dict):
        for name, value in served.items():
            place = f"{path}.{name}" if path else name
            found = name if name in covered else camel_case(name)
            if found in covered:
                yield from _missing(value, covered[found], place)
            elif value or isinstance(value, dict):
                yield place
    elif isinstance(served, list) and isinstance(covered, list):
        places = [(f"{path}[{index}]", value) for index, value in enumerate(served)]
        if len(served) != len(covered):  # empty elements were dropped
            yield from (place for place, value in places if clean_empty(value) is None)
            places = [each for each in places if clean_empty(each[1]) is not None]
        for (place, value), other in zip(places, covered, strict=False):
            yield from _missing(value, other, place)
