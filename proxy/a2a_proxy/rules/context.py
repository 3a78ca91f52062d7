"""What a rule sees: one frame (or exchange) with everything around it, decoded when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from a2a_proxy.model.chunk import Direction
from a2a_proxy.model.exchange import Binding, Dialect, Exchange
from a2a_proxy.model.frame import Frame, FrameKind
from a2a_proxy.model.wire import Headers
from a2a_proxy.protocol.bindings.stdio import NOTIFICATIONS
from a2a_proxy.protocol.canonical import CanonicalForm
from a2a_proxy.protocol.event import normalise, decode_payload
from a2a_proxy.protocol.json_summary import rename_to_camel
from a2a_proxy.protocol.request import canonical_request as canonical_request
from a2a_proxy.protocol.rest_path import RestMatch, match_request_line
from a2a_proxy.protocol.schema import MEDIA_SCHEMA_SET
from a2a_proxy.redaction.labels import withheld
from a2a_proxy.rules.define.rule import ENVELOPE, FrameFlag
from a2a_proxy.rules.facts import failure
from a2a_proxy.rules.facts.failure import Failure
from a2a_proxy.rules.facts.partial_decode import Seen, StatusLook, status_of
from a2a_proxy.rules.run.missing_payload import unseen
from a2a_proxy.rules.state.card_declarations import CardDeclarations
from a2a_proxy.rules.state.records import AgentRecord, ExchangeRecord, TaskRecord
from a2a_proxy.rules.state.session_state import SessionState

_UNSET: Any = object()


class RuleContext:
    """Handed to one rule after the other; rules read it and change nothing but notes."""

    shown: Frame | None = None
    """The frame; None at `HEADS`, `CLOSED` and when a time is due."""
    task: TaskRecord | None = None
    """The task that the frame is about."""
    seen: Seen = False
    """What the gate saw of the frame, where it was asked; see `status`."""
    flags = 0
    before = 0
    """The state that the task was in before this frame; 0 where unknown."""
    shown_before = 0
    """The state that this exchange had shown before this frame; 0 where it had shown none."""
    context_before = ""
    """The context that the task had before this frame."""
    generation_before = 0
    """The generation that this exchange had shown before this frame."""
    due_seq = -1
    """Of the frame at which the rule asked for this deadline."""
    due_note = ""
    """What the rule gave to `later`."""
    _agent: AgentRecord | None = None
    _cache: dict[str, Any] | None = None
    _asked_first: dict[str, bytes] | None = None
    """The first header field of each name; rules about heads look at many of them."""
    _first: dict[str, bytes] | None = None
    _value: Any = _UNSET
    _body: Any = _UNSET
    _event: Any = _UNSET
    _params: Any = _UNSET
    _failure: Any = _UNSET

    def __init__(
        self,
        world: SessionState,
        track: ExchangeRecord,
        exchange: Exchange,
        at: int,
        later: Callable[[RuleContext, int, str, ExchangeRecord], None],
    ):
        self.world = world
        self.track = track
        """The exchange's own history."""
        self.exchange = exchange
        """Heads, operation and dialect. How it ended is known at `Moment.CLOSED` only."""
        self.at = at
        """Now, ns."""
        self._later = later

    def look(self, frame: Frame | None, task: TaskRecord | None = None, flags: int = 0) -> None:
        """Go on to a frame."""
        self.shown = unseen(frame) if frame is not None and withheld(frame) else frame
        self.task, self.flags = task, flags
        self.seen = False
        self._value = self._body = self._event = self._failure = _UNSET
        self._cache = None

    @property
    def cache(self) -> dict[str, Any]:
        """What rules worked out about this frame, for those that come after."""
        if self._cache is None:
            self._cache = {}
        return self._cache

    @property
    def frame(self) -> Frame:
        """The frame, for rules that are asked about one."""
        assert self.shown is not None
        return self.shown

    # --- the frame ----------------------------------------------------------------------------------------------

    def needs_payload(self) -> None:
        """For rules that go by what the payloads of this task said before: where those were not recorded, nobody can
        tell. Raises Withheld then, which the engine expects."""
        if self.shown is not None:
            _ = self.shown.payload

    @property
    def value(self) -> Any:
        """The payload as plain JSON, in its own dialect; None where it cannot be read. Protobuf as ProtoJSON."""
        if self._value is _UNSET:
            self._value = decode_payload(self.frame.payload, self.frame.schema) if self.frame.payload else None
        return self._value

    @property
    def body(self) -> Any:
        """What the binding wraps: `params` of a JSON-RPC request, `result` of a response, on a live stream with media
        the request or event inside; else `value`."""
        if self._body is _UNSET:
            value, root = self.value, self.root
            self._body = value.get(root[:-1]) if root and isinstance(value, dict) else value
        return self._body

    @property
    def root(self) -> str:
        """Path of `body` in the payload, with a dot where it is not empty."""
        if self.frame.schema.endswith(f"@{MEDIA_SCHEMA_SET}"):
            return "message." if self.frame.direction is Direction.TO_AGENT else "event."
        return f"{self._member}." if self.enveloped else ""

    @property
    def _member(self) -> str:
        """Where the envelope has the body: requests and notifications have parameters."""
        return "params" if self.frame.direction is Direction.TO_AGENT or self.notified else "result"

    @property
    def event(self) -> dict[str, Any]:
        """The answer in the 1.0 form whatever the dialect: `{"statusUpdate": {...}}`; empty where it is none."""
        if self._event is _UNSET:
            frame, exchange = self.frame, self.exchange
            self._event = normalise(frame.payload, frame.schema, exchange.dialect, exchange.operation, frame.kind)
        found: dict[str, Any] = self._event
        return found

    @property
    def object(self) -> dict[str, Any]:
        """What the event wraps: the task, the message, the update itself; empty where there is none."""
        found = next((each for each in self.event.values() if isinstance(each, dict)), None)
        return found or {}

    @property
    def status(self) -> StatusLook:
        """A quick look at the status of a task or an update."""
        return self.seen if type(self.seen) is StatusLook else status_of(self.frame)

    @property
    def failure(self) -> Failure:
        """The error of an ERROR frame or of gRPC trailers."""
        if self._failure is _UNSET:
            frame = self.frame
            if frame.kind is FrameKind.END:
                self._failure = failure.of_trailers(frame, _pairs(frame.payload))
            else:
                self._failure = failure.of_json(frame, self.value, self.exchange.binding, self.exchange.dialect)
        found: Failure = self._failure
        return found

    def is_(self, flags: FrameFlag) -> bool:
        """The frame has one of these."""
        return bool(self.flags & int(flags))

    # --- the exchange -------------------------------------------------------------------------------------------

    @property
    def agent(self) -> AgentRecord:
        """Who answers."""
        if self._agent is None:
            self._agent = self.world.agent(self.track.upstream)
        return self._agent

    @property
    def operation(self) -> str:
        """The 1.0 name; empty where it is none of A2A's."""
        return self.exchange.operation

    @property
    def binding(self) -> Binding:
        """How it is carried."""
        return self.exchange.binding

    @property
    def enveloped(self) -> bool:
        """Its messages are JSON-RPC."""
        return self.exchange.binding in ENVELOPE

    @property
    def notified(self) -> bool:
        """The agent says it as a notification, not as a response (manual/protocol.md "Stdio streams")."""
        return self.frame.note in NOTIFICATIONS and self.exchange.binding is Binding.STDIO

    @property
    def v1(self) -> bool:
        """It speaks 1.0 or later."""
        return self.exchange.dialect in (Dialect.V1_0, Dialect.V1_1)

    @property
    def request(self) -> Frame | None:
        """The first request; None where there is none yet."""
        found = self.track.request
        return unseen(found) if found is not None and withheld(found) else found

    @property
    def params(self) -> dict[str, Any]:
        """The first request's parameters in the 1.0 form; of REST those in path and query as well, as text."""
        if self._params is _UNSET:
            self._params = self._read_params()
        found: dict[str, Any] = self._params
        return found

    def _read_params(self) -> dict[str, Any]:
        frame, exchange = self.request, self.exchange
        if frame is None:
            return {}
        value = decode_payload(frame.payload, frame.schema) if frame.payload else {}
        if exchange.binding in ENVELOPE:
            value = value.get("params") if isinstance(value, dict) else None
        made: dict[str, Any] = value if isinstance(value, dict) else {}
        if exchange.binding is Binding.REST:
            made = self._from_path() | made
        wraps = exchange.dialect not in (Dialect.V1_0, Dialect.V1_1, Dialect.RC)
        return canonical_request(CanonicalForm(wraps_data=wraps), rename_to_camel(made), exchange.operation)

    def _from_path(self) -> dict[str, Any]:
        path = self.path
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
    def path(self) -> RestMatch | None:
        """What the request line says, where it is REST."""
        return match_request_line(self.exchange.method, self.exchange.target.encode("latin-1"))

    @property
    def succeeded(self) -> bool:
        """The frame is an answer that is no error."""
        return self.frame.kind in (FrameKind.RESPONSE, FrameKind.EVENT) and not self.flags & int(FrameFlag.ERROR)

    def asked_field(self, name: str) -> str:
        """The first request header field of this name (lower case); empty where there is none."""
        if self._asked_first is None:
            self._asked_first = _firsts(self.exchange.request_headers)
        return self._asked_first.get(name, b"").decode("latin-1").strip()

    def asked_fields(self, name: str) -> list[str]:
        """All of them."""
        return fields(self.exchange.request_headers, name)

    def field(self, name: str) -> str:
        """The first response header field of this name (lower case); empty where there is none."""
        if self._first is None:
            self._first = _firsts(self.exchange.response_headers)
        return self._first.get(name, b"").decode("latin-1").strip()

    def fields(self, name: str) -> list[str]:
        """All of them."""
        return fields(self.exchange.response_headers, name)

    @property
    def media_type(self) -> str:
        """Of the response, lower case, without parameters."""
        return media_type(self.field("content-type"))

    @property
    def declared(self) -> CardDeclarations | None:
        """What the agent's cards said when the exchange began; None where none had been seen."""
        found = self.agent.declared
        return found if found is not None and found.at < self.track.started else None

    # --- time ---------------------------------------------------------------------------------------------------

    def later(self, seconds: float, note: str = "", track: ExchangeRecord | None = None) -> None:
        """Ask the rule's `due` in so many seconds; `note` is given back as `due_note`. It is asked about this exchange,
        or about `track`."""
        self._later(self, self.at + int(seconds * 1e9), note, track or self.track)


def _firsts(headers: Headers) -> dict[str, bytes]:
    return {_lower(name): value for name, value in reversed(headers)}


@lru_cache(4096)
def _lower(name: bytes) -> str:
    return name.lower().decode("latin-1")


def field(headers: Headers, name: str) -> str:
    """The first field of this name; empty where there is none."""
    found = fields(headers, name)
    return found[0] if found else ""


def fields(headers: Headers, name: str) -> list[str]:
    """All fields of this name (lower case), in order."""
    wanted = name.encode("latin-1")
    return [value.decode("latin-1").strip() for key, value in headers if key.lower() == wanted]


def media_type(value: str) -> str:
    """Without parameters, lower case."""
    return value.partition(";")[0].strip().lower()


def _pairs(payload: bytes) -> list[tuple[str, str]]:
    try:
        return msgspec.json.decode(payload, type=list[tuple[str, str]]) if payload else []
    except msgspec.MsgspecError:
        return []
