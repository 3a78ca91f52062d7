"""A2A on a pipe (manual/protocol.md "Stdio"): many calls on one connection, told apart by their JSON-RPC ids.

A streaming call has several responses with its id, and nothing says that it is over (Q-19). So a call is over
with its first response; a streaming one with a terminal state, a Message, `final: true` or an error. A stream that
shows an interrupted state *rests*: agents may end it there or go on with it (Q-01). It is over when the pipe is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from a2a_proxy.model.chunk import ExitFacts
from a2a_proxy.model.event import TaskState
from a2a_proxy.model.exchange import Binding
from a2a_proxy.model.frame import EventKind, Frame, FrameKind
from a2a_proxy.model.wire import Cut, End, Framed
from a2a_proxy.protocol.bindings import jsonrpc
from a2a_proxy.protocol.call import TO_AGENT, TO_CLIENT, ConnectionLink, Out, RpcExchange, SpanPiece, how_cut
from a2a_proxy.protocol.errors import error_line, header
from a2a_proxy.protocol.exchange import ExchangeState
from a2a_proxy.protocol.json_shapes import UNREADABLE
from a2a_proxy.protocol.json_summary import lenient_result
from a2a_proxy.protocol.schema import BYTES, JSON, TEXT
from a2a_proxy.protocol.summary import NOTHING

MAX_OPEN = 10_000
"""Calls that are open at once; beyond, the oldest is given up."""
MAX_DONE = 10_000
"""Ids of calls that are over, and still known."""
STREAM_EVENT, STREAM_ERROR = "event/streamResponse", "event/streamError"
NOTIFICATIONS = frozenset({STREAM_EVENT, STREAM_ERROR})
"""Of the handshake variant (manual/protocol.md "Stdio streams"): an event of a stream, and its error."""

_EXACT = 2**53
"""Below it a number with a point is the same in every JSON reader."""

UNKNOWN_ID = "unknown id"
AFTER_END = "after the end of the stream"
ECHO = "the task once more, after the end of the stream"
SECOND = "second response"
UNCLEAR = "its id stands for several calls"
IN_FLIGHT = "id in flight"
FROM_AGENT = "from the agent"
NO_JSON = "not JSON"
NO_RPC = "no JSON-RPC message"
TOO_LARGE = "too large to be read"
"""Notes of messages that belong to no call; rules know them by these (`IN_FLIGHT`: of a call)."""
FORGOTTEN, REUSED = "forgotten", "id used again"
"""How calls end that nobody ended."""
EXITED = "agent exited"

Loose = Callable[[Framed, FrameKind, str, str, str, Out], None]
"""Emits a message of the connection itself: its kind, schema, JSON-RPC id and note."""


class _Shape(msgspec.Struct):
    """What tells a message from others."""

    jsonrpc: msgspec.Raw = msgspec.Raw()
    id: msgspec.Raw = msgspec.Raw()
    method: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()
    type: msgspec.Raw = msgspec.Raw()


class _Notice(msgspec.Struct):
    """A notification of the agent."""

    method: str = ""
    params: dict[str, Any] = {}


_shape = msgspec.json.Decoder(_Shape).decode
_notice = msgspec.json.Decoder(_Notice).decode
_any = msgspec.json.Decoder(msgspec.Raw).decode
_HANDSHAKES = {b'"handshake"': "handshake", b'"handshakeAck"': "handshakeAck"}
_INTERRUPTED = frozenset(int(state) for state in TaskState if state.interrupted)
_TERMINAL = frozenset(int(state) for state in TaskState if state.terminal)


class StdioCall(RpcExchange):
    """One call."""

    def __init__(self, link: ConnectionLink, exchange: ExchangeState) -> None:
        super().__init__(link, exchange)
        self.rests = False
        """Its task is interrupted: nobody waits for more on it."""
        self.notified = False
        """Its events come as notifications; its one response ends it."""
        self.unclear = False
        """Its id stood for another call that was open still."""

    def request(self, message: Framed, out: Out, note: str) -> None:
        """The client's message."""
        jsonrpc.one_request(self, message, out, note, message.framing)

    def answer(self, message: Framed, out: Out) -> bool:
        """A response of the agent; True where it is the last one."""
        streams = self.exchange.streaming and not self.notified
        self._began(message)
        kind = FrameKind.EVENT if streams else FrameKind.RESPONSE
        jsonrpc.one_response(self, message, kind, out, framing=message.framing)
        return not streams or self._ends(out[-1])

    def notice(self, method: str, params: dict[str, Any], message: Framed, out: Out) -> bool:
        """An event or an error as a notification; True where nothing follows."""
        self.notified = True
        self._began(message)
        if method == STREAM_ERROR:
            error = params.get("error", params)
            code, text = (error.get("code"), error.get("message")) if isinstance(error, dict) else (0, "")
            code = code if isinstance(code, int) else 0
            self.fail(code, error_line("", code, text if isinstance(text, str) else ""))
            self.emit(out, TO_CLIENT, FrameKind.ERROR, message, JSON, NOTHING, "", code, method, message.framing)
            return True
        summary = lenient_result(params, True)
        self.emit(out, TO_CLIENT, FrameKind.EVENT, message, JSON, summary, "", 0, method, message.framing)
        self._ends(out[-1])
        return False

    def _began(self, message: Framed) -> None:
        exchange = self.exchange
        exchange.bytes_to_client += message.end - message.start
        if not exchange.response_started:
            exchange.response_started = message.began
            exchange.response_headers = message.headers

    def _ends(self, frame: object) -> bool:
        if not isinstance(frame, Frame):
            return False
        self.rests = frame.state in _INTERRUPTED or (self.rests and not frame.state)
        # Among the events of a task a Message is a fault, and the task goes on.
        last = frame.kind is FrameKind.ERROR or (frame.event is EventKind.MESSAGE and not self.exchange.state)
        return last or frame.final or frame.state in _TERMINAL

    def save(self) -> dict[str, object]:
        """Plain values for msgpack."""
        exchange = msgspec.to_builtins(self.exchange, builtin_types=(bytes,))
        marks = {"guessed": self.guessed, "rests": self.rests, "notified": self.notified, "unclear": self.unclear}
        return {"exchange": exchange, "calls": dict(self.calls), **marks}

    @classmethod
    def restore(cls, link: ConnectionLink, state: dict[str, Any]) -> StdioCall:
        """The call that gave `state`."""
        call = cls(link, msgspec.convert(state["exchange"], ExchangeState, builtin_types=(bytes,)))
        call.calls = dict(state["calls"])
        for mark in ("guessed", "rests", "notified", "unclear"):
            setattr(call, mark, state[mark])
        return call


