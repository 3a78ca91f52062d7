"""The fast path of unchanged status updates yields the same state and findings as the full path."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.model.saved_state import encode_state
from a2a_proxy.model.values import Binding, Finding, Observation
from a2a_proxy.model.wire import Chunk
from a2a_proxy.observer import Observer
from a2a_proxy.redaction import Redactor
from a2a_proxy.rules.define.conditions import FrameFlag
from a2a_proxy.rules.examples.conversation import rpc_stream
from a2a_proxy.rules.examples.objects import send, snapshot, status
from a2a_proxy.rules.run import engine, status_fast_path
from a2a_proxy.rules.state.records import ExchangeRecord
from support_mutations import SAMPLES, chunks, loaded


def judged(session: list[Chunk]) -> tuple[list[Finding], list[Any]]:
    """What is found, and all that rules know after each record."""
    observer = Observer(Redactor(b"k" * 32))
    out: list[Observation] = []
    known = []
    for chunk in session:
        observer.feed(chunk, out)
        known.append(encode_state(observer.save().rules))
    return [each for each in out if type(each) is Finding], known


@pytest.mark.parametrize(
    "sample", sorted(path.name.removesuffix(".a2a.jsonl") for path in SAMPLES.glob("*.jsonl"))
)
def test_samples_are_judged_alike_without_the_fast_path(
    sample: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real conversations, step by step."""
    session = chunks(loaded(sample))
    short = judged(session)
    monkeypatch.setattr(engine, "is_repeated_status", lambda *_: False)
    assert judged(session) == short


def test_long_streams_are_judged_alike_without_the_fast_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Updates with and without timestamps, messages and silence before them, one of them said
    twice."""
    texts = [status("WORKING", second=second) for second in (1, 2, 2, 1, 3)]
    again = status("WORKING", second=4)
    script = rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        *texts,
        again,
        again,
        status("COMPLETED", second=5),
    )
    taken = []

    def told(*given: Any) -> int:
        taken.append(given)
        return way(*given)

    way = status_fast_path.apply_repeated_status
    monkeypatch.setattr(status_fast_path, "apply_repeated_status", told)
    short = judged(script.make_chunks())
    assert len(taken) >= len(texts)
    monkeypatch.setattr(engine, "is_repeated_status", lambda *_: False)
    assert judged(script.make_chunks()) == short


def test_a_payload_is_a_repetition_while_the_stream_remembers_it() -> None:
    """The last 32 payloads."""
    record = ExchangeRecord(1, 1, "agent", Binding.JSONRPC, "SendStreamingMessage", 0)
    payloads = [b"%d" % number for number in range(33)]
    assert {status_fast_path.repeat_flag(record, each) for each in payloads} == {0}
    assert status_fast_path.repeat_flag(record, payloads[1]) == FrameFlag.REPEAT
    assert status_fast_path.repeat_flag(record, payloads[0]) == 0
