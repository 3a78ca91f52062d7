"""Frame decoding shared by the rules about JSON-RPC."""

import json
import re
from typing import Any

import msgspec

from a2a_proxy.model.values import Binding, Frame, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.operations import JSONRPC_METHODS
from a2a_proxy.protocol.schema import BYTES, JSON
from a2a_proxy.rules.context import RuleContext

Json = dict[str, Any]

_DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def read_envelope(context: RuleContext) -> Json:
    """Return the request or response if it is a JSON object, or an empty dict if the frame is not
    JSON-RPC.

    An HTTP error without `jsonrpc` was sent by a server in front of the agent and is not a JSON-RPC
    response.
    """
    found: Json | None = context.cache.get("envelope")
    if found is None:
        found = context.cache["envelope"] = _decode_envelope(context)
    return found


def _decode_envelope(context: RuleContext) -> Json:
    value = context.value if context.frame.schema == JSON else _decode_other_type(context.frame)
    if not isinstance(value, dict):
        return {}
    is_foreign_event = (
        context.frame.kind is FrameKind.UNDECODABLE and context.binding is Binding.JSONRPC
    )
    if context.is_bare_event or (is_foreign_event and context.frame.framing):
        return {}  # not a response: another rule reports it
    refused = (
        context.exchange.status // 100 != 2
        and not is_from_client(context)
        and context.binding is not Binding.STDIO
    )
    return {} if refused and "jsonrpc" not in value else value


def is_from_client(context: RuleContext) -> bool:
    """Whether the frame was sent to the agent."""
    return context.frame.direction is Direction.TO_AGENT


def _decode_other_type(frame: Frame) -> Any:
    """Return the JSON value of a body that was sent under a content type other than JSON, or
    None."""
    if (
        frame.kind is FrameKind.COMMENT
        or frame.truncated
        or frame.payload.lstrip()[:1] not in (b"{", b"[")
    ):
        return None
    try:
        return msgspec.json.decode(frame.payload)
    except _DECODE_ERRORS:
        return None


def operation_name(request: Json) -> str:
    """Return the 1.0 name of the operation that a request calls, or an empty string if its method
    is not an A2A method.

    A batch has no single operation.
    """
    method = request.get("method")
    row = JSONRPC_METHODS.get(method) if isinstance(method, str) else None
    return row[0].name if row is not None else ""


def short_json(value: object) -> str:
    """Return a value as JSON for a summary, at most 60 characters."""
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def json_kind(value: object) -> str:
    """Return the type of a JSON value in words, with its article: `an array`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    return (
        "a string"
        if isinstance(value, str)
        else "an array"
        if isinstance(value, list)
        else "an object"
    )


def find_json_error(data: bytes) -> int:
    """Return the position at which the text stops being JSON, in characters (in bytes if it is not
    UTF-8), or -1 if it is one JSON value.

    Text that merely exceeds the limits of the decoder (numbers, lone surrogates, depth) counts as
    JSON.
    """
    try:
        msgspec.json.decode(data)
    except _DECODE_ERRORS:
        return _locate_json_error(data)
    return -1


def _locate_json_error(data: bytes) -> int:
    try:
        text = data.decode()
        json.loads(text, parse_constant=_refuse_constant, parse_int=str)
    except UnicodeDecodeError as error:
        return error.start
    except json.JSONDecodeError as error:
        return error.pos
    except RecursionError:
        return -1
    except _InvalidConstant:
        return next(
            found.start() for found in _CONSTANT_PATTERN.finditer(text) if found.group()[0] != '"'
        )
    return -1


class _InvalidConstant(Exception):
    """NaN or Infinity, which are not JSON."""


_CONSTANT_PATTERN = re.compile(r'"(?:[^"\\]|\\.)*"|NaN|-?Infinity')
"""The constants that are not JSON, and strings, which may contain them."""


def _refuse_constant(word: str) -> None:
    raise _InvalidConstant(word)


def is_whole_text(frame: Frame) -> bool:
    """Whether the payload is a complete body as sent: neither truncated nor compressed."""
    encoded = frame.kind is FrameKind.UNDECODABLE and frame.schema == BYTES
    return not (frame.truncated or frame.note == "body broke off" or encoded)