class Pipe:
    """The calls of one pipe."""

    def __init__(self, link: ConnectionLink, loose: Loose) -> None:
        self._link = link
        self._loose = loose
        self.calls: dict[str, StdioCall] = {}
        """Those that are open, by the keys of their ids; a notification of the client is over at once."""
        self._done: dict[str, tuple[str, int]] = {}
        """Keys of ids that are over -> the note of what comes for them, and the state that was shown last; the one
        over first is the first."""
        self._count = 0
        self._left = False
        """The client closed the pipe, or passed a signal on."""
        self._signalled = False
        self._shut = False
        """The agent closed its output."""
        self._exit: ExitFacts | None = None

    # --- messages -------------------------------------------------------------------------------------------------

    def message(self, message: Framed, out: Out) -> None:
        """One message of either side."""
        if message.broken or message.truncated:
            note = message.broken or TOO_LARGE
            self._loose(message, FrameKind.UNDECODABLE, TEXT, "", note, out)
            return
        try:
            shape = _shape(message.data)
        except UNREADABLE:
            readable = _readable(message.data)
            kind = FrameKind.OTHER if readable else FrameKind.UNDECODABLE
            schema = JSON if readable else TEXT if _is_text(message.data) else BYTES
            self._loose(message, kind, schema, "", NO_RPC if readable else NO_JSON, out)
            return
        rpc_id = jsonrpc.id_text(shape.id)
        if message.direction is TO_AGENT:
            self._from_client(message, shape, rpc_id, out)
        else:
            self._from_agent(message, shape, rpc_id, out)

    def _from_client(self, message: Framed, shape: _Shape, rpc_id: str, out: Out) -> None:
        if not shape.method:
            answer = "answer to the agent" if shape.result or shape.error else _odd(shape)
            self._loose(message, FrameKind.OTHER, JSON, rpc_id, answer, out)
            return
        key = _key(rpc_id)
        before = self.calls.get(key)
        note = IN_FLIGHT if before is not None and not before.rests else ""
        if before is not None:
            self._over(key, before, message.at, "complete" if before.rests else REUSED)
        call = StdioCall(self._link, self._opened(message))
        call.exchange.rpc_id = rpc_id
        call.unclear = bool(note)
        call.request(message, out, note)
        if not rpc_id:  # a notification: nobody answers it
            call.close(message.at, "complete")
            return
        self._done.pop(key, None)
        self.calls[key] = call
        if len(self.calls) > MAX_OPEN:
            oldest = next(iter(self.calls))
            self._over(oldest, self.calls[oldest], message.at, FORGOTTEN)

    def _from_agent(self, message: Framed, shape: _Shape, rpc_id: str, out: Out) -> None:
        if shape.method:
            self._noticed(message, rpc_id, out)
            return
        if not (shape.result or shape.error):
            self._loose(message, FrameKind.OTHER, JSON, rpc_id, _odd(shape), out)
            return
        key = _key(rpc_id)
        call = self.calls.get(key)
        if call is None and rpc_id in ("null", "") and len(self.calls) == 1:  # it could not read the id
            key, call = next(iter(self.calls.items()))
        if call is None:
            note, state = self._done.get(key, (UNKNOWN_ID, 0))
            if note == AFTER_END and state and _repeats(shape.result, state):
                note = ECHO
            self._loose(message, FrameKind.OTHER, JSON, rpc_id, note, out)
        elif call.answer(message, out):
            self._over(key, call, message.at, "complete")

    def _noticed(self, message: Framed, rpc_id: str, out: Out) -> None:
        """A message of the agent with a method: of a stream, where it tells so, or its own request."""
        try:
            notice = _notice(message.data)
        except UNREADABLE:
            notice = _Notice()
        found = None if rpc_id else self._told_of(notice)
        if found is None:
            self._loose(message, FrameKind.OTHER, JSON, rpc_id, FROM_AGENT, out)
        elif self.calls[found].notice(notice.method, notice.params, message, out):
            self._over(found, self.calls[found], message.at, "complete")

    def _told_of(self, notice: _Notice) -> str | None:
        """The stream that a notification is about: it names the call or the task, or there is one stream only."""
        if notice.method not in NOTIFICATIONS:
            return None
        streams = {rpc_id: call for rpc_id, call in self.calls.items() if call.exchange.streaming}
        for name in ("requestId", "id"):
            named = _key(msgspec.json.encode(notice.params.get(name)).decode())
            if named in streams:
                return named
        task_id = lenient_result(notice.params, True)[1]
        of_task = [rpc_id for rpc_id, call in streams.items() if task_id and call.exchange.task_id == task_id]
        found = of_task or list(streams)
        return found[0] if len(found) == 1 else None

    def _opened(self, message: Framed) -> ExchangeState:
        link, headers = self._link, message.headers
        self._count += 1
        exchange = ExchangeState(
            id=link.shared.next_exchange(),
            connection=link.connection,
            stream=self._count,
            binding=Binding.STDIO,
            started=message.began,
            request_headers=headers,
            request_ended=message.at,
            half_close="client",
            traceparent=_text(headers, b"traceparent"),
            version_header=_text(headers, b"a2a-version"),
            extensions=_text(headers, b"a2a-extensions") or _text(headers, b"x-a2a-extensions"),
            agent=link.shared.agent_of(link.facts.upstream),
            client=link.facts.client,
        )
        exchange.bytes_to_agent = message.end - message.start
        return exchange

    # --- ends -----------------------------------------------------------------------------------------------------

    def signalled(self) -> None:
        """A signal was passed on to the agent: it ends because its client wants it to."""
        self._signalled = True

    def ended(self, event: End, out: Out) -> None:
        """One side closed the pipe. The client may still read; what the agent's exit says may come yet."""
        if event.direction is TO_AGENT:
            self._left = self._left or not self._shut
        else:
            self._shut = True
            self._close_all(event.at, event.start, out)

    def exited(self, facts: ExitFacts, at: int, out: Out) -> None:
        """The agent's process is over; what it wrote may come yet."""
        self._exit = facts
        self._close_all(at, 0, out)

    def cut(self, event: Cut, out: Out) -> None:
        """A side broke off, or the proxy ended; after that nothing comes."""
        how, note = how_cut(event), event.how
        if event.how not in ("reset", "lost") and (self._exit is not None or self._shut):
            how, note = self._why() if self._exit is not None else ("agent gone", "eof")
        self._break_off(SpanPiece(event.at, event.at, event.start, event.start), how, note, out)

    def _close_all(self, at: int, start: int, out: Out) -> None:
        """Nothing more comes where the output is closed and the process over."""
        if self._shut and self._exit is not None:
            self._break_off(SpanPiece(at, at, start, start), *self._why(), out)

    def _why(self) -> tuple[str, str]:
        """How the calls end that the agent's exit leaves open, and the note about it."""
        assert self._exit is not None
        wanted = self._signalled or (self._left and self._exit.code == 0)
        return "client gone" if wanted else EXITED, self._exit.words

    def _break_off(self, place: SpanPiece, how: str, note: str, out: Out) -> None:
        side = TO_AGENT if how.startswith("client") else TO_CLIENT
        for rpc_id, call in list(self.calls.items()):
            if call.rests and how not in ("connection lost", "proxy stopped", "proxy killed"):
                self._over(rpc_id, call, place.at, "complete")
                continue
            call.emit(out, side, FrameKind.CUT, place, "", NOTHING, note=note)
            self._over(rpc_id, call, place.at, how)

    def _over(self, rpc_id: str, call: StdioCall, at: int, how: str) -> None:
        if how == "complete":
            call.exchange.response_ended = at
        call.close(at, how)
        call.touch()
        del self.calls[rpc_id]
        clear = how == "complete" and not call.unclear
        note = (AFTER_END if call.exchange.streaming else SECOND) if clear else UNCLEAR
        self._done[rpc_id] = note, call.exchange.state
        if len(self._done) > MAX_DONE:
            del self._done[next(iter(self._done))]

    # --- across a restart -----------------------------------------------------------------------------------------

    def save(self) -> dict[str, object]:
        """Plain values for msgpack."""
        return {
            "calls": [[rpc_id, call.save()] for rpc_id, call in self.calls.items()],
            "done": [[rpc_id, note, state] for rpc_id, (note, state) in self._done.items()],
            "count": self._count,
            "ends": [self._left, self._signalled, self._shut],
            "exit": self._exit and msgspec.to_builtins(self._exit),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Take over what `save` gave."""
        self.calls = {rpc_id: StdioCall.restore(self._link, saved) for rpc_id, saved in state["calls"]}
        self._done = {rpc_id: (note, shown) for rpc_id, note, shown in state["done"]}
        self._count = state["count"]
        self._left, self._signalled, self._shut = state["ends"]
        self._exit = state["exit"] and msgspec.convert(state["exit"], ExitFacts)


def _key(rpc_id: str) -> str:
    """The same text for ids of the same value, as JSON writers may spell them: `"a/b"` and `"a\\/b"`, 1 and 1.0."""
    if rpc_id.removeprefix("-").isdigit() or (rpc_id[:1] == '"' and "\\" not in rpc_id):
        return rpc_id
    try:
        value = msgspec.json.decode(rpc_id)
        whole = type(value) is float and abs(value) < _EXACT and value.is_integer()
        return msgspec.json.encode(int(value) if whole else value).decode()
    except UNREADABLE:
        return rpc_id


def _odd(shape: _Shape) -> str:
    return _HANDSHAKES.get(bytes(shape.type), NO_RPC)


def _repeats(result: msgspec.Raw, state: int) -> bool:
    """It is a snapshot of the task in the state in which its stream ended, as some agents send at last."""
    try:
        event, *_, shown = lenient_result(msgspec.json.decode(result), True)[:6]
    except UNREADABLE:
        return False
    return event is EventKind.TASK and shown == state


def _readable(data: bytes) -> bool:
    try:
        _any(data)
    except UNREADABLE:
        return False
    return True


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _text(headers: tuple[tuple[bytes, bytes], ...], name: bytes) -> str:
    return header(headers, name).decode("latin-1").strip()
