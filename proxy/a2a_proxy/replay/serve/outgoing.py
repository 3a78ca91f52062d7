"""What the player sends, as each binding says it: messages, refusals, misses. Does no I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from a2a_proto import RenderError
from a2a_proxy.model.exchange import Binding, Dialect
from a2a_proxy.model.frame import FrameKind
from a2a_proxy.protocol.canonical_form import canonical_octets
from a2a_proxy.protocol.errors import GRPC_STATUS
from a2a_proxy.protocol.event import plain
from a2a_proxy.protocol.operations import BY_NAME, ResponseKind
from a2a_proxy.protocol.schema import JSON, is_protobuf, line_of
from a2a_proxy.replay.convert.errors import ReplayError, of_rest, of_rpc, of_trailers
from a2a_proxy.replay.convert.form import Json
from a2a_proxy.replay.convert.protobuf_bytes import answer_octets
from a2a_proxy.replay.convert.responses import answer
from a2a_proxy.replay.convert.unknown_fields import with_unknown
from a2a_proxy.replay.core.call_playback import CallPlayback
from a2a_proxy.replay.core.miss import Miss, MissKind
from a2a_proxy.replay.core.player_io import Send
from a2a_proxy.replay.core.script import LineKind, RecordedCall

_RPC = (Binding.JSONRPC, Binding.STDIO)
MISS_METADATA = "a2a-replay-miss-bin"
"""Trailing metadata of a gRPC call that was refused: the detail as JSON."""
_IMPLEMENTATION_DEFINED = -32000
_MOST_COMPARED = 4 << 20
"""Octets of a message."""
_MOST_TEXT = 2000
"""Characters of a miss in trailers: peers bound their metadata to 8 KiB."""
_MOST_DETAIL = 3000


class ResponseWriter(Protocol):
    """How one HTTP or pipe binding says things. The octets are those of a body, or of one event of a stream."""

    content_type: str

    def message(self, send: Send, recorded: Any = None) -> bytes:
        """A message; `recorded` is what `as_recorded` has found of it."""

    def refusal(self, told: ReplayError) -> tuple[int, bytes]:
        """An error: HTTP status and octets."""

    def miss(self, miss: Miss) -> tuple[int, bytes]:
        """That the recording has no answer."""


class RpcResponseWriter:
    """JSON-RPC, over HTTP or a pipe."""

    content_type = "application/json"

    def __init__(self, rpc_id: Any, operation: str, dialect: Dialect) -> None:
        self._id = rpc_id
        self._operation = operation
        self._dialect = dialect

    def message(self, send: Send, recorded: Any = None) -> bytes:
        """A result."""
        if isinstance(recorded, dict) and "jsonrpc" in recorded:
            return msgspec.json.encode({**recorded, "id": self._id})
        return self._told(result=answer(send.value, self._operation, self._dialect, Binding.JSONRPC))

    def refusal(self, told: ReplayError) -> tuple[int, bytes]:
        """An `error`; its HTTP status is 200, unless HTTP itself said no, and then with the body it had."""
        if told.bare:
            return told.http, msgspec.json.encode(told.body)
        return 200, self._told(error=told.rpc(self._dialect))

    def miss(self, miss: Miss) -> tuple[int, bytes]:
        """An `error` with the detail as data."""
        code = -32601 if miss.kind is MissKind.UNKNOWN else _IMPLEMENTATION_DEFINED
        return 200, self._told(error={"code": code, "message": miss.text(), "data": [miss.detail()]})

    def _told(self, **members: Any) -> bytes:
        return msgspec.json.encode({"jsonrpc": "2.0", "id": self._id, **members})


def rpc_failure(code: int, message: str) -> bytes:
    """What answers octets that are no call: an error without an id."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}})


class RestResponseWriter:
    """HTTP+JSON."""

    def __init__(self, operation: str, dialect: Dialect) -> None:
        self._operation = operation
        self._dialect = dialect
        new = dialect in (Dialect.V1_0, Dialect.V1_1)
        self.content_type = "application/a2a+json" if new else "application/json"

    def message(self, send: Send, recorded: Any = None) -> bytes:
        """A body, or an event."""
        if recorded is not None:
            return msgspec.json.encode(recorded)
        return msgspec.json.encode(answer(send.value, self._operation, self._dialect, Binding.REST))

    def refusal(self, told: ReplayError) -> tuple[int, bytes]:
        """Status and body."""
        status, body = told.rest(self._dialect)
        return status, told.octets or msgspec.json.encode(body)

    def miss(self, miss: Miss) -> tuple[int, bytes]:
        """A problem with the detail."""
        status, named = (501, "UNIMPLEMENTED") if miss.kind is MissKind.UNKNOWN else (400, "FAILED_PRECONDITION")
        error = {"code": status, "status": named, "message": miss.text(), "details": [miss.detail()]}
        return status, msgspec.json.encode({"error": error})


