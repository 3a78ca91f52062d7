"""One exchange while it is open: a mutable version of `model.exchange.Exchange`, with the state of its decoding.

A test compares the fields with the model's.
"""

from __future__ import annotations

from operator import attrgetter

import msgspec

from a2a_proxy.model.exchange import Binding, Dialect, Exchange
from a2a_proxy.model.wire import Headers

MAX_STATES = 32


class ExchangeState(msgspec.Struct):
    """The model's fields in the same order (so a snapshot is one call), followed by fields of the decoder."""

    id: int
    connection: int
    stream: int
    binding: Binding
    started: int
    dialect: Dialect = Dialect.UNKNOWN
    operation: str = ""
    method: str = ""
    target: str = ""
    authority: str = ""
    http_version: str = ""
    streaming: bool = False
    rpc_id: str = ""
    request_headers: Headers = ()
    response_headers: Headers = ()
    trailers: Headers = ()
    informational: tuple[int, ...] = ()
    request_ended: int = 0
    response_started: int = 0
    first_event: int = 0
    last_event: int = 0
    closed: int = 0
    status: int = 0
    grpc_status: int = -1
    error_code: int = 0
    error: str = ""
    how: str = ""
    half_close: str = ""
    task_id: str = ""
    context_id: str = ""
    states: tuple[str, ...] = ()
    requests: int = 0
    events: int = 0
    bytes_to_agent: int = 0
    bytes_to_client: int = 0
    traceparent: str = ""
    version_header: str = ""
    extensions: str = ""
    ours: bool = False
    redacted: tuple[str, ...] = ()
    live_payload: str = ""
    current_generation: int | None = None
    generation_match: int | None = None
    generation: int = 0
    sent_traceparent: str = ""

    seq: int = 0
    """Number of frames so far: the position of the next frame."""
    state: int = 0
    """The last state seen, 0 before the first."""
    response_ended: int = 0
    """Time at which the response was complete, ns; 0 before that."""
    agent: str = ""
    """Agent that owns the tasks: the upstream, or the upstream whose card also lists this address (Q-25)."""
    client: str = ""
    """Host of the client without its port, because streams and polls of one client use several connections."""
    tenant: str = ""
    """Tenant in the path or the request; empty if there is none."""

    def snapshot(self) -> Exchange:
        """Return the current exchange."""
        return Exchange(*_snapshot_values(self))

    def set_expected_generations(self, current: int | None, if_match: int | None) -> None:
        """Store the generation that the first request waits for, or depends on."""
        self.current_generation = current if self.operation == "GetTask" else None
        self.generation_match = if_match

    def close(self, at: int, how: str) -> None:
        """Close the exchange; only the first call has an effect."""
        if not self.closed:
            self.closed = at
            self.how = "refused" if self.ours else how


_snapshot_values = attrgetter(*Exchange.__struct_fields__)
