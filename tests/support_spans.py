"""Spans as a backend returns them, and their expected content for a chain of three agents
(`support_chain`)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from a2a_proxy.model.values import Exchange
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from support_chain import AGENTS, ASKS
from support_otlp import Received, attributes

_DATA = Path(__file__).resolve().parent / "data"
TRACED, UNTRACED = _DATA / "chain-traced.a2a.jsonl", _DATA / "chain-untraced.a2a.jsonl"
"""The chain as `tests/e2e/record_chains.py` recorded it."""
AGENTS_SPANS = _DATA / "chain-traced.spans.json"
"""The spans that agents and client of the first recording sent themselves."""
SEND, CARD = "SendStreamingMessage", "GetAgentCard"
CLOCKS_NS = 5_000_000
"""Maximum difference between the clocks of two processes."""


class Seen(msgspec.Struct, frozen=True):
    """A span as a backend returns it."""

    name: str
    trace: str
    span: str
    parent: str
    started: int
    """ns since the epoch, with the precision of the backend."""
    ended: int
    attributes: dict[str, Any]
    events: tuple[tuple[str, int], ...]
    """Name and time."""
    links: tuple[tuple[str, str, str], ...] = ()
    """Trace, span, what `a2a_proxy.link` says."""
    error: bool = False


def received_spans(received: Received) -> list[Seen]:
    """Return the spans that a backend in this process received, in order of time."""
    return sorted(map(_of_otlp, received.spans()), key=lambda each: each.started)


def _of_otlp(span: Any) -> Seen:
    return Seen(
        name=span.name,
        trace=span.trace_id.hex(),
        span=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        started=span.start_time_unix_nano,
        ended=span.end_time_unix_nano,
        attributes=attributes(span),
        events=tuple((each.name, each.time_unix_nano) for each in span.events),
        links=tuple(
            (each.trace_id.hex(), each.span_id.hex(), str(attributes(each).get("a2a_proxy.link")))
            for each in span.links
        ),
        error=span.status.code == span.status.STATUS_CODE_ERROR,
    )


def recorded(paths: Iterable[Path]) -> list[Exchange]:
    """Return all calls of recordings or cassettes, in order of time."""
    found: list[Exchange] = []
    for path in paths:
        with open_recording_or_cassette(path) as recording:
            found += [row.exchange for row in recording.read_exchanges()]
    return sorted(found, key=lambda each: each.started)


def ours(spans: list[Seen], name: str) -> list[Seen]:
    """Return the proxy's spans with this name: one for each hop of the chain, in the order of the
    hops."""
    return [each for each in spans if each.name == name and "a2a_proxy.binding" in each.attributes]


def of_agents(spans: list[Seen], side: str) -> dict[str, Seen]:
    """Return the spans that agents and client sent themselves, by sender."""
    return {each.attributes["actor"]: each for each in spans if each.attributes.get("side") == side}


def check_as_recorded(spans: list[Seen], calls: list[Exchange], unit: int) -> None:
    """Check names, times (with this tolerance in ns), the attributes of each hop, and its
    events."""
    assert [each.name for each in spans] == [call.operation for call in calls]
    for each, call in zip(spans, calls, strict=True):
        assert abs(each.started - call.started) < unit
        assert abs(each.ended - call.closed) < unit
    hops = ours(spans, SEND)
    assert [hop.attributes["a2a_proxy.binding"] for hop in hops] == ["jsonrpc", "grpc", "http+json"]
    assert [hop.attributes["gen_ai.agent.name"] for hop in hops] == list(AGENTS)
    assert len({hop.attributes["gen_ai.conversation.id"] for hop in hops}) == 1
    assert len({hop.attributes["a2a.task.id"] for hop in hops}) == len(AGENTS)
    for hop, call in zip(hops, [each for each in calls if each.operation == SEND], strict=True):
        assert hop.attributes["a2a.task.id"] == call.task_id
        assert hop.attributes["a2a.task.state"] == "completed"
        told = [each for each in hop.events if each[0] != "a2a_proxy.finding"]
        assert [name for name, _ in told] == [
            "a2a_proxy.first_event",
            *["a2a.task.state_change"] * 3,
        ]
        assert abs(told[0][1] - call.first_event) < unit
        assert all(call.started - unit < at < call.closed + unit for _, at in hop.events)
        assert not hop.error


def check_one_tree(spans: list[Seen]) -> None:
    """Check that each agent's spans and the proxy's are children of the span that caused them."""
    asking, serving = of_agents(spans, "asking"), of_agents(spans, "serving")
    assert len({each.trace for each in spans}) == 1
    assert asking["caller"].parent == ""
    for who, agent, call, card in zip(
        ASKS, AGENTS, ours(spans, SEND), ours(spans, CARD), strict=True
    ):
        assert {call.parent, card.parent, serving[agent].parent} == {asking[who].span}
        if agent in asking:
            assert asking[agent].parent == serving[agent].span
        for each in (call, card):
            assert (
                asking[who].started - CLOCKS_NS
                <= each.started
                <= each.ended
                <= asking[who].ended + CLOCKS_NS
            )


def check_apart(spans: list[Seen]) -> None:
    """Check that each call has a trace of its own."""
    assert len({each.trace for each in spans}) == len(spans)
    assert {each.parent for each in spans} == {""}


def check_links(spans: list[Seen]) -> None:
    """Check that the calls to the second and the third agent link to the previous call, and that
    there are no other links."""
    desk, broker, hotel = ours(spans, SEND)
    assert {each.span: each.links for each in spans if each.links} == {
        broker.span: ((desk.trace, desk.span, "handoff"),),
        hotel.span: ((broker.trace, broker.span, "handoff"),),
    }


def is_onward(span: Seen) -> bool:
    """Return whether it is the second span of a call to which the proxy added a `traceparent`; the
    first one describes the call."""
    return "a2a_proxy.stream" not in span.attributes


def check_chain(spans: list[Seen]) -> None:
    """Check the proxy's spans alone, two for each call: a call of an agent is a child of the call
    that it received."""
    came = [each for each in spans if not is_onward(each)]
    went = {each.attributes["a2a_proxy.exchange"]: each for each in spans if is_onward(each)}
    for each in came:
        onward = went[each.attributes["a2a_proxy.exchange"]]
        assert (onward.trace, onward.parent, onward.name) == (each.trace, each.span, each.name)
    calls, cards = ours(came, SEND), ours(came, CARD)
    above = ["", *(went[each.attributes["a2a_proxy.exchange"]].span for each in calls[:-1])]
    assert [call.parent for call in calls] == [card.parent for card in cards] == above
    assert len({each.trace for each in (*calls, *cards[1:])}) == 1