def with_card(send: Send, operation: str, local: Callable[[Json], Json]) -> Send:
    """A card that comes by a call leads to the mock, as one that was fetched does: `local` gives it its URLs."""
    row = BY_NAME.get(operation)
    if row is None or row.answer is not ResponseKind.CARD or not isinstance(send.value, dict):
        return send
    return msgspec.structs.replace(send, value=local(send.value))


def as_recorded(send: Send, play: CallPlayback, mapped: Callable[[Any], Any]) -> Any:
    """A message as its own dialect had it, all members in their order, with the identifiers of now; None where it goes
    out in another form, or would not say the same."""
    call, line, asked = play.call, send.line, play.asked
    same = call.dialect is asked.dialect and (call.binding is asked.binding or {call.binding, asked.binding} <= {*_RPC})
    if not same or line is None or line.schema != JSON or len(line.raw) > _MOST_COMPARED:
        return None
    made = mapped(plain(line.raw, JSON))
    kind = FrameKind.EVENT if call.streams else FrameKind.RESPONSE
    again = canonical_octets(msgspec.json.encode(made), JSON, call.dialect, call.operation, kind)
    return made if again == send.value else None


def octets(send: Send, play: CallPlayback) -> bytes:
    """A message as gRPC carries it. Raises RenderError where its value is none of that type."""
    asked, line = play.asked, send.line
    recorded = line is not None and play.call.binding is Binding.GRPC and is_protobuf(line.schema)
    if not isinstance(send.value, dict) or asked.operation not in BY_NAME:
        if line is not None and play.call.binding is Binding.GRPC:
            return line.raw  # nobody could read it: as it was
        raise RenderError("it is no message")
    if line is None or not recorded or line_of(play.call.dialect) != line_of(asked.dialect):
        return answer_octets(send.value, asked.operation, asked.dialect)
    return with_unknown(answer_octets(send.value, asked.operation, asked.dialect, line.schema), line.raw, line.schema)


class GrpcEnd(msgspec.Struct, frozen=True):
    """How a gRPC call ends."""

    status: int
    message: str = ""
    trailing: tuple[tuple[str, str | bytes], ...] = ()


def grpc_refusal(told: ReplayError, dialect: Dialect) -> GrpcEnd:
    """A refusal as status, text and details."""
    details = told.status_details(dialect)
    trailing = (("grpc-status-details-bin", details),) if details else ()
    return GrpcEnd(told.status(dialect), told.grpc_message(dialect), trailing)


def grpc_miss(miss: Miss) -> GrpcEnd:
    """UNIMPLEMENTED for what was never recorded, else FAILED_PRECONDITION, with the detail as metadata."""
    status = "UNIMPLEMENTED" if miss.kind is MissKind.UNKNOWN else "FAILED_PRECONDITION"
    detail = msgspec.json.encode(miss.detail())
    if len(detail) > _MOST_DETAIL:
        detail = msgspec.json.encode({**miss.detail(), "differences": [], "asked": miss.asked[:200]})
    return GrpcEnd(GRPC_STATUS.index(status), miss.text()[:_MOST_TEXT], ((MISS_METADATA, detail),))


def refusal_of(send: Send, call: RecordedCall, mapped: Callable[[Any], Any]) -> ReplayError | None:
    """The error that a send tells; None where it tells none. `mapped` puts the identifiers of now into a value."""
    if send.what is LineKind.END:
        if send.status <= 0:
            return None
        told = of_trailers(send.trailers or call.answer_headers)
        texts = mapped({"message": told.message, "text": told.grpc_text, "details": told.details})
        return msgspec.structs.replace(
            told, message=texts["message"], grpc_text=texts["text"], details=texts["details"]
        )
    if send.what is not LineKind.ERROR:
        return None
    line = send.line
    # As it was on the wire: the canonical form is that of the operation's answers, which an error is none of.
    recorded = plain(line.raw, line.schema) if line is not None and line.raw else send.value
    value = mapped(recorded)
    if call.binding not in _RPC:
        octets = line.raw if line is not None and value == recorded else b""
        return msgspec.structs.replace(of_rest(value, call.status), octets=octets)
    if isinstance(value, dict) and "error" in value:
        return of_rpc(value["error"], call.dialect)
    return msgspec.structs.replace(of_rest(value, call.status), reason="", bare=True)
