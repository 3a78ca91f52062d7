"""The context given to a rule: one frame or exchange, with lazily decoded payloads and the state of
the session."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from a2a_proxy.model.values import (
    JSONRPC_BINDINGS,
    Binding,
    Dialect,
    EventKind,
    Exchange,
    Frame,
    FrameKind,
)
from a2a_proxy.model.wire import Direction, Headers
from a2a_proxy.protocol.bindings.jsonrpc import NOTE_BARE, NOTE_EVENT_MEMBER
from a2a_proxy.protocol.canonical import CanonicalForm
from a2a_proxy.protocol.event import decode_payload, normalise_event
from a2a_proxy.protocol.json_summary import rename_to_camel
from a2a_proxy.protocol.request import canonical_request
from a2a_proxy.protocol.rest_path import RestMatch, match_request_line
from a2a_proxy.protocol.schema import MEDIA_SCHEMA_SET
from a2a_proxy.protocol.status_summary import Content, StatusSummary, decode_status
from a2a_proxy.redaction.labels import is_withheld
from a2a_proxy.rules.define.conditions import FrameFlag
from a2a_proxy.rules.facts import failure
from a2a_proxy.rules.facts.failure import Failure
from a2a_proxy.rules.run.missing_payload import without_payload
from a2a_proxy.rules.state.card_declarations import CardDeclarations
from a2a_proxy.rules.state.records import AgentRecord, ExchangeRecord, TaskRecord
from a2a_proxy.rules.state.session_state import SessionState
from a2a_proxy.rules.state.state_sequence import INTERRUPTED, TERMINAL

_UNSET: Any = object()


class RuleContext:
    """Context of one exchange, passed to each of its rules in turn. Rules read it and change only
    notes."""

    frame_or_none: Frame | None = None
    """The current frame; None at `HEADS`, at `CLOSED` and when a deadline is due."""
    task: TaskRecord | None = None
    """The task the frame refers to."""
    gate_result: Content = False
    """Result of the gate for this frame, if the gate was run; see `status_summary`."""
    flags = 0
    state_before = 0
    """State of the task before this frame; 0 if unknown."""
    stream_state_before = 0
    """State last shown by this exchange before this frame; 0 if it had shown none."""
    context_before = ""
    """Context id of the task before this frame."""
    generation_before = 0
    """Generation last shown by this exchange before this frame."""
    due_seq = -1
    """Sequence number of the frame at which the rule scheduled this deadline."""
    due_note = ""
    """The note passed to `schedule_due`."""
    due_at = 0
    """Time of the deadline, ns."""
    _agent: AgentRecord | None = None
    _cache: dict[str, Any] | None = None
    _request_header_map: dict[str, bytes] | None = None
    """The first header field of each name, cached because rules about heads read many of them."""
    _response_header_map: dict[str, bytes] | None = None
    _value: Any = _UNSET
    _body: Any = _UNSET
    _event: Any = _UNSET
    _params: Any = _UNSET
    _failure: Any = _UNSET

    def __init__(
        self,
        session: SessionState,
        record: ExchangeRecord,
        exchange: Exchange,
        at: int,
        schedule: Callable[[RuleContext, int, str, ExchangeRecord], None],
    ):
        self.session = session
        self.record = record
        """The history of this exchange."""
        self.exchange = exchange
        """Heads, operation and dialect. The way the exchange ended is known only at
        `HookPoint.CLOSED`."""
        self.at = at
        """Current time, ns."""
        self._schedule = schedule

    def set_frame(
        self, frame: Frame | None, task: TaskRecord | None = None, flags: int = 0
    ) -> None:
        """Move to another frame and drop everything decoded from the previous one."""
        self.frame_or_none = (
            without_payload(frame) if frame is not None and is_withheld(frame) else frame
        )
        self.task, self.flags = task, flags
        self.gate_result = False
        self._value = self._body = self._event = self._failure = _UNSET
        self._cache = None

    @property
    def cache(self) -> dict[str, Any]:
        """Intermediate results for this frame, shared with the rules that run after this one."""
        if self._cache is None:
            self._cache = {}
        return self._cache

    @property
    def frame(self) -> Frame:
        """The current frame, for rules that run on a frame."""
        assert self.frame_or_none is not None
        return self.frame_or_none

    # --- the frame

    def needs_payload(self) -> None:
        """Raise MissingPayload if the frame's payload was not recorded; the engine then skips the
        rule.

        Called by rules that depend on earlier payloads of the task: without them the rule has no
        evidence.
        """
        if self.frame_or_none is not None:
            _ = self.frame_or_none.payload

    @property
    def value(self) -> Any:
        """The payload as plain JSON in its own dialect (protobuf as ProtoJSON); None if it cannot
        be decoded."""
        if self._value is _UNSET:
            self._value = (
                decode_payload(self.frame.payload, self.frame.schema)
                if self.frame.payload
                else None
            )
        return self._value

    @property
    def body(self) -> Any:
        """The content inside the binding's envelope: `params` of a JSON-RPC request, `result` of a
        JSON-RPC response, the request or event inside a live stream with media; otherwise `value`.
        """
        if self._body is _UNSET:
            value, root = self.value, self.root
            self._body = value.get(root[:-1]) if root and isinstance(value, dict) else value
        return self._body

    @property
    def root(self) -> str:
        """Path of `body` in the payload, with a trailing dot if it is not empty."""
        if self.frame.schema.endswith(f"@{MEDIA_SCHEMA_SET}"):
            return "message." if self.frame.direction is Direction.TO_AGENT else "event."
        return f"{self._body_member}." if self.is_enveloped and not self.is_bare_event else ""

    @property
    def _body_member(self) -> str:
        """Envelope member that holds the body."""
        return "params" if self.frame.direction is Direction.TO_AGENT else "result"

    @property
    def event(self) -> dict[str, Any]:
        """The answer in the 1.0 form for every dialect: `{"statusUpdate": {...}}`; empty if it is
        not an A2A object."""
        if self._event is _UNSET:
            frame, exchange = self.frame, self.exchange
            self._event = normalise_event(
                frame.payload, frame.schema, exchange.dialect, exchange.operation, frame.kind
            )
        found: dict[str, Any] = self._event
        return found

    @property
    def object(self) -> dict[str, Any]:
        """The object inside the event (task, message or update); empty if there is none."""
        found = next((each for each in self.event.values() if isinstance(each, dict)), None)
        return found or {}

    @property
    def status_summary(self) -> StatusSummary:
        """Timestamp and message content of the status of a task or an update."""
        return (
            self.gate_result
            if type(self.gate_result) is StatusSummary
            else decode_status(self.frame)
        )

    @property
    def failure(self) -> Failure:
        """The error of an ERROR frame or of gRPC trailers."""
        if self._failure is _UNSET:
            frame = self.frame
            if frame.kind is FrameKind.END:
                self._failure = failure.failure_from_trailers(
                    frame, _decode_trailers(frame.payload)
                )
            else:
                self._failure = failure.failure_from_json(
                    frame, self.value, self.exchange.binding, self.exchange.dialect
                )
        found: Failure = self._failure
        return found

    def has_flag(self, flags: FrameFlag) -> bool:
        """Whether the frame has at least one of `flags`."""
        return bool(self.flags & int(flags))

    # --- the exchange

    @property
    def agent(self) -> AgentRecord:
        """The agent that answers this exchange."""
        if self._agent is None:
            self._agent = self.session.agent_record(self.record.agent)
        return self._agent

    @property
    def operation(self) -> str:
        """Operation by its 1.0 name; empty if the call is not an A2A operation."""
        return self.exchange.operation

    @property
    def binding(self) -> Binding:
        """Binding of the exchange."""
        return self.exchange.binding

    @property
    def is_enveloped(self) -> bool:
        """Whether the messages are JSON-RPC."""
        return self.exchange.binding in JSONRPC_BINDINGS

    @property
    def is_bare_event(self) -> bool:
        """Whether the frame is an event of a JSON-RPC stream whose payload lacks its envelope."""
        note, binding = self.frame.note, self.exchange.binding
        if binding is Binding.WEBSOCKET:
            return note == NOTE_EVENT_MEMBER
        return note.startswith(NOTE_BARE) and binding is Binding.JSONRPC

    @property
    def is_v1(self) -> bool:
        """Whether the dialect is 1.0 or later."""
        return self.exchange.dialect in (Dialect.V1_0, Dialect.V1_1)

    @property
    def request(self) -> Frame | None:
        """The first request; None if none has been received yet."""
        found = self.record.request
        return without_payload(found) if found is not None and is_withheld(found) else found

    @property
    def params(self) -> dict[str, Any]:
        """Parameters of the first request in the 1.0 form. On REST they include path and query
        parameters, as text."""
        if self._params is _UNSET:
            self._params = self._read_params()
        found: dict[str, Any] = self._params
        return found

    def _read_params(self) -> dict[str, Any]:
        frame, exchange = self.request, self.exchange
        if frame is None:
            return {}
        value = decode_payload(frame.payload, frame.schema) if frame.payload else {}
        if exchange.binding in JSONRPC_BINDINGS:
            value = value.get("params") if isinstance(value, dict) else None
        made: dict[str, Any] = value if isinstance(value, dict) else {}
        if exchange.binding is Binding.REST:
            made = self._params_from_path() | made
        wraps = exchange.dialect not in (Dialect.V1_0, Dialect.V1_1)
        return canonical_request(
            CanonicalForm(wraps_data=wraps), rename_to_camel(made), exchange.operation
        )

    def _params_from_path(self) -> dict[str, Any]:
        path = self.rest_match
        if path is None:
            return {}
        made: dict[str, Any] = dict(path.query)
        pushes = "PushNotificationConfig" in self.exchange.operation
        if path.task_id:
            made["taskId" if pushes else "id"] = path.task_id
        if path.config_id:
            made["id"] = path.config_id
        return made

    @property
    def rest_match(self) -> RestMatch | None:
        """The parsed request line of a REST call; None for any other request."""
        return match_request_line(self.exchange.method, self.exchange.target.encode("latin-1"))

    @property
    def is_success(self) -> bool:
        """Whether the frame is an answer without an error."""
        return self.frame.kind in (FrameKind.RESPONSE, FrameKind.EVENT) and not self.flags & int(
            FrameFlag.ERROR
        )

    def request_header(self, name: str) -> str:
        """Return the first request header field of this name (lower case), or an empty string."""
        if self._request_header_map is None:
            self._request_header_map = _map_first_headers(self.exchange.request_headers)
        return self._request_header_map.get(name, b"").decode("latin-1").strip()

    def request_headers(self, name: str) -> list[str]:
        """Return all request header fields of this name (lower case), in order."""
        return header_values(self.exchange.request_headers, name)

    def response_header(self, name: str) -> str:
        """Return the first response header field of this name (lower case), or an empty string."""
        if self._response_header_map is None:
            self._response_header_map = _map_first_headers(self.exchange.response_headers)
        return self._response_header_map.get(name, b"").decode("latin-1").strip()

    def response_headers(self, name: str) -> list[str]:
        """Return all response header fields of this name (lower case), in order."""
        return header_values(self.exchange.response_headers, name)

    @property
    def media_type(self) -> str:
        """Media type of the response in lower case, without parameters."""
        return strip_parameters(self.response_header("content-type"))

    @property
    def declarations(self) -> CardDeclarations | None:
        """Declarations of the agent's cards as known when the exchange began; None if no card had
        been seen."""
        found = self.agent.declarations
        return found if found is not None and found.at < self.record.started else None

    @property
    def is_stream_unfinished(self) -> bool:
        """Whether the call is a stream that has shown no state in which it may end, no `final:
        true` and no Message."""
        record = self.record
        done = (
            record.state in TERMINAL
            or record.state in INTERRUPTED
            or record.first is EventKind.MESSAGE
        )
        return record.is_streaming and not (done or record.final_at)

    # --- time

    @property
    def is_early(self) -> bool:
        """Whether the session ended before the deadline, which is settled now."""
        return self.at < self.due_at

    def schedule_due(
        self, seconds: float, note: str = "", record: ExchangeRecord | None = None
    ) -> None:
        """Call the rule's `due` after `seconds` for this exchange or for `record`; `note` becomes
        `due_note`. If the session ends first, `Rule.settled_at_end` decides.

        The delay is at least 1 ns, so a rule that keeps rescheduling itself for a remaining time
        terminates however small the remainder is.
        """
        self._schedule(self, self.at + max(1, int(seconds * 1e9)), note, record or self.record)


def _map_first_headers(headers: Headers) -> dict[str, bytes]:
    return {_lower_header_name(name): value for name, value in reversed(headers)}


@lru_cache(4096)
def _lower_header_name(name: bytes) -> str:
    return name.lower().decode("latin-1")


def header_values(headers: Headers, name: str) -> list[str]:
    """Return all fields of this name (lower case), in order."""
    header_name = name.encode("latin-1")
    return [value.decode("latin-1").strip() for key, value in headers if key.lower() == header_name]


def strip_parameters(value: str) -> str:
    """Return the value in lower case without its parameters."""
    return value.partition(";")[0].strip().lower()


def _decode_trailers(payload: bytes) -> list[tuple[str, str]]:
    try:
        return msgspec.json.decode(payload, type=list[tuple[str, str]]) if payload else []
    except msgspec.MsgspecError:
        return []
