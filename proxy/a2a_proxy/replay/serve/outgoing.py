"""Messages, refusals and misses of the player in the form of each binding. Performs no I/O."""

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from a2a_proto import RenderError
from a2a_proxy.model.values import JSONRPC_BINDINGS, Binding, Dialect, FrameKind
from a2a_proxy.protocol.canonical import Json
from a2a_proxy.protocol.canonical_form import canonical_body
from a2a_proxy.protocol.errors import GRPC_STATUS_NAMES
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.protocol.operations import OPERATION_BY_NAME, ResponseKind
from a2a_proxy.protocol.schema import JSON, is_protobuf, schema_set_of
from a2a_proxy.replay.convert.errors import (
    ReplayError,
    parse_grpc_error,
    parse_rest_response,
    parse_rpc_error,
)
from a2a_proxy.replay.convert.json_escapes import escape_as_recorded, escape_line_separators
from a2a_proxy.replay.convert.protobuf_bytes import add_unknown_fields, encode_answer
from a2a_proxy.replay.convert.responses import convert_answer
from a2a_proxy.replay.core.call_playback import CallPlayback
from a2a_proxy.replay.core.miss import Miss, MissKind
from a2a_proxy.replay.core.script import LineKind, PlayerSend, RecordedCall

MISS_METADATA = "a2a-replay-miss-bin"
"""Trailing metadata of a refused gRPC call: the detail as JSON."""
_IMPLEMENTATION_DEFINED = -32000
_MAX_COMPARED_BYTES = 4 << 20
"""Maximum size in bytes of a message that is compared with its recorded form."""
_MAX_TEXT_CHARS = 2000
"""Maximum number of characters of a miss in trailers, because peers limit metadata to 8 KiB."""
_MAX_DETAIL_BYTES = 3000


class ResponseWriter(Protocol):
    """Encodes answers for one HTTP or pipe binding. The bytes are a body, or the data of one event
    of a stream."""

    content_type: str

    def encode_message(self, send: PlayerSend, recorded: Any = None) -> bytes:
        """Encode a message; `recorded` is the result of `recorded_form` for it."""

    def encode_refusal(self, error: ReplayError) -> tuple[int, bytes]:
        """Encode an error: HTTP status and bytes."""

    def encode_miss(self, miss: Miss) -> tuple[int, bytes]:
        """Encode a miss: HTTP status and bytes."""


class RpcResponseWriter:
    """JSON-RPC, over HTTP or a pipe."""

    content_type = "application/json"

    def __init__(self, rpc_id: Any, operation: str, dialect: Dialect) -> None:
        self._id = rpc_id
        self._operation = operation
        self._dialect = dialect

    def encode_message(self, send: PlayerSend, recorded: Any = None) -> bytes:
        """Encode a result."""
        if isinstance(recorded, dict) and "jsonrpc" in recorded:
            return escape_json(send, msgspec.json.encode({**recorded, "id": self._id}))
        result = convert_answer(send.value, self._operation, self._dialect, Binding.JSONRPC)
        return escape_json(send, self._encode_envelope(result=result))

    def encode_refusal(self, error: ReplayError) -> tuple[int, bytes]:
        """Encode an `error` with HTTP status 200; an error of HTTP itself keeps its status and
        body."""
        if error.is_http_only:
            return error.http, msgspec.json.encode(error.body)
        return 200, self._encode_envelope(error=error.rpc_error(self._dialect))

    def encode_miss(self, miss: Miss) -> tuple[int, bytes]:
        """Encode an `error` with the detail as data."""
        code = -32601 if miss.kind is MissKind.UNKNOWN else _IMPLEMENTATION_DEFINED
        return 200, self._encode_envelope(
            error={"code": code, "message": miss.full_text(), "data": [miss.error_detail()]}
        )

    def _encode_envelope(self, **members: Any) -> bytes:
        return msgspec.json.encode({"jsonrpc": "2.0", "id": self._id, **members})


