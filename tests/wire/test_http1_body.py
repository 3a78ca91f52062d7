"""Bodies of generated conversations against h11, and random damage."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.model.chunk import Direction
from a2a_proxy.model.wire import Undecodable
from a2a_proxy.wire.http1 import Http1Decoder
from support_http1 import conversations, messages, oracle_requests, oracle_responses
from support_wire import Step, play

Conversation = list[tuple[bytes, bytes, bytes]]
SETTINGS = settings(max_examples=150, deadline=None)


def steps_of(conversation: Conversation, pipelined: bool) -> list[Step]:
    if pipelined:
        wires = [("C", b"".join(request for _, request, _ in conversation))]
        wires += [("S", b"".join(response for _, _, response in conversation))]
    else:
        wires = [step for _, request, response in conversation for step in (("C", request), ("S", response))]
    return [*wires, ("s-eof", b""), ("c-eof", b"")]


@SETTINGS
@given(conversation=conversations(), pipelined=st.booleans())
def test_h11_reads_the_same(conversation: Conversation, pipelined: bool) -> None:
    """Both directions of any valid conversation are what h11 as server and as client reads in them."""
    events = play(Http1Decoder(), steps_of(conversation, pipelined))
    wire = b"".join(request for _, request, _ in conversation)
    assert messages(events, Direction.TO_AGENT) == oracle_requests(wire)
    answers = [(method, response) for method, _, response in conversation]
    assert messages(events, Direction.TO_CLIENT) == oracle_responses(answers, eof=True)


@SETTINGS
@given(conversation=conversations(), pipelined=st.booleans(), step=st.integers(1, 60), restart=st.booleans())
def test_any_split_gives_the_same_events(conversation: Conversation, pipelined: bool, step: int, restart: bool) -> None:
    """However the bytes come, also with the decoder saved and restored between them."""
    steps = steps_of(conversation, pipelined)
    split = play(Http1Decoder(), steps, lambda data: range(0, len(data), step), restart)
    assert split == play(Http1Decoder(), steps)


@st.composite
def damaged(draw: st.DrawFn) -> list[Step]:
    """A conversation with some bytes replaced, removed or put in, and ends anywhere."""
    steps = steps_of(draw(conversations()), draw(st.booleans()))
    for _ in range(draw(st.integers(1, 4))):
        index = draw(st.integers(0, len(steps) - 1))
        what, data = steps[index]
        if len(what) > 1:
            steps.insert(index, (draw(st.sampled_from(["c-eof", "s-eof", "c-reset", "s-reset", "c-lost"])), b""))
            continue
        at = draw(st.integers(0, len(data)))
        gone = draw(st.integers(0, 5))
        steps[index] = (what, data[:at] + draw(st.binary(max_size=5)) + data[at + gone :])
    return steps


@settings(max_examples=300, deadline=None)
@given(steps=damaged(), size=st.integers(1, 60), restart=st.booleans())
def test_damage_never_raises(steps: list[Step], size: int, restart: bool) -> None:
    """At most one finding a direction, and the same events in any split."""
    whole = play(Http1Decoder(), steps)
    findings = [event.direction for event in whole if isinstance(event, Undecodable)]
    assert len(findings) == len(set(findings))
    assert play(Http1Decoder(), steps, lambda data: range(0, len(data), size), restart) == whole


@settings(max_examples=200, deadline=None)
@given(pieces=st.lists(st.tuples(st.sampled_from("CS"), st.binary(max_size=60)), max_size=6))
def test_noise_never_raises(pieces: list[Step]) -> None:
    """Bytes that are no HTTP at all."""
    whole = play(Http1Decoder(), pieces)
    assert play(Http1Decoder(), pieces, lambda data: range(len(data)), restart=True) == whole
