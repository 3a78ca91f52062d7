"""Payloads as readable members of a JSON line, and back to the same bytes.

Each representation is tried on the payload itself, and used only if it restores exactly these
bytes.
"""

import json
from base64 import b64decode, b64encode
from typing import Any, cast

from a2a_proto import ParseError, RenderError, SchemaSet, from_dict, parse, to_dict
from a2a_proxy.protocol.schema import is_protobuf, split_schema

_MAX_DEPTH = 200
_STYLES: dict[str, tuple[tuple[str, str], bool]] = {
    "": ((",", ":"), False),
    "spaced": ((", ", ": "), False),
    "ascii": ((",", ":"), True),
    "spaced-ascii": ((", ", ": "), True),
}
"""Styles of JSON: separators, and whether characters beyond ASCII are escaped. The member `json`
names the style, except the first.
"""
_UNREADABLE = (ValueError, RecursionError)
_RENDER_ERRORS = (ParseError, RenderError, KeyError, RecursionError)


def write_payload(payload: bytes, schema: str) -> dict[str, Any]:
    """Return the member that holds a payload: `data` (JSON, or ProtoJSON of a protobuf message),
    `text`, or `raw_b64`.

    JSON that is not compact also has `json`, the name of its style. If a protobuf message does not
    survive ProtoJSON, `view` shows it in addition to `raw_b64`, for people only.
    """
    if not payload:
        return {}
    if is_protobuf(schema):
        try:
            value = json.loads(dump_json(to_dict(parse(*_schema_type(schema), payload))))
        except _RENDER_ERRORS:
            return _raw_member(payload)
        try:
            if _serialize_protobuf(value, schema) == payload:
                return {"data": value}
        except ValueError:
            pass
        return {**_raw_member(payload), "view": value}
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return _raw_member(payload)
    return (_json_member(text) if schema != "text" else None) or {"text": text}


def read_payload(line: dict[str, Any], schema: str) -> bytes:
    """Return the bytes that were passed to `write_payload`. Raises ValueError if the line has no
    valid payload."""
    if "raw_b64" in line:
        return b64decode(line["raw_b64"], validate=True)
    if "text" in line:
        return str(line["text"]).encode()
    if "data" not in line:
        return b""
    if is_protobuf(schema):
        return _serialize_protobuf(line["data"], schema)
    style = line.get("json", "")
    if style not in _STYLES:
        raise ValueError(f"unknown JSON style: {style}")
    return dump_json(line["data"], style).encode()


def dump_json(value: Any, style: str = "") -> str:
    """Return JSON in one of the styles, compact by default. Raises ValueError for NaN and
    infinity."""
    separators, ascii_only = _STYLES[style]
    return json.dumps(value, ensure_ascii=ascii_only, allow_nan=False, separators=separators)


def _json_member(text: str) -> dict[str, Any] | None:
    """Return the parsed value with the style that restores this text, or None if no style does."""
    try:
        value = json.loads(text)
        # Whether every JSON parser can read the text, also one level deeper, inside a line.
        if not (text.count("{") + text.count("[") <= _MAX_DEPTH or _depth_of(value) <= _MAX_DEPTH):
            return None
        styles = next((style for style in _STYLES if dump_json(value, style) == text), None)
    except _UNREADABLE:
        return None
    if styles is None:
        return None
    return {"data": value, "json": styles} if styles else {"data": value}


def _depth_of(value: Any) -> int:
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth_of, below), default=0)


def _serialize_protobuf(value: Any, schema: str) -> bytes:
    try:
        return from_dict(*_schema_type(schema), value).SerializeToString(deterministic=True)
    except _RENDER_ERRORS as error:
        raise ValueError(str(error)) from error


def _schema_type(schema: str) -> tuple[SchemaSet, str]:
    line, name = split_schema(schema)
    return cast("SchemaSet", line), name


def _raw_member(payload: bytes) -> dict[str, Any]:
    return {"raw_b64": b64encode(payload).decode("ascii")}