def rpc_failure(code: int, message: str) -> bytes:
    """Return the answer to bytes that are not a call: an error without an id."""
    return msgspec.json.encode(
        {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    )


class RestResponseWriter:
    """HTTP+JSON."""

    def __init__(self, operation: str, dialect: Dialect) -> None:
        self._operation = operation
        self._dialect = dialect
        new = dialect in (Dialect.V1_0, Dialect.V1_1)
        self.content_type = "application/a2a+json" if new else "application/json"

    def encode_message(self, send: PlayerSend, recorded: Any = None) -> bytes:
        """Encode a body, or an event."""
        if recorded is None:
            recorded = convert_answer(send.value, self._operation, self._dialect, Binding.REST)
        return escape_json(send, msgspec.json.encode(recorded))

    def encode_refusal(self, error: ReplayError) -> tuple[int, bytes]:
        """Encode an error: status and body."""
        status, body = error.rest_response(self._dialect)
        return status, error.raw_body or msgspec.json.encode(body)

    def encode_miss(self, miss: Miss) -> tuple[int, bytes]:
        """Encode a problem with the detail of the miss."""
        status, status_name = (
            (501, "UNIMPLEMENTED")
            if miss.kind is MissKind.UNKNOWN
            else (400, "FAILED_PRECONDITION")
        )
        error = {
            "code": status,
            "status": status_name,
            "message": miss.full_text(),
            "details": [miss.error_detail()],
        }
        return status, msgspec.json.encode({"error": error})


def escape_json(send: PlayerSend, data: bytes) -> bytes:
    """Escape the JSON of a send as the agent did; where it sent no JSON, escape the line
    separators."""
    line = send.line
    if line is None or line.schema != JSON or not line.raw:
        return escape_line_separators(data)
    return data if data == line.raw else escape_as_recorded(data, line.raw)


def localise_sent_card(
    send: PlayerSend, operation: str, local: Callable[[Json], Json]
) -> PlayerSend:
    """Put the URLs of the mock into a card that is the answer to a call, with `local`, as into a
    card that is fetched."""
    row = OPERATION_BY_NAME.get(operation)
    if row is None or row.answer is not ResponseKind.CARD or not isinstance(send.value, dict):
        return send
    return msgspec.structs.replace(send, value=local(send.value))


def recorded_form(
    send: PlayerSend, playback: CallPlayback, to_live_value: Callable[[Any], Any]
) -> Any:
    """Return a message in its recorded form, with all members in their order and live identifiers.

    Returns None if it is sent in another form, or if its recorded form would not have the same
    meaning.
    """
    call, line, request = playback.call, send.line, playback.request
    same = call.dialect is request.dialect and (
        call.binding is request.binding or {call.binding, request.binding} <= {*JSONRPC_BINDINGS}
    )
    if not same or line is None or line.schema != JSON or len(line.raw) > _MAX_COMPARED_BYTES:
        return None
    live_value = to_live_value(decode_payload(line.raw, JSON))
    kind = FrameKind.EVENT if call.is_stream else FrameKind.RESPONSE
    again = canonical_body(
        msgspec.json.encode(live_value), JSON, call.dialect, call.operation, kind
    )
    return live_value if again == send.value else None


def encode_grpc_message(send: PlayerSend, playback: CallPlayback) -> bytes:
    """Encode a message for gRPC. Raises RenderError if its value is not of the expected type."""
    request, line = playback.request, send.line
    recorded = (
        line is not None and playback.call.binding is Binding.GRPC and is_protobuf(line.schema)
    )
    if not isinstance(send.value, dict) or request.operation not in OPERATION_BY_NAME:
        if line is not None and playback.call.binding is Binding.GRPC:
            return line.raw  # it could not be decoded, so it is sent as recorded
        raise RenderError("it is not a message")
    if (
        line is None
        or not recorded
        or schema_set_of(playback.call.dialect) != schema_set_of(request.dialect)
    ):
        return encode_answer(send.value, request.operation, request.dialect)
    return add_unknown_fields(
        encode_answer(send.value, request.operation, request.dialect, line.schema),
        line.raw,
        line.schema,
    )


class GrpcEnd(msgspec.Struct, frozen=True):
    """How a gRPC call ends."""

    status: int
    message: str = ""
    trailing: tuple[tuple[str, str | bytes], ...] = ()


def grpc_refusal(error: ReplayError, dialect: Dialect) -> GrpcEnd:
    """Return a refusal as status, text and details."""
    details = error.status_details(dialect)
    trailing = (("grpc-status-details-bin", details),) if details else ()
    return GrpcEnd(error.grpc_status(dialect), error.grpc_message(dialect), trailing)


def grpc_miss(miss: Miss) -> GrpcEnd:
    """Return UNIMPLEMENTED for an operation that was never recorded, else FAILED_PRECONDITION, with
    the detail as metadata."""
    status = "UNIMPLEMENTED" if miss.kind is MissKind.UNKNOWN else "FAILED_PRECONDITION"
    detail = msgspec.json.encode(miss.error_detail())
    if len(detail) > _MAX_DETAIL_BYTES:
        detail = msgspec.json.encode(
            {**miss.error_detail(), "differences": [], "asked": miss.request_text[:200]}
        )
    return GrpcEnd(
        GRPC_STATUS_NAMES.index(status),
        miss.full_text()[:_MAX_TEXT_CHARS],
        ((MISS_METADATA, detail),),
    )


def error_of(
    send: PlayerSend, call: RecordedCall, to_live_value: Callable[[Any], Any]
) -> ReplayError | None:
    """Return the error that a send carries, or None. `to_live_value` puts live identifiers into a
    value."""
    if send.what is LineKind.END:
        if send.status <= 0:
            return None
        error = parse_grpc_error(send.trailers or call.answer_headers)
        texts = to_live_value(
            {"message": error.message, "text": error.grpc_text, "details": error.details}
        )
        return msgspec.structs.replace(
            error, message=texts["message"], grpc_text=texts["text"], details=texts["details"]
        )
    if send.what is not LineKind.ERROR:
        return None
    line = send.line
    # The form on the wire, because the canonical form is made for answers, not for errors.
    recorded = (
        decode_payload(line.raw, line.schema) if line is not None and line.raw else send.value
    )
    value = to_live_value(recorded)
    if call.binding not in JSONRPC_BINDINGS:
        raw_body = line.raw if line is not None and value == recorded else b""
        return msgspec.structs.replace(parse_rest_response(value, call.status), raw_body=raw_body)
    if isinstance(value, dict) and "error" in value:
        return parse_rpc_error(value["error"], call.dialect)
    return msgspec.structs.replace(
        parse_rest_response(value, call.status), reason="", is_http_only=True
    )
