"""Reads a payload once: for the index of the recording, for redaction, tasks, segments and rules.

A payload that the strict decoder accepts is provably valid: no rule about payloads has to run on
it. Anything unusual is left to the lenient decoders and to the rules: large payloads, bytes and
URLs, redacted places, other objects.
"""

from typing import Any, Protocol

import msgspec

from a2a_proxy.model.saved_state import Reference
from a2a_proxy.model.values import JSONRPC_BINDINGS, Binding, Dialect, Frame, FrameKind
from a2a_proxy.protocol.artifact_chunks import ArtifactChunk
from a2a_proxy.protocol.operations import OPERATION_BY_NAME, ResponseKind
from a2a_proxy.protocol.schema import is_protobuf
from a2a_proxy.protocol.status_summary import A2AMessage, Content
from a2a_proxy.protocol.strict.json_checks import (
    JSON_0_3,
    JSON_1_0,
    PROTO_JSON_0_3,
    Check,
    JsonChecks,
    Subject,
    check_empty,
)
from a2a_proxy.protocol.strict.protobuf import CHECKS
from a2a_proxy.protocol.text_place import find_text_place

MAX_CHECKED_BYTES = 16 * 1024
"""Maximum size of a payload that is checked, bytes."""

Checks = dict[FrameKind, Check | None]
"""JSON checks of an exchange by frame kind; None if a kind has no check."""
_V1_DIALECTS = (Dialect.V1_0, Dialect.V1_1)
_OLD_DIALECTS = (Dialect.V0_2, Dialect.V0_3)
_SEND_OPERATIONS = frozenset(("SendMessage", "SendStreamingMessage"))
_TASK_ID_OPERATIONS = frozenset(("GetTask", "CancelTask", "SubscribeToTask"))


UNREAD = A2AMessage()


class CallView(Protocol):
    """The attributes of an exchange, possibly still open, that choose its checks."""

    @property
    def binding(self) -> Binding: ...  # noqa: D102
    @property
    def dialect(self) -> Dialect: ...  # noqa: D102
    @property
    def operation(self) -> str: ...  # noqa: D102
    @property
    def method(self) -> str: ...  # noqa: D102
    @property
    def target(self) -> str: ...  # noqa: D102
    @property
    def rpc_id(self) -> str: ...  # noqa: D102


def check_payload(frame: Frame, exchange: CallView, checks: Checks) -> Content:
    """Return a true value if no rule that reads only payloads would find anything in this one.

    For an update that was decoded on the way the result is its summary. `checks` are the checks of
    the exchange.
    """
    kind = frame.kind
    if not frame.payload or frame.redacted or frame.truncated or frame.size > MAX_CHECKED_BYTES:
        return _is_empty(frame, exchange)
    if kind is _END_FRAME:
        return not frame.error_code
    if frame.schema != "json":
        return kind in _CHECKED_KINDS and read_protobuf(frame.schema, frame.payload).content
    check = checks.get(kind)
    if (
        check is None
        or frame.note == "batch"
        or (kind is _REQUEST_FRAME and "?" in exchange.target)
    ):
        return False
    # An answer whose id differs from the request's id is also invalid.
    if frame.rpc_id and frame.rpc_id != exchange.rpc_id:
        return False
    return (check(frame.payload) or UNREAD).content


def read_protobuf(schema: str, payload: bytes) -> A2AMessage:
    """Return what the strict decoder reads of a message."""
    check = CHECKS.get(schema) if len(payload) <= MAX_CHECKED_BYTES else None
    return (check(payload) if check is not None else None) or UNREAD


class JsonReader(Reference):
    """Reads the answers of one exchange strictly. Of an artifact chunk that differs in its text
    alone from the last one, only the text is read."""

    _dialect: Dialect | None = None
    _checks: Checks = {}
    _last: A2AMessage | None = None
    """The last chunk that had one part, a text, and whose place is known."""

    def read(self, payload: bytes, exchange: CallView, kind: FrameKind) -> A2AMessage:
        """Return what the strict decoder reads of a payload; no content if it is not provably
        valid."""
        last = self._last
        if exchange.dialect is not self._dialect:
            self._dialect, self._checks, last = exchange.dialect, checks_for(exchange), None
        if last is not None and kind is _EVENT_FRAME:
            chunk: Any = last.content
            text = chunk.place.read_text(payload)
            if text:
                chunk = ArtifactChunk(chunk.artifact_id, chunk.name, (text,), text, chunk.place)
                return A2AMessage(chunk, last.summary, last.rpc_id)
        check = self._checks.get(kind) if len(payload) <= MAX_CHECKED_BYTES else None
        found = check(payload) if check is not None else None
        if found is None or (found.rpc_id and found.rpc_id != exchange.rpc_id):
            return UNREAD
        chunk = found.content
        if type(chunk) is ArtifactChunk and len(chunk.pieces) == 1:
            place = find_text_place(payload, chunk.text.decode())
            if place is not None:
                found.content = msgspec.structs.replace(chunk, place=place)
                self._last = found
        return found


