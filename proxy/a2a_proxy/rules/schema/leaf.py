"""Checks of values without members: texts, numbers, enums, timestamps, bytes (A2A 1.0 sections 5.5,
5.6.1)."""

import re
from base64 import b64decode
from datetime import datetime

from a2a_proto.shapes.json_0_3 import json_0_3
from a2a_proto.shapes.shape import Family, Grammar, JsonKind, ObjectShape, ShapeMember
from a2a_proxy.model.values import Severity
from a2a_proxy.rules.schema.fault import FaultKind, SchemaFault, format_value

LARGE = 1 << 20
"""Bytes of inline content above which a part should use a URL."""
_MAX_INT32 = 2**31 - 1
_MAX_PAGE = 100
_INTEGER = re.compile(r"-?[0-9]+")
_STAMP = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?(Z|z|[+-]\d\d:?\d\d)?", re.ASCII)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s]+")
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_MEDIA_TYPE = re.compile(rf"{_TOKEN}/{_TOKEN}\s*(;.*)?", re.DOTALL)


def check_value(
    grammar: Grammar, shape: ObjectShape, name: str, member: ShapeMember, value: object, path: str
) -> SchemaFault | None:
    """Return the fault of one value that is not null, or None."""
    kind = member.kind
    if kind is JsonKind.ENUM:
        return _check_enum(grammar, shape, member.type_name, value, path)
    if kind is JsonKind.INT32:
        return _check_number(grammar, shape, name, value, path)
    if grammar.binary:  # the protobuf parser ensures the type
        return (
            _check_content(shape, name, value, path)
            if kind in (JsonKind.TEXT, JsonKind.BYTES)
            else None
        )
    if kind is JsonKind.TEXT:
        return (
            _check_content(shape, name, value, path)
            if isinstance(value, str)
            else _make_type_fault(path, value, "a text")
        )
    if kind is JsonKind.BOOL:
        return None if isinstance(value, bool) else _make_type_fault(path, value, "true or false")
    if kind is JsonKind.OBJECT:
        return None if isinstance(value, dict) else _no_object(path, value)
    if kind is JsonKind.STAMP:
        return _check_timestamp(grammar, value, path)
    if kind is JsonKind.BYTES:
        return _check_bytes(shape, name, value, path)
    return None


def _make_type_fault(path: str, value: object, wanted: str) -> SchemaFault:
    return SchemaFault(
        FaultKind.RANGE,
        path,
        f"`{path}` is {format_value(value)}, expected {wanted}",
        format_value(value),
    )


def _no_object(path: str, value: object) -> SchemaFault:
    return SchemaFault(
        FaultKind.NOT_OBJECT,
        path,
        f"`{path}` is {format_value(value)}, expected an object",
        format_value(value),
    )


def _check_enum(
    grammar: Grammar, shape: ObjectShape, enum: str, value: object, path: str
) -> SchemaFault | None:
    names = grammar.enums[enum]
    if isinstance(value, str) and value in names and value != names[0]:
        return None
    if shape.name == "ListTasksRequest" and value == names[0]:  # no filter
        return None
    if _is_of_other_dialect(grammar.family, value):
        return SchemaFault(
            FaultKind.OTHER_ENUM, path, f"`{path}` is {format_value(value)}, which is "
                f"not the spelling of "
            f"{grammar.family.value}",
            format_value(value),
        )  # fmt: skip
    if (
        isinstance(value, int)
        and not isinstance(value, bool)
        and not grammar.binary
        and 0 < value < len(names)
    ):
        told = f"`{path}` is the number {value}, expected {format_value(names[value])} in JSON"
        return SchemaFault(FaultKind.OTHER_ENUM, path, told, format_value(value), Severity.WARNING)
    if value == names[0]:
        # 0.x defines this state, although it carries no information.
        severity = Severity.INFO if value == "unknown" else None
        return SchemaFault(
            FaultKind.ENUM,
            path,
            f"`{path}` is {format_value(value)}, which carries no information",
            format_value(value),
            severity,
        )
    return SchemaFault(
        FaultKind.ENUM,
        path,
        f"`{path}` is {format_value(value)}, which is not a {enum}",
        format_value(value),
    )


def _is_of_other_dialect(family: Family, value: object) -> bool:
    """Whether the value is spelled as in another dialect."""
    if not isinstance(value, str):
        return False
    if family in (Family.OLD, Family.OLDEST):
        return value.startswith(("TASK_STATE_", "ROLE_"))
    if value == ("TASK_STATE_CANCELED" if family is Family.OLD_PROTO else "TASK_STATE_CANCELLED"):
        return True
    return any(value in names[1:] for names in json_0_3().enums.values())


