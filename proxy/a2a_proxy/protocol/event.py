"""Payloads of any dialect as canonical 1.0 JSON and as typed events (manual/protocol.md "Canonical
form").

For display and export, not for the hot path. Known members are renamed and moved; unknown ones stay
in place.
"""

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import msgspec

from a2a_proto import RenderError, parse, to_dict
from a2a_proxy.model.event import Event
from a2a_proxy.model.values import EVENT_WRAPPERS, Dialect, EventKind, FrameKind
from a2a_proxy.protocol.canonical import CanonicalForm, Json
from a2a_proxy.protocol.json_summary import MAX_DEPTH, fit_result, kind_of, rename_to_camel
from a2a_proxy.protocol.operations import OPERATION_BY_NAME, ResponseKind
from a2a_proxy.protocol.request import canonical_request
from a2a_proxy.protocol.schema import JSON, MEDIA_SCHEMA_SET, is_protobuf, split_schema


def normalise_event(
    payload: bytes, schema: str, dialect: Dialect, operation: str, kind: FrameKind
) -> Json:
    """Return the event, answer or request in canonical 1.0 JSON form; empty if the payload cannot
    be read.

    Events are wrapped as in a StreamResponse: `{"statusUpdate": {...}}`. Errors are
    `{"error": {...}}`. Callers must not change the result: the next call with the same arguments
    returns the same object.
    """
    # 0.x without `kind` is the protobuf form, whose data parts hold their JSON one level deeper.
    wraps_data = dialect not in (Dialect.V1_0, Dialect.V1_1)
    if wraps_data and schema == JSON:
        wraps_data = b'"data"' in payload or b"\\u" in payload
    row = None if kind is FrameKind.REQUEST else OPERATION_BY_NAME.get(operation)
    expected = row.answer if row is not None else ResponseKind.STREAM
    return _normalise_cached(
        payload,
        schema,
        wraps_data,
        operation if kind is FrameKind.REQUEST else None,
        expected,
        kind is FrameKind.EVENT,
    )


@lru_cache(
    maxsize=1
)  # a caller that shows a frame needs a one-line summary first, then the full payload
def _normalise_cached(
    payload: bytes,
    schema: str,
    wraps_data: bool,
    request_operation: str | None,
    expected: ResponseKind,
    streaming: bool,
) -> Json:
    """Implement `normalise_event`; `request_operation` is the operation of a request, None for
    other frames."""
    value = decode_payload(payload, schema)
    if isinstance(value, dict) and ("jsonrpc" in value or "error" in value):
        if "error" in value and not isinstance(value.get("result"), dict):
            return {"error": value["error"]}
        value = (
            value["result"]
            if "result" in value
            else value.get("params", {})
            if "method" in value
            else value
        )
    value = (
        rename_to_camel(value)
        if schema != JSON or _SNAKE_CASE_MARK.search(payload) or b"\\u" in payload
        else value
    )
    if schema.endswith(f"@{MEDIA_SCHEMA_SET}") and isinstance(value, dict):
        value = next(
            (inner for name in _MEDIA_WRAPPERS if isinstance(inner := value.get(name), dict)), value
        )
    form = CanonicalForm(wraps_data)
    if request_operation is not None:
        return canonical_request(form, value, request_operation) if isinstance(value, dict) else {}
    return canonical_answer(form, value, expected, streaming)


_SNAKE_CASE_MARK = re.compile(rb"_[a-z]")
"""Mark of a payload with a member in snake_case, except where the name is written with `\\u`."""
_MEDIA_WRAPPERS = ("event", "message")
"""Members of the media proposal that wrap a 1.0 event and a request (manual/protocol.md "Fields of
the live proposals")."""


def to_event(
    payload: bytes, schema: str, dialect: Dialect, operation: str, kind: FrameKind
) -> Event:
    """Return `normalise_event` as a typed event, without members of a wrong type; all unset if the
    payload is not an event."""
    return event_from_json(normalise_event(payload, schema, dialect, operation, kind))


