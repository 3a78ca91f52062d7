"""Examples over JSON-RPC carried over a pipe: the same findings on both transports."""

from __future__ import annotations

import pytest

from a2a_proxy.model.values import Binding, Finding, Frame, FrameKind
from a2a_proxy.model.wire import Chunk, Direction
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.define.rule import Rule
from support_observer import Seen, observe
from support_pipe import Stdio, framed

_SAID = frozenset({FrameKind.REQUEST, FrameKind.RESPONSE, FrameKind.EVENT, FrameKind.ERROR})
_FIELDS = (b"a2a-", b"x-a2a-", b"traceparent")
_BY_CARRIER = frozenset({"A2A-STDIO-019", "A2A-STDIO-007"})
"""What they say, a rule about JSON-RPC or versions says too."""
_OTHERWISE = {
    "A2A-GEN-007": "the snapshot in which it stands comes after the end",
    "A2A-RPC-001": "text that is no JSON belongs to no call: A2A-STDIO-007",
    "A2A-RPC-003": "an array is no message: A2A-STDIO-007",
    "A2A-RPC-004": "without a method it is no call: A2A-STDIO-007",
    "A2A-RPC-007": "a response is known by its id only: A2A-STDIO-008",
    "A2A-RPC-008": "without a result or an error it is no response: A2A-STDIO-007",
    "A2A-RPC-013": "its request is no JSON",
    "A2A-RPC-017": "a notification has no id by which to know the response: A2A-STDIO-008",
    "A2A-STATE-013": "after the end: A2A-STDIO-010",
    "A2A-STREAM-002": "after the end: A2A-STDIO-010",
    "A2A-STREAM-005": "after the end: A2A-STDIO-010",
    "A2A-STREAM-006": "nothing but the terminal state ends a stream",
    "A2A-STREAM-007": "a stream that ends early cannot be told from one that goes on",
    "A2A-STREAM-009": "a stream that ends early cannot be told from one that goes on",
    "A2A-STREAM-016": "after the end: A2A-STDIO-010",
}
"""Rules that a pipe leaves nothing to judge for, in their example."""
_AS_WELL = frozenset({"A2A-STATE-001"})
"""Found on a pipe too, beside A2A-STDIO-010: the example goes on after the end of its stream."""
_TWICE = frozenset({"A2A-GEN-021", "A2A-STATE-018"})
"""Their examples have two calls with one id open at once, which a pipe cannot carry."""


def _carried(chunks: list[Chunk], seen: Seen) -> list[Chunk] | None:
    """The same messages on a pipe, at the same times; None where it is not all JSON-RPC."""
    if any(each.binding is not Binding.JSONRPC for each in seen.exchanges.values()):
        return None
    session = Stdio()
    for frame in (each for each in seen.out if isinstance(each, Frame)):
        if (
            not frame.exchange
            or not frame.payload
            or frame.kind not in _SAID
            or frame.note == "batch"
        ):
            continue
        exchange, up = seen.exchanges[frame.exchange], frame.direction is Direction.TO_AGENT
        fields = exchange.request_headers if up else exchange.response_headers
        named = {
            name.decode(): value.decode("latin-1")
            for name, value in fields
            if name.lower().startswith(_FIELDS)
        }
        data = framed(frame.payload, **named)
        session.at(frame.at)
        (session.write if up else session.read)(data)
    session.at(max(each.at for each in chunks))
    return session.eof(Direction.TO_AGENT).exit().closed().session()


def _found(seen: Seen) -> set[str]:
    """Rules that are about stdio too."""
    said = {each.rule for each in seen.out if isinstance(each, Finding)}
    return {
        each for each in said if each in all_rules() and Binding.STDIO in all_rules()[each].bindings
    } - _BY_CARRIER


@pytest.mark.parametrize(
    "rule",
    [
        each
        for each in all_rules().values()
        if Binding.STDIO in each.bindings and each.family != "STDIO"
    ],
    ids=lambda rule: rule.id,
)
def test_json_rpc_examples_are_judged_alike_over_stdio(rule: Rule) -> None:
    """The same findings except those that a pipe cannot show."""
    for script, flagged in ((rule.flagged, True), (rule.clean, False)):
        chunks = script.make_chunks()
        there = observe(chunks)
        carried = _carried(chunks, there)
        if carried is None or rule.id in _TWICE:
            continue
        here = _found(observe(carried))
        if flagged and rule.id in _OTHERWISE:
            assert rule.id not in here
        elif flagged and rule.id in _AS_WELL:
            assert rule.id in here
        else:
            assert here == _found(there)
