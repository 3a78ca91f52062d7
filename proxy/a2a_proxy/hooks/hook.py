"""The interface: what a hook is called for. Knows no process, no file and no clock."""

from __future__ import annotations

import msgspec

from a2a_proxy.hooks.gap import Gap
from a2a_proxy.model.exchange import Exchange
from a2a_proxy.model.finding import Finding
from a2a_proxy.model.frame import Frame
from a2a_proxy.model.segment import Handoff, Interruption, Segment

ENTRY_POINT_GROUP = "a2a_proxy.hooks"
"""The entry-point group in which packages name their hooks."""


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the proxy: what a hook is told first."""

    uuid: str
    recording: str
    """Path of the recording that holds it."""
    started: int
    """ns since the Unix epoch."""
    tool: str = ""
    """Name and version of what recorded it: `a2a-proxy 0.1.0`."""
    command: tuple[str, ...] = ()
    """Its command line, redacted."""
    listens: tuple[str, ...] = ()
    upstreams: tuple[str, ...] = ()
    """Parallel to `listens`."""


class Hook:
    """An observer. Every method is optional: what is not overridden is never called.

    One instance is made, without arguments, for each session; its methods are called one at a time. Values are frozen.
    What a method raises is counted, logged and told once; the next call is made all the same.
    """

    def start(self, session: Session) -> None:
        """The first call of a session. It is made once more, on a new instance, where the hook's process died."""

    def on_frame(self, frame: Frame) -> None:
        """An A2A message or a wire event, with its payload, in the order in which they were stored."""

    def on_finding(self, finding: Finding) -> None:
        """A rule found something, after the frame that it is about."""

    def on_gap(self, gap: Gap) -> None:
        """Generations of a task were left out (A2A-GEN-001), after `on_finding` for the same finding."""

    def on_segment_end(self, segment: Segment) -> None:
        """One side has had its say; when its stream was closed may not be known yet. A turn that is one unary call has
        no segments: `on_exchange_end` tells it."""

    def on_interruption(self, interruption: Interruption) -> None:
        """The client spoke into the agent's output, and it is clear what came of it."""

    def on_handoff(self, handoff: Handoff) -> None:
        """A conversation went from one agent to another, and the new one has answered or will not."""

    def on_exchange_end(self, exchange: Exchange) -> None:
        """A call is over, after the last of its frames."""

    def close(self) -> None:
        """The last call: the session has ended and everything has been told, or nobody wants to follow it further."""


METHODS = tuple(name for name in vars(Hook) if not name.startswith("_"))
"""Names of all methods."""


def overridden_methods(hook: object) -> frozenset[str]:
    """The methods that `hook` has of its own. It need not be derived from `Hook`."""
    own = {name for name in METHODS if callable(getattr(hook, name, None))}
    if isinstance(hook, Hook):
        own -= {name for name in own if getattr(type(hook), name) is getattr(Hook, name) and name not in vars(hook)}
    return frozenset(own)