def checks_for(exchange: CallView) -> Checks:
    """Return the checks for the payloads of an exchange."""
    key = (exchange.binding, exchange.dialect, exchange.operation, exchange.method)
    found = _CHECKS_BY_CALL.get(key)
    if found is None:
        found = {kind: _choose_check(kind, *key) for kind in _CHECKED_KINDS}
        if exchange.operation:  # methods without an operation are unlimited in number
            _CHECKS_BY_CALL[key] = found
    return found


_END_FRAME, _REQUEST_FRAME, _EVENT_FRAME = FrameKind.END, FrameKind.REQUEST, FrameKind.EVENT
"""Module-level aliases, because accessing `FrameKind.END` for each frame costs 0.1 us (CPython
3.11)."""
_CHECKED_KINDS = frozenset((FrameKind.REQUEST, FrameKind.RESPONSE, FrameKind.EVENT))
_CHECKS_BY_CALL: dict[tuple[Binding, Dialect, str, str], Checks] = {}
"""Cached checks by binding, dialect, operation and method."""


def _is_empty(frame: Frame, exchange: CallView) -> bool:
    """Whether the payload is validly empty: an end of stream, a gRPC message without fields, or a
    request fully described by its path.
    """
    if frame.payload or frame.size:
        return False
    if frame.kind is FrameKind.END:
        return True
    if is_protobuf(frame.schema):  # without fields, nothing can be invalid
        return frame.kind in _CHECKED_KINDS
    rest = (
        frame.kind is FrameKind.REQUEST
        and exchange.binding is Binding.REST
        and exchange.dialect in _V1_DIALECTS
    )
    return rest and exchange.operation in _TASK_ID_OPERATIONS and "?" not in exchange.target


def _choose_check(
    kind: FrameKind, binding: Binding, dialect: Dialect, operation: str, method: str
) -> Check | None:
    if kind is FrameKind.REQUEST:
        return _choose_request_check(binding, dialect, operation, method)
    if binding is Binding.WEBHOOK:
        return (
            JSON_1_0.check("event") if kind is FrameKind.EVENT and dialect in _V1_DIALECTS else None
        )
    found = OPERATION_BY_NAME.get(operation)
    if found is None or kind not in _CHECKED_KINDS:
        return None
    subject = _ANSWERS.get(ResponseKind.STREAM if kind is FrameKind.EVENT else found.answer)
    form = _choose_form(binding, dialect, method)
    return (
        form.check(subject, enveloped=binding in JSONRPC_BINDINGS)
        if form is not None and subject is not None
        else None
    )


def _choose_request_check(
    binding: Binding, dialect: Dialect, operation: str, method: str
) -> Check | None:
    """Return the check for a request that only names a task, or sends a message without further
    options."""
    form, enveloped = _choose_form(binding, dialect, method), binding in JSONRPC_BINDINGS
    if form is None:
        return None
    if operation in _SEND_OPERATIONS:
        return form.check("send", enveloped=enveloped)
    if operation not in _TASK_ID_OPERATIONS:
        return None
    if enveloped:
        return form.check("task id", enveloped=True)
    return check_empty if form is JSON_1_0 else None


def _choose_form(binding: Binding, dialect: Dialect, method: str) -> JsonChecks | None:
    """Return the checks for the form of JSON in which a dialect is spoken on a binding."""
    if binding in JSONRPC_BINDINGS:
        if "/" in method:
            return JSON_0_3 if dialect in _OLD_DIALECTS else None
        return JSON_1_0 if dialect in _V1_DIALECTS else None
    if binding is not Binding.REST:
        return None
    return (
        JSON_1_0 if dialect in _V1_DIALECTS else PROTO_JSON_0_3 if dialect is Dialect.V0_3 else None
    )


_ANSWERS: dict[ResponseKind, Subject] = {
    ResponseKind.STREAM: "event",
    ResponseKind.SEND: "sent",
    ResponseKind.TASK: "task",
}
