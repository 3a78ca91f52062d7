"""A2A on a pipe (manual/protocol.md "Stdio"): many calls on one connection, distinguished by their
JSON-RPC ids.

A streaming call has several responses with the same id, and no message marks its end (Q-19):
`protocol.stream_life` decides it.
"""

from a2a_proxy.model.values import Binding
from a2a_proxy.model.wire import Cut, End, ExitFacts, Framed
from a2a_proxy.protocol.bindings.rpc_calls import MessageKind, RpcCalls
from a2a_proxy.protocol.call import (
    TO_AGENT,
    Out,
    SpanPiece,
    exchange_end_of_cut,
    read_call_fields,
)
from a2a_proxy.protocol.exchange import ExchangeState

HOW_AGENT_EXITED = "agent exited"


class Pipe(RpcCalls, tag="stdio"):
    """The calls of one pipe."""

    _client_left: bool = False
    """Whether the client closed the pipe before the agent did."""
    _has_signal: bool = False
    _output_closed: bool = False
    """Whether the agent closed its output."""
    _exit: ExitFacts | None = None

    def open_exchange(self, message: Framed, shape: MessageKind) -> ExchangeState:  # noqa: ARG002
        """Return the exchange of a new call; its header block has the fields of the call."""
        link, headers = self.link, message.headers
        traceparent, version, extensions = read_call_fields(headers)
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
            traceparent=traceparent,
            version_header=version,
            extensions=extensions,
            agent=link.facts.upstream,
            client=link.facts.client,
        )
        exchange.bytes_to_agent = message.end - message.start
        return exchange

    # --- ends

    def on_signal(self) -> None:
        """Record that a signal was passed on to the agent: its exit is then intended by the
        client."""
        self._has_signal = True

    def on_end(self, event: End, out: Out) -> None:
        """Handle a side that closed the pipe. The client may still read, and the agent's exit
        status may still arrive."""
        if event.direction is TO_AGENT:
            self._client_left = self._client_left or not self._output_closed
        else:
            self._output_closed = True
            self._close_if_over(event.at, event.start, out)

    def on_exit(self, facts: ExitFacts, at: int, out: Out) -> None:
        """Record the exit of the agent's process; its last output may still arrive."""
        self._exit = facts
        self._close_if_over(at, 0, out)

    def on_cut(self, event: Cut, out: Out) -> None:
        """Close all calls, because a side broke off or the proxy ended; no events follow."""
        how, note = exchange_end_of_cut(event), event.how
        if event.how not in ("reset", "lost") and (self._exit is not None or self._output_closed):
            how, note = self._exit_outcome() if self._exit is not None else ("agent gone", "eof")
        self.cut_all_calls(SpanPiece(event.at, event.at, event.start, event.start), how, note, out)

    def _close_if_over(self, at: int, start: int, out: Out) -> None:
        """Close all calls if the output is closed and the process has ended, because nothing more
        can arrive."""
        if self._output_closed and self._exit is not None:
            self.cut_all_calls(SpanPiece(at, at, start, start), *self._exit_outcome(), out)

    def _exit_outcome(self) -> tuple[str, str]:
        """Return `Exchange.how` for the calls that the agent's exit leaves open, and the note of
        their cuts."""
        assert self._exit is not None
        is_intended = self._has_signal or (self._client_left and self._exit.code == 0)
        return "client gone" if is_intended else HOW_AGENT_EXITED, self._exit.description
