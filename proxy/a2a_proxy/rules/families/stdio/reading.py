"""Frame decoding and notes shared by the rules about stdio."""

from functools import partial
from typing import NamedTuple

from a2a_proxy.model.values import Binding, Frame
from a2a_proxy.model.wire import Direction
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import STDIO, HookPoint
from a2a_proxy.rules.define.rule import rule
from a2a_proxy.rules.state.records import ExchangeRecord, Notes

stdio_rule = partial(rule, bindings=STDIO)
"""The decorator `rule` of this family."""
EVERYWHERE = (HookPoint.REQUEST, HookPoint.ANSWER, HookPoint.CONNECTION)
"""Hook points of every message on a pipe: it belongs to a call or to the connection."""
RIGHT_TYPES = "\1"
"""Placeholder for a correct Content-Length."""
HANDSHAKE_METHODS = frozenset({"handshake", "handshakeAck"})
"""Notes of the messages with which the peers of a variant begin (manual/protocol.md "Stdio
streams")."""
_BLOCK_MARK = "\n\0"


class StdioField(NamedTuple):
    """One field of a header block."""

    name: str
    """In lower case."""
    value: str
    crlf: bool
    """Whether the line of the field ends with CRLF."""


def has_header_block(frame: Frame) -> bool:
    """Whether the frame is a message with a header block."""
    return _BLOCK_MARK in frame.framing


def header_fields(frame: Frame) -> list[StdioField]:
    """Return the fields of a message's header block, or an empty list if it has none. The empty
    line that ends the block has no name."""
    if not has_header_block(frame):
        return []
    block = frame.framing.partition("\0")[0]
    found = []
    for line in block.split("\n")[:-1]:
        name, _, value = line.removesuffix("\r").partition(":")
        found.append(StdioField(name.strip().lower(), value.strip(), line.endswith("\r")))
    return found


def header_values(frame: Frame, name: str) -> list[str]:
    """Return all values of a field (name in lower case)."""
    return [field.value for field in header_fields(frame) if field.name == name]


def sender_name(frame: Frame) -> str:
    """Return the sender of the frame: `client` or `agent`."""
    return "client" if frame.direction is Direction.TO_AGENT else "agent"


def session_notes(context: RuleContext) -> Notes:
    """Return the notes about this agent process."""
    everyone: Notes = context.session.notes.setdefault("stdio", {})
    found: Notes = everyone.setdefault(str(context.record.connection), {})
    return found


def is_first_time(context: RuleContext, topic: str) -> bool:
    """Return True for the first call with this topic and this agent process."""
    known = session_notes(context)
    if topic in known or len(known) >= _MAX_TOPICS:
        return False
    known[topic] = True
    return True


_MAX_TOPICS = 1000
"""Number of topics remembered for one process, because there is no limit on the names of header
fields."""


def remember_call(context: RuleContext) -> None:
    """Remember the exchange of a request's id, for responses that arrive after the end of the
    call."""
    calls = session_notes(context).setdefault("calls", {})
    record, rpc_id = context.record, context.frame.rpc_id[:_MAX_ID_LENGTH]
    calls.pop(rpc_id, None)
    calls[rpc_id] = [record.id, record.operation]
    if len(calls) > _MAX_CALLS:
        del calls[next(iter(calls))]


def ended_call(context: RuleContext) -> ExchangeRecord | None:
    """Return a record in place of that of the ended call to which the frame, a response of the
    agent, belongs; None if the call is unknown."""
    found = session_notes(context).get("calls", {}).get(context.frame.rpc_id[:_MAX_ID_LENGTH])
    if found is None:
        return None
    agent = context.agent.name
    return ExchangeRecord(found[0], context.frame.connection, agent, Binding.STDIO, found[1], 0)


_MAX_CALLS, _MAX_ID_LENGTH = 1000, 200
