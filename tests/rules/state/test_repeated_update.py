"""The fast paths of repeated updates, in the rules, tasks and segments, yield the same state and
findings as the full paths."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.model.saved_state import encode_state
from a2a_proxy.model.values import Binding, Changes, Finding, Observation
from a2a_proxy.model.wire import Chunk
from a2a_proxy.observer import Observer
from a2a_proxy.protocol.segments.agent_output import AgentOutput
from a2a_proxy.protocol.task import TaskTracker
from a2a_proxy.redaction import Redactor
from a2a_proxy.rules.define.conditions import FrameFlag
from a2a_proxy.rules.examples.conversation import rpc_stream
from a2a_proxy.rules.examples.objects import chunk, send, snapshot, status
from a2a_proxy.rules.run import engine
from a2a_proxy.rules.state import repeated_update
from a2a_proxy.rules.state.records import ExchangeRecord
from support_drive import frame
from support_mutations import SAMPLES, chunks, loaded


def judged(session: list[Chunk], *, each: int = 1) -> tuple[list[Finding], list[Any], Changes]:
    """What is found, all that rules know after each group of records, and tasks and segments."""
    observer = Observer(Redactor(b"k" * 32))
    out: list[Observation] = []
    known = []
    for start in range(0, len(session), each):
        observer.hold_rules()
        for record in session[start : start + each]:
            observer.feed(record, out)
        observer.judge_held(out)
        known.append(encode_state(observer.save().rules))
    return [each for each in out if type(each) is Finding], known, observer.pop_changes()


def judged_slowly(session: list[Chunk], *, each: int = 1) -> Any:
    """The same without the fast paths."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(engine, "find_repeated", lambda *_: False)
        patched.setattr(TaskTracker, "_apply_steady_update", lambda *_: False)
        patched.setattr(AgentOutput, "apply_steady_update", lambda *_: False)
        return judged(session, each=each)


@pytest.mark.parametrize(
    "sample", sorted(path.name.removesuffix(".a2a.jsonl") for path in SAMPLES.glob("*.jsonl"))
)
def test_samples_are_judged_alike_without_the_fast_path(sample: str) -> None:
    """Real conversations, step by step."""
    session = chunks(loaded(sample))
    assert judged(session) == judged_slowly(session)


def test_long_streams_are_judged_alike_without_the_fast_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Updates with and without timestamps, messages and silence before them, one of them said
    twice; chunks of the same length, one with a media type, one repeated."""
    texts = [status("WORKING", second=second) for second in (1, 2, 2, 1, 3)]
    again = status("WORKING", second=4)
    words = ["sixteen letters", "more", "more", "text/html", "x" * 31, "the end"]
    pieces = [chunk(word, append=number > 0) for number, word in enumerate(words)]
    script = rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        *texts,
        again,
        again,
        *pieces,
        chunk("", append=True, lastChunk=True),
        status("COMPLETED", second=5),
    )
    taken = []

    def apply(*given: Any) -> int:
        taken.append(given)
        return way(*given)

    way = repeated_update.apply_repeated
    monkeypatch.setattr(repeated_update, "apply_repeated", apply)
    short = judged(script.make_chunks())
    assert len(taken) >= len(texts) + len(pieces) - 2
    assert judged_slowly(script.make_chunks()) == short


_EVENTS = st.one_of(
    st.builds(
        lambda text, id, append, last, members: chunk(
            text, id=id, append=append, lastChunk=last, **members
        ),
        st.sampled_from(["a", "b", "a longer piece of text", "another piece of text.", "a/b"]),
        st.sampled_from(["a1", "a1", "a1", "a2"]),
        st.sampled_from([True, True, True, False]),
        st.sampled_from([False] * 7 + [True]),
        st.sampled_from([{}] * 6 + [{"contextId": "c2"}, {"taskId": "t2"}, {"generation": "3"}]),
    ),
    st.sampled_from([status("WORKING"), status("WORKING", second=3), snapshot("WORKING")]),
    st.sampled_from([status("INPUT_REQUIRED"), status("COMPLETED"), {"bad": 1}]),
)


@given(st.lists(_EVENTS, min_size=4, max_size=40), st.integers(1, 20))
@settings(deadline=None, max_examples=300)
def test_any_stream_is_judged_alike_without_the_fast_path(
    events: list[dict[str, Any]], each: int
) -> None:
    """Chunks of two artifacts among other events, in groups of any size."""
    session = rpc_stream("SendStreamingMessage", send(), snapshot(), *events).make_chunks()
    assert judged(session, each=each) == judged_slowly(session, each=each)


def test_a_payload_is_a_repetition_while_the_stream_remembers_it() -> None:
    """The last 32 payloads."""
    record = ExchangeRecord(1, 1, "agent", Binding.JSONRPC, "SendStreamingMessage", 0)
    events = [frame(1, number, 0, payload=b"%d" % number) for number in range(33)]
    assert {repeated_update.payload_flags(record, each) for each in events} == {0}
    assert repeated_update.payload_flags(record, events[1]) == FrameFlag.REPEAT
    assert repeated_update.payload_flags(record, events[0]) == 0
