"""What the process of the tests says to the one behind the fixtures, and what that answers: one JSON object a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec


class OpenAgent(msgspec.Struct, frozen=True, tag="open"):
    """Put an agent on a port: a live one, a replayed one, or a replayed one with a live one behind it."""

    recording: str
    """Where the recording of what passes will be."""
    command: tuple[str, ...] = ()
    """What the recording says that it was made by."""
    cassettes: tuple[str, ...] = ()
    """What is replayed, in this order; empty: nothing is, the live agent answers."""
    replay: dict[str, Any] = {}
    """Options of the replay by their names."""
    upstream: str = ""
    """The live agent; with cassettes, it answers what they do not."""
    upstream_grpc: str = ""
    """Where HTTP/2 goes, if the agent has two ports."""
    redact: tuple[str, ...] = ()
    """What is not recorded besides credentials, as words of a policy."""
    new_recording: str = ""
    """Where the recording of that which the live agent answered will be."""


class StoreTraffic(msgspec.Struct, frozen=True, tag="settle"):
    """Store all that has passed until now."""

    agent: int


class QueryReplay(msgspec.Struct, frozen=True, tag="ask"):
    """Tell how the replay stands."""

    agent: int


class StopAgent(msgspec.Struct, frozen=True, tag="stop"):
    """The test is over."""

    agent: int
    keep: bool
    """Finish the recordings; else what is not stored is dropped."""


Order = OpenAgent | StoreTraffic | QueryReplay | StopAgent


class AgentOpened(msgspec.Struct, frozen=True, tag="opened"):
    """The agent answers."""

    agent: int
    """Its number."""
    address: str
    """`127.0.0.1:PORT`, for HTTP and gRPC."""


class ReplayStatus(msgspec.Struct, frozen=True, tag="standing"):
    """How things are."""

    misses: tuple[str, ...] = ()
    """What was asked and not found in the cassettes, each with its reason."""
    unused: tuple[str, ...] = ()
    """Recorded calls that nobody has asked for."""
    loose: tuple[str, ...] = ()
    """What was answered though it differs from what was recorded, as `match="loose"` allows."""
    notes: tuple[str, ...] = ()
    """What the relay or the replay had to say, as of signed cards."""
    forwarded: int = 0
    """Calls that the live agent behind a replay has answered."""


class CommandFailed(msgspec.Struct, frozen=True, tag="failed"):
    """It cannot be done."""

    message: str
    hint: str = ""


Answer = AgentOpened | ReplayStatus | CommandFailed

encode = msgspec.json.Encoder().encode
decode_order: Callable[[bytes], Order] = msgspec.json.Decoder(Order).decode
"""One line -> Order; raises msgspec.DecodeError."""
decode_answer: Callable[[bytes], Answer] = msgspec.json.Decoder(Answer).decode
"""One line -> Answer; raises msgspec.DecodeError."""
