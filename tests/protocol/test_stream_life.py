"""The life of a call on a pipe: the table, and walks through it with real pipes."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.model.transitions import UndefinedTransitionError
from a2a_proxy.protocol.stream_life import PIPE_LIFE, PipeEvent, PipeLife, PipeMeaning
from support_observer import bytewise, observe
from support_pipe import DOWN, UP, Stdio

SEND = {"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "hi"}]}}
_IDS = {"taskId": "t-1", "contextId": "c-1"}


def status(name: str, **members: object) -> dict[str, Any]:
    return {"statusUpdate": {**_IDS, "status": {"state": f"TASK_STATE_{name}"}, **members}}


_ARTIFACT = {"artifactUpdate": {**_IDS, "artifact": {"artifactId": "a", "parts": [{"text": "x"}]}}}
_MESSAGE = {"message": {"messageId": "r", "role": "ROLE_AGENT", "parts": [{"text": "x"}]}}
_FINAL = {"kind": "status-update", **_IDS, "status": {"state": "input-required"}, "final": True}
_EVENTS: dict[PipeEvent, list[dict[str, Any]]] = {
    PipeEvent.STATELESS: [_ARTIFACT],
    PipeEvent.MESSAGE: [_MESSAGE],
    PipeEvent.ACTIVE: [status("SUBMITTED"), status("WORKING")],
    PipeEvent.INTERRUPTED: [status("INPUT_REQUIRED"), status("AUTH_REQUIRED")],
    PipeEvent.TERMINAL: [status("COMPLETED"), status("REJECTED")],
    PipeEvent.FINAL: [_FINAL],
}
_SAMPLES = [(event, value) for event, values in _EVENTS.items() for value in values]
_HOWS = {PipeMeaning.COMPLETE: "complete", PipeMeaning.REPLACED: "id used again"}


@pytest.mark.parametrize(("life", "event"), list(itertools.product(PipeLife, PipeEvent)))
def test_every_pair_is_defined_or_raises(life: PipeLife, event: PipeEvent) -> None:
    if life is not PipeLife.OVER:
        after, meaning = PIPE_LIFE[life, event]
        assert (after is PipeLife.OVER) is (meaning is not PipeMeaning.CONTINUES)
        return
    with pytest.raises(UndefinedTransitionError, match=f"{event} in state over"):
        PIPE_LIFE[life, event]


def walk_of(events: list[PipeEvent]) -> tuple[str, int]:
    """Return how the call ends by the table, and the number of events until then."""
    life = PipeLife.QUIET
    for count, event in enumerate(events):
        life, meaning = PIPE_LIFE[life, event]
        if life is PipeLife.OVER:
            return _HOWS.get(meaning, "broken off"), count
    return "", len(events)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from([*_SAMPLES, (PipeEvent.ERROR, {})]), max_size=5),
    st.sampled_from([None, PipeEvent.ID_USED_AGAIN, PipeEvent.PIPE_ENDED, PipeEvent.PIPE_LOST]),
)
def test_a_real_stream_follows_the_table(
    steps: list[tuple[PipeEvent, dict[str, Any]]], end: PipeEvent | None
) -> None:
    """Responses with one id; in pieces, and across restarts."""
    pipe = Stdio().call("SendStreamingMessage", SEND)
    events = []
    for event, value in steps:
        if event is PipeEvent.ERROR:
            pipe.error(-32603, "no")
        else:
            pipe.result(value)
        events.append(event)
    if end is PipeEvent.ID_USED_AGAIN:
        pipe.call("SendStreamingMessage", SEND)
    elif end is PipeEvent.PIPE_ENDED:
        pipe.eof(DOWN).exit(1)
    elif end is PipeEvent.PIPE_LOST:
        pipe.closed()
    how, _ = walk_of([*events, *([end] if end else [])])
    chunks = pipe.chunks
    for seen in (
        observe(chunks),
        observe(bytewise(chunks, 7), restart_at=range(3, 4000, 90), commit_every=5),
    ):
        row = seen.exchanges[1]
        assert ("broken off" if row.how in ("agent exited", "proxy stopped") else row.how) == how


def test_the_response_of_a_unary_call_ends_it() -> None:
    seen = observe(
        Stdio().call("SendMessage", SEND).result(status("WORKING")).eof(UP).eof(DOWN).exit().chunks
    )
    assert (seen.exchanges[1].how, walk_of([PipeEvent.RESPONSE])) == ("complete", ("complete", 0))
