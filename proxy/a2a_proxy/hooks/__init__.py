"""The interface for hooks: a class with some of the methods of `Hook`, called for the recorded
traffic (manual: hooks).

A hook observes: it receives the values of a recording, credentials already replaced by labels, in a
process of its own. It cannot change, delay or drop traffic.

- `extensions`: loads the extensions of plug-ins (manual: extensions)
- `find`: finds a hook by its name
- `hook`: the methods of a hook
- `gap`: the argument of `on_gap`
"""

from a2a_proxy.hooks.gap import Gap
from a2a_proxy.hooks.hook import METHODS, Hook, Session
from a2a_proxy.model.values import (
    Binding,
    Dialect,
    EventKind,
    Exchange,
    Finding,
    Frame,
    FrameKind,
    Handoff,
    Interruption,
    Segment,
    Severity,
)
from a2a_proxy.model.wire import Direction

__all__ = [
    "METHODS",
    "Binding",
    "Dialect",
    "Direction",
    "EventKind",
    "Exchange",
    "Finding",
    "Frame",
    "FrameKind",
    "Gap",
    "Handoff",
    "Hook",
    "Interruption",
    "Segment",
    "Session",
    "Severity",
]
