"""Messages between the process of the tests and the process behind the fixtures: one JSON object a
line."""

from collections.abc import Callable
from typing import Any

import msgspec


class OpenAgent(msgspec.Struct, frozen=True, tag="open"):
    """Start an agent on a port: a live one, a replayed one, or a replayed one that forwards to a
    live one."""

    recording: str
    """Path of the recording of the traffic."""
    command: tuple[str, ...] = ()
    """Command that the recording names as its origin."""
    cassettes: tuple[str, ...] = ()
    """Cassettes to replay, in this order; empty: the live agent answers."""
    replay: dict[str, Any] = {}
    """Options of the replay by name."""
    upstream: str = ""
    """Address of the live agent; with cassettes, it answers the calls that they do not."""
    upstream_grpc: str = ""
    """Address for HTTP/2, if the agent has two ports."""
    redact: tuple[str, ...] = ()
    """What to redact besides credentials, as words of a policy."""
    new_recording: str = ""
    """Path of the recording of the calls that the live agent answers."""
    faults: tuple[str, ...] = ()
    """Faults on the traffic with the test."""


class StoreTraffic(msgspec.Struct, frozen=True, tag="settle"):
    """Store all traffic so far."""

    agent: int


class QueryReplay(msgspec.Struct, frozen=True, tag="ask"):
    """Return the state of the replay."""

    agent: int


class StopAgent(msgspec.Struct, frozen=True, tag="stop"):
    """Stop an agent because its test is over."""

    agent: int
    keep: bool
    """Finish the recordings; otherwise traffic that is not stored is discarded."""


Order = OpenAgent | StoreTraffic | QueryReplay | StopAgent


class AgentOpened(msgspec.Struct, frozen=True, tag="opened"):
    """The agent was started."""

    agent: int
    """Number of the agent."""
    address: str
    """`127.0.0.1:PORT`, for HTTP and gRPC."""


class ReplayStatus(msgspec.Struct, frozen=True, tag="standing"):
    """State of an agent."""

    misses: tuple[str, ...] = ()
    """Calls that were not found in the cassettes, each with its reason."""
    unused: tuple[str, ...] = ()
    """Recorded calls that the test has not made."""
    loose: tuple[str, ...] = ()
    """Calls that were answered despite differences from the recording, as `match="loose"`
    allows."""
    masked: tuple[str, ...] = ()
    """Calls that matched after masking, each with what was masked."""
    notes: tuple[str, ...] = ()
    """Notes of the relay or the replay, for example about signed cards."""
    missed_faults: tuple[str, ...] = ()
    """Faults on the traffic that have not happened."""
    forwarded: int = 0
    """Number of calls that the live agent behind a replay has answered."""


class CommandFailed(msgspec.Struct, frozen=True, tag="failed"):
    """The order failed."""

    message: str
    hint: str = ""


Answer = AgentOpened | ReplayStatus | CommandFailed

encode = msgspec.json.Encoder().encode
decode_order: Callable[[bytes], Order] = msgspec.json.Decoder(Order).decode
"""Decode one line to an Order; raises msgspec.DecodeError."""
decode_answer: Callable[[bytes], Answer] = msgspec.json.Decoder(Answer).decode
"""Decode one line to an Answer; raises msgspec.DecodeError."""
