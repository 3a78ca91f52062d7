"""How the rules about stdio read a frame, and what they remember of a connection."""

from __future__ import annotations

from typing import NamedTuple

from a2a_proxy.model.chunk import Direction
from a2a_proxy.model.frame import Frame
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import HookPoint
from a2a_proxy.rules.state.records import Notes

EVERYWHERE = (HookPoint.REQUEST, HookPoint.ANSWER, HookPoint.CONNECTION)
"""A message of a pipe belongs to a call, or to the connection itself."""
RIGHT_TYPES = "\1"
"""What stands for a Content-Length that is right."""
HANDSHAKE_METHODS = frozenset({"handshake", "handshakeAck"})
"""Notes of the messages with which the peers of a variant begin (manual/protocol.md "Stdio streams")."""
_BLOCK_MARK = "\n\0"


class StdioField(NamedTuple):
    """One field of a header block."""

    name: str
    """In lower case."""
    value: str
    crlf: bool
    """Its line ends with CRLF."""


def has_header_block(frame: Frame) -> bool:
    """It is a message with a header block."""
    return _BLOCK_MARK in frame.framing


def header_fields(frame: Frame) -> list[StdioField]:
    """The header block of a message; the empty line that ends it has no name. Nothing where there is none."""
    if not has_header_block(frame):
        return []
    block = frame.framing.partition("\0")[0]
    found = []
    for line in block.split("\n")[:-1]:
        name, _, value = line.removesuffix("\r").partition(":")
        found.append(StdioField(name.strip().lower(), value.strip(), line.endswith("\r")))
    return found


def header_values(frame: Frame, name: str) -> list[str]:
    """All values of a field (lower case)."""
    return [field.value for field in header_fields(frame) if field.name == name]


def sender_name(frame: Frame) -> str:
    """Who sent it: `client` or `agent`."""
    return "client" if frame.direction is Direction.TO_AGENT else "agent"


def session_notes(context: RuleContext) -> Notes:
    """What is remembered of this agent process."""
    everyone: Notes = context.session.notes.setdefault("stdio", {})
    found: Notes = everyone.setdefault(str(context.record.connection), {})
    return found


def is_first_time(context: RuleContext, topic: str) -> bool:
    """True for the first time that it is asked about this agent process."""
    known = session_notes(context)
    if topic in known or len(known) >= _MAX_TOPICS:
        return False
    known[topic] = True
    return True


_MAX_TOPICS = 1000
"""Facts that are remembered of one process: names of fields may be of any number."""
