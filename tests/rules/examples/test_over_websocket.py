"""Examples over JSON-RPC carried over a WebSocket: the same findings on both transports."""

from __future__ import annotations

import msgspec
import pytest

from a2a_proxy.model.values import Binding, Finding, Frame, FrameKind
from a2a_proxy.model.wire import Chunk, ChunkKind, Direction
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.define.rule import Rule
from support_observer import Seen, observe, opening
from support_websocket import CLOSE, TEXT, agreed, asked, closing, frame, up

UP, DOWN = Direction.TO_AGENT, Direction.TO_CLIENT
_SAID = frozenset({FrameKind.REQUEST, FrameKind.RESPONSE, FrameKind.EVENT, FrameKind.ERROR})
_FIELDS = (b"a2a-", b"x-a2a-")
_STEP = 1000
_OTHERWISE: dict[str, str] = {}
"""Rules that a WebSocket leaves nothing to judge for, in their example."""
_TWICE = frozenset({"A2A-END-021", "A2A-GEN-021", "A2A-STATE-018"})
"""Their examples have two calls with one id open at once, which a socket cannot carry."""


def _carried(chunks: list[Chunk], seen: Seen) -> list[Chunk] | None:
    """The same messages on a WebSocket, at the same times; None where it is not all JSON-RPC."""
    if any(each.binding is not Binding.JSONRPC for each in seen.exchanges.values()):
        return None
    start = chunks[0].at
    session = opening(1, start)
    session += [
        Chunk(1, ChunkKind.DATA, UP, start, asked(Sec_WebSocket_Protocol="a2a.v1")),
        Chunk(1, ChunkKind.DATA, DOWN, start, agreed("a2a.v1")),
    ]

    def add(way: Direction, at: int, data: bytes, opcode: int = TEXT) -> None:
        sent = (up if way is UP else frame)(opcode, data)
        session.append(Chunk(1, ChunkKind.DATA, way, max(at, session[-1].at), sent))

    for each in (each for each in seen.out if isinstance(each, Frame)):
        if not each.exchange:
            continue
        exchange = seen.exchanges[each.exchange]
        if each.kind is FrameKind.END:
            end = {"jsonrpc": "2.0", "id": msgspec.Raw(exchange.rpc_id.encode()), "streamEnd": True}
            add(DOWN, each.at, msgspec.json.encode(end))
        if not each.payload or each.kind not in _SAID or each.note == "batch":
            continue
        data = each.payload
        named = {
            name.decode(): value.decode("latin-1")
            for name, value in exchange.request_headers
            if name.lower().startswith(_FIELDS)
        }
        if each.direction is UP and named and data.endswith(b"}"):
            data = data[:-1] + b',"serviceParams":' + msgspec.json.encode(named) + b"}"
        add(each.direction, each.at, data)
    last = max(each.at for each in chunks)
    add(UP, last, closing(1000), CLOSE)
    add(DOWN, last, closing(1000), CLOSE)
    closed = Chunk(1, ChunkKind.CLOSED, UP, session[-1].at + _STEP)
    return [*session, closed, Chunk(0, ChunkKind.END, UP, closed.at + _STEP)]


def _found(seen: Seen) -> set[str]:
    """Rules that are about WebSockets too."""
    said = {each.rule for each in seen.out if isinstance(each, Finding)}
    return {
        each
        for each in said
        if each in all_rules() and Binding.WEBSOCKET in all_rules()[each].bindings
    }


@pytest.mark.parametrize(
    "rule",
    [each for each in all_rules().values() if Binding.WEBSOCKET in each.bindings],
    ids=lambda rule: rule.id,
)
def test_json_rpc_examples_are_judged_alike_over_a_websocket(rule: Rule) -> None:
    """The same findings except those that a WebSocket cannot show."""
    for script, flagged in ((rule.flagged, True), (rule.clean, False)):
        chunks = script.make_chunks()
        there = observe(chunks)
        carried = _carried(chunks, there)
        if carried is None or rule.id in _TWICE:
            continue
        here = _found(observe(carried))
        if flagged and rule.id in _OTHERWISE:
            assert rule.id not in here
        else:
            assert here == _found(there)
