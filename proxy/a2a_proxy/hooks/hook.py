"""The interface of a hook: the methods it is called with. Independent of processes, files and
clocks."""

import msgspec

from a2a_proxy.hooks.gap import Gap
from a2a_proxy.model.values import Exchange, Finding, Frame, Handoff, Interruption, Segment

ENTRY_POINT_GROUP = "a2a_proxy.hooks"
"""The entry-point group in which packages register their hooks."""


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the proxy: the argument of a hook's first call."""

    uuid: str
    recording: str
    """Path of the recording that holds it."""
    started: int
    """ns since the Unix epoch."""
    tool: str = ""
    """Name and version of the recording program: `a2a-proxy 0.1.0`."""
    command: tuple[str, ...] = ()
    """The command line, redacted."""
    listens: tuple[str, ...] = ()
    upstreams: tuple[str, ...] = ()
    """Parallel to `listens`."""


class Hook:
    """An observer. Every method is optional: methods that are not overridden are never called.

    One instance is created, without arguments, for each session; its methods are called one at a
    time. Values are frozen. Exceptions are counted, logged and reported once; the next call is made
    all the same.
    """

    def start(self, session: Session) -> None:
        """Called first in a session; called again, on a new instance, if the hook's process
        died."""

    def on_frame(self, frame: Frame) -> None:
        """Called for an A2A message or a wire event, with its payload, in the order in which frames
        were stored."""

    def on_finding(self, finding: Finding) -> None:
        """Called for a finding, after the frame that it is about."""

    def on_gap(self, gap: Gap) -> None:
        """Called if generations of a task are missing (A2A-GEN-001), after `on_finding` for the
        same finding."""

    def on_segment_end(self, segment: Segment) -> None:
        """Called when a segment has ended; the time its stream closed may still be unknown.

        A turn that is one unary call has no segments: `on_exchange_end` reports it.
        """

    def on_interruption(self, interruption: Interruption) -> None:
        """Called when the outcome of an interruption is clear: the client sent during the agent's
        output."""

    def on_handoff(self, handoff: Handoff) -> None:
        """Called when a conversation went from one agent to another, and the new one has answered
        or will not."""

    def on_exchange_end(self, exchange: Exchange) -> None:
        """Called when a call has ended, after the last of its frames."""

    def close(self) -> None:
        """Called last: the session has ended and everything has been reported, or the hook is
        stopped early."""


METHODS = tuple(name for name in vars(Hook) if not name.startswith("_"))
"""Names of all methods."""


def overridden_methods(hook: object) -> frozenset[str]:
    """Return the names of the methods that `hook` implements. It need not be derived from
    `Hook`."""
    own = {name for name in METHODS if callable(getattr(hook, name, None))}
    if isinstance(hook, Hook):
        own -= {
            name
            for name in own
            if getattr(type(hook), name) is getattr(Hook, name) and name not in vars(hook)
        }
    return frozenset(own)
