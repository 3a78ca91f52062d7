"""The decoded request of a recorded call, for an edit, and the same call with the edited request.

The decoded request is a JSON object in the dialect of the call: `params` of JSON-RPC, the message
of gRPC as ProtoJSON, and of REST the body together with the members that the path and query hold.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from a2a_proto import RenderError, from_dict
from a2a_proxy.drive.plan import ClientAction, PlannedCall
from a2a_proxy.model.values import JSONRPC_BINDINGS, Binding, Exchange, Frame
from a2a_proxy.protocol.canonical_form import canonical_payload, members_of_target
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.protocol.rest_path import match_request_line
from a2a_proxy.protocol.schema import JSON, is_protobuf, split_schema
from a2a_proxy.recording.difference.fields import CanonicalFields, Path, format_path
from a2a_proxy.recording.difference.ids import iter_identifiers
from a2a_proxy.redaction.labels import is_withheld
from a2a_proxy.replay.convert.protobuf_bytes import add_unknown_fields
from a2a_proxy.replay.convert.requests import rest_call
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.schema.check import schema_faults
from a2a_proxy.rules.state.records import ExchangeRecord
from a2a_proxy.rules.state.session_state import SessionState

_LABEL_PATTERN = re.compile(r"redacted-[0-9a-f]{12}")


class EditError(Exception):
    """An edit that cannot be made; the message says where and why."""


def decode_request(step: PlannedCall) -> dict[str, Any] | None:
    """Return the first message of the client as a JSON object, or None if it is not an A2A request
    that can be read."""
    exchange, frame = step.exchange, _first_frame(step)
    readable = JSONRPC_BINDINGS | {Binding.REST, Binding.GRPC}
    if not exchange.operation or exchange.binding not in readable:
        return None
    value: Any = (
        decode_payload(frame.payload, frame.schema)
        if frame.payload or is_protobuf(frame.schema)
        else {}
    )
    if exchange.binding in JSONRPC_BINDINGS and isinstance(value, dict):
        value = value.get("params", {})
    if not isinstance(value, dict):
        return None
    if exchange.binding is Binding.REST:
        return {**members_of_target(exchange.method, exchange.target), **value}
    return value


def replace_request(
    step: PlannedCall, request: dict[str, Any], *, lenient: bool = False
) -> PlannedCall:
    """Return the call with another request, in the form of `decode_request`.

    If `lenient`, members that a protobuf message does not define are left out. Raises EditError if
    the request cannot be encoded.
    """
    exchange, frame = step.exchange, _first_frame(step)
    if is_protobuf(frame.schema):
        schema_set, name = split_schema(frame.schema)
        try:
            message = from_dict(schema_set, name, request, lenient=lenient)  # type: ignore[arg-type]
        except RenderError as wrong:
            raise EditError(
                str(wrong).partition("\n")[0]
            ) from wrong  # the second line lists all fields
        data = add_unknown_fields(
            message.SerializeToString(deterministic=True), frame.payload, frame.schema
        )
    elif exchange.binding is Binding.REST:
        exchange, data = _split_rest_request(exchange, frame, request)
    else:
        envelope = decode_payload(frame.payload, JSON)
        data = msgspec.json.encode({**envelope, "params": request})
    edited = msgspec.structs.replace(frame, payload=data, size=len(data), redacted=())
    row = msgspec.structs.replace(step.row, exchange=exchange)
    return msgspec.structs.replace(
        step,
        row=row,
        turns=tuple(
            msgspec.structs.replace(turn, frame=edited) if turn.frame is frame else turn
            for turn in step.turns
        ),
    )


def set_member(request: dict[str, Any], path: Path, value: Any) -> None:
    """Set the value at a path of a request, in place. Missing objects on the way are created, and
    an index one beyond the end of a list appends.

    Raises EditError if a step is neither a member of an object nor an item of a list.
    """
    holder: Any = request
    for number, step in enumerate(path):
        is_last, place = number == len(path) - 1, format_path(path[:number])
        if isinstance(step, int):
            if not isinstance(holder, list) or step > len(holder):
                count = len(holder) if isinstance(holder, list) else -1
                length = (
                    "is not a list" if count < 0 else f"has {count} item{'' if count == 1 else 's'}"
                )
                raise EditError(f"{place} {length}")
            if step == len(holder):
                holder.append({})
        elif not isinstance(holder, dict):
            raise EditError(f"{place} is not an object")
        if is_last:
            holder[step] = value
        elif isinstance(holder, dict):
            holder = holder.setdefault(step, [] if isinstance(path[number + 1], int) else {})
        else:
            holder = holder[step]


def find_labels(step: PlannedCall) -> list[str]:
    """Return the places of labels of secrets in the body and the request target of a call, and
    payloads that were intentionally not recorded."""
    frame = _first_frame(step)
    found = [format_path(place) for place in _iter_labels(decode_request(step))]
    if not found and (is_withheld(frame) or _LABEL_PATTERN.search(frame.payload.decode("latin-1"))):
        found += [each for each in frame.redacted if not each.startswith("header:")] or [
            "the request"
        ]
    if not found and _LABEL_PATTERN.search(step.exchange.target):
        found.append(f"the request target {step.exchange.target}")
    for turn in step.turns:
        if turn.frame is None or turn.frame is frame:
            continue
        places = _iter_labels(decode_payload(turn.frame.payload, turn.frame.schema))
        found += [f"{format_path(place)} of {step.place}.{turn.frame_number}" for place in places]
    return found


def find_new_faults(recorded: PlannedCall, edited: PlannedCall) -> list[str]:
    """Return the schema faults of an edited request that the recorded one does not have, each with
    its place."""
    before = set(_schema_faults(recorded))
    return [fault for fault in _schema_faults(edited) if fault not in before]


def message_ids_of(step: PlannedCall) -> frozenset[str]:
    """Return the message ids of all messages of the client."""
    frames = [turn.frame for turn in step.turns if turn.frame is not None]
    values = [canonical_payload(frame, step.exchange) for frame in frames]
    found = (each for value in values for each in iter_identifiers(value, CanonicalFields()))
    return frozenset(name for _, kind, name in found if kind == "message")


def _iter_labels(value: Any, place: Path = ()) -> Iterator[Path]:
    """Yield the places of the texts in a JSON value that contain a label."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _iter_labels(item, (*place, name))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _iter_labels(item, (*place, number))
    elif isinstance(value, str) and _LABEL_PATTERN.search(value):
        yield place