def _check_number(
    grammar: Grammar, shape: ObjectShape, name: str, value: object, path: str
) -> SchemaFault | None:
    number = _parse_integer(value, lenient=grammar.family not in (Family.OLD, Family.OLDEST))
    if number is None:
        return _make_type_fault(path, value, "an integer")
    if name == "pageSize" and shape.name == "ListTasksRequest":
        within, wanted = 1 <= number <= _MAX_PAGE, f"between 1 and {_MAX_PAGE}"
    elif name in ("historyLength", "pageSize", "totalSize", "timelineLength"):
        within, wanted = 0 <= number <= _MAX_INT32, "0 or more, within 32 bits"
    else:
        within, wanted = abs(number) <= _MAX_INT32 + 1, "within 32 bits"
    return (
        None
        if within
        else SchemaFault(
            FaultKind.RANGE, path, f"`{path}` is {number}, expected {wanted}", str(number)
        )
    )


def _parse_integer(value: object, lenient: bool) -> int | None:
    """Return the integer, or None. ProtoJSON also accepts integers in texts, and whole numbers in
    any notation."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if not lenient:
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(value[:40]) if isinstance(value, str) and _INTEGER.fullmatch(value) else None


def _check_timestamp(grammar: Grammar, value: object, path: str) -> SchemaFault | None:
    old = grammar.family in (Family.OLD, Family.OLDEST)
    found = _STAMP.fullmatch(value) if isinstance(value, str) else None
    if not isinstance(value, str) or found is None or not _is_time(value):
        return SchemaFault(
            FaultKind.TIMESTAMP,
            path,
            f"`{path}` is {format_value(value)}, which is not an ISO 8601 time",
            format_value(value),
        )
    fraction, zone = found.groups()
    if old:
        if zone:
            return None
        return SchemaFault(
            FaultKind.TIMESTAMP,
            path,
            f"`{path}` is {format_value(value)}, which has no time zone",
            format_value(value),
            Severity.INFO,
        )
    if zone != "Z":
        told = f"`{path}` is {format_value(value)}, expected UTC with `Z`"
        return SchemaFault(FaultKind.TIMESTAMP, path, told, format_value(value))
    if fraction is None:
        told = f"`{path}` is {format_value(value)}, which has no milliseconds"
        return SchemaFault(FaultKind.TIMESTAMP, path, told, format_value(value), Severity.INFO)
    return None


def _is_time(value: str) -> bool:
    try:
        datetime.fromisoformat(value[:19].upper())
    except ValueError:
        return False
    return True


def _check_bytes(shape: ObjectShape, name: str, value: object, path: str) -> SchemaFault | None:
    if not isinstance(value, str) or not _is_base64(value):
        return SchemaFault(
            FaultKind.BASE64,
            path,
            f"`{path}` is {format_value(value)}, which is not base64",
            format_value(value),
        )
    return _check_content(shape, name, value, path)


def _is_base64(value: str) -> bool:
    """Whether the text is base64 in either alphabet, padded or not."""
    text = value.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        return False
    return True


def _check_content(shape: ObjectShape, name: str, value: object, path: str) -> SchemaFault | None:
    """Check the content of parts and files."""
    assert isinstance(value, str)
    if shape.name not in CONTENT:
        return None
    if name in ("url", "uri", "fileWithUri") and not _URI.fullmatch(value):
        return SchemaFault(
            FaultKind.MEDIA,
            path,
            f"`{path}` is {format_value(value)}, expected an absolute URI",
            format_value(value),
        )
    if name in ("mediaType", "mimeType") and value and not _MEDIA_TYPE.fullmatch(value):
        return SchemaFault(
            FaultKind.MEDIA,
            path,
            f"`{path}` is {format_value(value)}, expected type/subtype",
            format_value(value),
        )
    if name in _INLINE and len(value) > LARGE:
        size = len(value) if name == "text" else len(value) * 3 // 4
        if size > LARGE:
            told = (
                f"`{path}` contains {size} bytes inline; a `url` would keep them out of every copy "
                f"of the message"
            )
            return SchemaFault(FaultKind.LARGE, path, told, str(size))
    return None


CONTENT = frozenset(("Part", "FilePart", "File", "PartText"))
"""Shapes whose texts are checked."""
_INLINE = frozenset(("text", "raw", "bytes", "fileWithBytes"))
