"""One exchange while it is open, with the state of its decoding, and the table of its life."""

from enum import StrEnum
from operator import attrgetter

from a2a_proxy.model.transitions import TransitionTable
from a2a_proxy.model.values import Exchange, ExchangeFields

MAX_STATES = 32
HOW_FAULT = "cut by --fault"
"""How an exchange ends that the proxy ended on purpose (`Exchange.how`)."""
HOW_SWITCHED = "switched to "
"""Prefix of `Exchange.how` if the response made the connection leave HTTP/1; the protocol
follows."""


class Life(StrEnum):
    """State of an exchange that has an HTTP stream of its own."""

    OPEN = "open"
    REQUEST_ENDED = "request ended"
    ANSWERED = "answered"
    """The response has ended before the request."""
    CLIENT_LEFT = "client left"
    """The client closed its side: it may still read, so the response continues."""
    OVER = "over"
    """Nothing more can arrive."""


class LifeEvent(StrEnum):
    """Event at which a direction of the stream ends or breaks off."""

    REQUEST_END = "request ends"
    RESPONSE_END = "response ends"
    CLIENT_GONE = "client gone"
    """FIN or RST of the client's connection."""
    CLIENT_CUT = "request cut"
    """RST_STREAM of the client, or its bytes were not captured."""
    AGENT_CUT = "response cut"


class LifeMeaning(StrEnum):
    """What an event means for the exchange."""

    HALF_CLOSED = "half-closed by the client"
    ANSWERED_EARLY = "complete, half-closed by the agent"
    COMPLETE = "complete"
    BROKEN_OFF = "broken off: a CUT frame"
    LATE_REQUEST_END = "end of a request that was answered or left"
    REST = "rest of the response"
    CLEAN_UP = "no fault: a peer cleans up"


LIFE = TransitionTable(
    {
        (Life.OPEN, LifeEvent.REQUEST_END): (Life.REQUEST_ENDED, LifeMeaning.HALF_CLOSED),
        (Life.OPEN, LifeEvent.RESPONSE_END): (Life.ANSWERED, LifeMeaning.ANSWERED_EARLY),
        (Life.OPEN, LifeEvent.CLIENT_GONE): (Life.CLIENT_LEFT, LifeMeaning.BROKEN_OFF),
        (Life.OPEN, LifeEvent.CLIENT_CUT): (Life.OVER, LifeMeaning.BROKEN_OFF),
        (Life.OPEN, LifeEvent.AGENT_CUT): (Life.OVER, LifeMeaning.BROKEN_OFF),
        (Life.REQUEST_ENDED, LifeEvent.RESPONSE_END): (Life.OVER, LifeMeaning.COMPLETE),
        (Life.REQUEST_ENDED, LifeEvent.CLIENT_GONE): (Life.CLIENT_LEFT, LifeMeaning.BROKEN_OFF),
        (Life.REQUEST_ENDED, LifeEvent.CLIENT_CUT): (Life.OVER, LifeMeaning.BROKEN_OFF),
        (Life.REQUEST_ENDED, LifeEvent.AGENT_CUT): (Life.OVER, LifeMeaning.BROKEN_OFF),
        (Life.ANSWERED, LifeEvent.REQUEST_END): (Life.OVER, LifeMeaning.LATE_REQUEST_END),
        (Life.ANSWERED, LifeEvent.RESPONSE_END): (
            Life.ANSWERED,
            LifeMeaning.REST,
        ),  # of a second response
        (Life.ANSWERED, LifeEvent.CLIENT_GONE): (Life.OVER, LifeMeaning.CLEAN_UP),
        (Life.ANSWERED, LifeEvent.CLIENT_CUT): (Life.OVER, LifeMeaning.CLEAN_UP),
        (Life.ANSWERED, LifeEvent.AGENT_CUT): (Life.ANSWERED, LifeMeaning.CLEAN_UP),
        (Life.CLIENT_LEFT, LifeEvent.REQUEST_END): (Life.CLIENT_LEFT, LifeMeaning.LATE_REQUEST_END),
        (Life.CLIENT_LEFT, LifeEvent.RESPONSE_END): (Life.OVER, LifeMeaning.REST),
        (Life.CLIENT_LEFT, LifeEvent.CLIENT_GONE): (Life.CLIENT_LEFT, LifeMeaning.CLEAN_UP),
        (Life.CLIENT_LEFT, LifeEvent.CLIENT_CUT): (Life.CLIENT_LEFT, LifeMeaning.CLEAN_UP),
        (Life.CLIENT_LEFT, LifeEvent.AGENT_CUT): (Life.OVER, LifeMeaning.REST),
    }
)
"""Life of an exchange that has an HTTP stream of its own; that of a call on a pipe is in
`protocol.stream_life`. An exchange that the proxy refused is over when it closes. Undefined: a
second end of the request, and anything when it is over, because the decoder of the stream is
gone."""


class ExchangeState(ExchangeFields):
    """The exchange as known so far, followed by fields of the decoder."""

    seq: int = 0
    """Number of frames so far: the position of the next frame."""
    state: int = 0
    """The last state seen, 0 before the first."""
    client: str = ""
    """Host of the client without its port, because streams and polls of one client use several
    connections."""
    ends_by_fault: bool = False
    """Whether the proxy ends it on purpose, before the agent does for the client."""
    tenant: str = ""
    """Tenant in the path or the request; empty if there is none."""
    is_deliverer_known: bool = False
    """Whether `agent` is the agent that sends a push notification, and not its receiver."""

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
            self.how = "refused" if self.ours else HOW_FAULT if self.ends_by_fault else how


_snapshot_values = attrgetter(*Exchange.__struct_fields__)