def _first_frame(step: PlannedCall) -> Frame:
    return next(
        turn.frame
        for turn in step.turns
        if turn.action is ClientAction.SAY and turn.frame is not None
    )


def _split_rest_request(
    exchange: Exchange, frame: Frame, request: dict[str, Any]
) -> tuple[Exchange, bytes]:
    """Return the exchange with the members of path and query, and the body with the others. Raises
    EditError."""
    recorded = members_of_target(exchange.method, exchange.target)
    body = decode_payload(frame.payload, JSON) if frame.payload else None
    names = recorded.keys() - (body or {}).keys() if exchange.method == "POST" else request.keys()
    members = {name: value for name, value in request.items() if name in names}
    if members != recorded:
        found = match_request_line(exchange.method, exchange.target.encode("latin-1", "replace"))
        prefix = found.prefix if found is not None else ""
        try:
            call = rest_call(members, exchange.operation, exchange.dialect)
        except LookupError as wrong:
            raise EditError(str(wrong)) from wrong
        target = (
            prefix.removesuffix("/v1") + call.target
            if call.target.startswith("/v1/")
            else prefix + call.target
        )
        exchange = msgspec.structs.replace(exchange, target=target)
    rest = {name: value for name, value in request.items() if name not in names}
    return exchange, frame.payload if rest == (body or {}) else msgspec.json.encode(rest)


def _schema_faults(step: PlannedCall) -> list[str]:
    exchange, frame = step.exchange, _first_frame(step)
    record = ExchangeRecord(1, 1, "agent", exchange.binding, exchange.operation, exchange.started)
    context = RuleContext(SessionState(), record, exchange, frame.at, lambda *_: None)
    context.set_frame(frame)
    return [fault.told for fault in schema_faults(context)]