def decode_payload(payload: bytes, schema: str) -> Any:
    """Return a payload as plain JSON values in its own dialect, or None if it cannot be read."""
    try:
        if schema == JSON:
            return msgspec.json.decode(payload)
        if is_protobuf(schema):
            line, name = split_schema(schema)
            return to_dict(parse(line, name, payload))  # type: ignore[arg-type]
    except (ValueError, KeyError, RecursionError, RenderError):
        return None
    return None


def canonical_answer(
    form: CanonicalForm, value: Any, expected: ResponseKind, streaming: bool
) -> Json:
    """Return one answer or event in canonical form; lists of 0.x become the objects of 1.0."""
    if expected is ResponseKind.TASKS:
        return _canonical_list(value, "tasks", partial(form.convert, "Task"))
    if expected is ResponseKind.PUSH_CONFIGS:
        return _canonical_list(value, "configs", form.push_config)
    if not isinstance(value, dict):
        return {}
    if expected is ResponseKind.PUSH_CONFIG:
        return form.push_config(value)
    return (
        value
        if expected in (ResponseKind.CARD, ResponseKind.EMPTY)
        else canonical_event(form, value, streaming)
    )


def _canonical_list(value: Any, name: str, shape: Callable[[Json], Json]) -> Json:
    around = value if isinstance(value, dict) else {}
    entries = around.get(name) if isinstance(value, dict) else value
    made = (
        [shape(entry) for entry in entries if isinstance(entry, dict)]
        if isinstance(entries, list)
        else []
    )
    return {**around, name: made}


def canonical_event(form: CanonicalForm, value: Json, streaming: bool) -> Json:
    """Return one result or event in its wrapper. A value that is no A2A object is returned
    unchanged."""
    if not _BARE_EVENT_MEMBERS.isdisjoint(value):
        wrapper = EVENT_WRAPPERS.get(_kind_of_bare_event(value, streaming))
        if wrapper is None:
            return value
        value = {wrapper: value}
    return form.convert("StreamResponse", value)


_BARE_EVENT_MEMBERS = frozenset(("kind", "status", "artifact", "parts", "content"))
"""Members of objects without a wrapper."""


def _kind_of_bare_event(value: Json, streaming: bool) -> EventKind:
    """Return the kind of an object without a wrapper."""
    if "kind" in value or "status" in value or "artifact" in value:
        return kind_of(fit_result(value), streaming)
    return EventKind.MESSAGE


_MAX_REPAIRS = 50


def event_from_json(value: Json) -> Event:
    """Convert a normalised event to an Event; members of a wrong type are left out."""
    value = _remove_nulls(value)
    for _ in range(_MAX_REPAIRS):
        try:
            return msgspec.convert(value, Event, strict=False)
        except msgspec.ValidationError as error:
            if not _remove_member(value, str(error).rpartition("`$")[2].rstrip("`")):
                break
    return Event()


def _remove_nulls(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Remove null members, because ProtoJSON null means unset (A2A 1.0 section 5.5), except in the
    peer's own data."""
    if not depth:
        return value
    if isinstance(value, dict):
        return {
            name: item if name in ("data", "metadata") else _remove_nulls(item, depth - 1)
            for name, item in value.items()
            if item is not None or name == "data"
        }
    return (
        [_remove_nulls(item, depth - 1) for item in value if item is not None]
        if isinstance(value, list)
        else value
    )


def _remove_member(value: Any, path: str) -> bool:
    """Remove the member that msgspec names as `.task.history[...].parts`; for a list with a wrong
    item, the whole list.

    Returns whether there was such a member.
    """
    names = path.partition("[")[0].strip(".").split(".")
    for name in names[:-1]:
        value = value.get(name) if isinstance(value, dict) else None
    return isinstance(value, dict) and value.pop(names[-1], None) is not None
