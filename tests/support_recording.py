"""Values to record, drawn by Hypothesis or made by number, and small helpers around recordings."""

from __future__ import annotations

import random
import uuid
from typing import Any

from hypothesis import strategies as st

from a2a_proxy.model.chunk import Direction
from a2a_proxy.model.exchange import Binding, Connection, Dialect, Exchange
from a2a_proxy.model.finding import Finding, Severity
from a2a_proxy.model.frame import EventKind, Frame, FrameKind
from a2a_proxy.model.observation import Changes
from a2a_proxy.model.task import ArtifactState, MissedGenerations, Support, Task
from a2a_proxy.recording.read.rows import SessionFacts

STARTED = 1_800_000_000_000_000_000

_TEXT = "the agent has read your order and will answer when the report is complete so please wait a moment"
_WORDS = _TEXT.split()

numbers = st.integers(min_value=0, max_value=2**40)
times = st.integers(min_value=STARTED - 10**9, max_value=STARTED + 10**15)
maybe_times = st.just(0) | times
uuids = st.uuids().map(str)
texts = st.text(max_size=20) | st.text(alphabet=st.characters(), max_size=5) | st.sampled_from(["", "\ud800x", "a\0b"])
idents = st.one_of(
    texts, uuids, uuids.map(lambda u: f'"{u}"'), uuids.map(str.upper), numbers.map(str), st.just("007"), st.just("٣")
)
ints = st.integers(min_value=-(2**31), max_value=2**31) | st.sampled_from([2**62, -(2**62), 2**63, -(2**64), 10**30])
word_lists = st.lists(texts, max_size=3).map(tuple)
headers = st.lists(st.tuples(st.binary(max_size=12), st.binary(max_size=12)), max_size=3).map(tuple)
json_payloads = st.sampled_from(
    [
        b'{"a":1}',
        b"{}",
        b"[]",
        b"null",
        b'{"a": 1}',
        b'{"a":1,"a":2}',
        b'{"n":1e5,"m":1.0,"k":12345678901234567890123}',
        b'{"x":NaN}',
        b'{"x":1e999}',
        '{"t":"ä\u2028"}'.encode(),
        b'{"t":"\\u00e4"}',
        b'{"t":"\\ud800"}',
        b"[" * 300 + b"]" * 300,
        b"\xff\xfe",
        b'"' + b"long text " * 600 + b'"',
        b'{"parts":[{"raw":"' + b"QUJD" * 2000 + b'"},{"text":"say \\"' + b"hello " * 900 + b'\\\\"},"x"]}',
    ]
)
payloads = st.binary(max_size=40) | json_payloads | st.binary(min_size=4090, max_size=4200)
schemas = st.sampled_from(["json", "text", "bytes", "trailers", "control", "", "lf.a2a.v1.Task", "a2a.v1.Task@rc"])


@st.composite
def frames(draw: st.DrawFn) -> Frame:
    """Any frame, sensible or not."""
    payload = draw(payloads)
    message = draw(idents)
    if draw(st.booleans()):
        message = draw(uuids)
        payload += message.encode()
    start = draw(numbers)
    return Frame(
        connection=draw(st.integers(0, 300)),
        exchange=draw(st.integers(0, 2**38)),
        seq=draw(st.integers(0, 2**20)),
        direction=draw(st.sampled_from(Direction)),
        kind=draw(st.sampled_from(FrameKind)),
        began=draw(times),
        at=draw(times),
        start=start,
        end=start + draw(numbers),
        payload=payload,
        size=draw(st.just(len(payload)) | numbers),
        sha256=draw(st.just(b"") | st.binary(min_size=32, max_size=32)),
        truncated=draw(st.booleans()),
        schema=draw(schemas),
        framing=draw(texts),
        event=draw(st.sampled_from(EventKind)),
        task_id=draw(idents),
        context_id=draw(idents),
        message_id=message,
        artifact_id=draw(idents),
        state=draw(st.integers(-1, 12)),
        generation=draw(ints),
        append=draw(st.booleans()),
        last_chunk=draw(st.booleans()),
        final=draw(st.booleans()),
        error_code=draw(ints),
        rpc_id=draw(idents),
        note=draw(texts),
        ours=draw(st.booleans()),
        redacted=draw(word_lists),
    )


@st.composite
def connections(draw: st.DrawFn, number: int) -> Connection:
    """Any connection of this number."""
    return Connection(
        id=number,
        client=draw(texts),
        listen=draw(texts),
        upstream=draw(texts),
        opened=draw(times),
        kind=draw(texts),
        dialed=draw(maybe_times),
        peer=draw(texts),
        closed=draw(maybe_times),
        how=draw(texts),
        bytes_to_agent=draw(numbers),
        bytes_to_client=draw(numbers),
        lost_bytes=draw(numbers),
        counters=draw(st.dictionaries(st.text(max_size=5), numbers, max_size=2)),
    )


@st.composite
def exchanges(draw: st.DrawFn, number: int) -> Exchange:
    """Any exchange of this number."""
    return Exchange(
        id=number,
        connection=draw(st.integers(0, 300)),
        stream=draw(numbers),
        binding=draw(st.sampled_from(Binding)),
        started=draw(times),
        dialect=draw(st.sampled_from(Dialect)),
        operation=draw(texts),
        method=draw(texts),
        target=draw(texts),
        authority=draw(texts),
        http_version=draw(texts),
        error=draw(texts),
        how=draw(texts),
        half_close=draw(texts),
        streaming=draw(st.booleans()),
        rpc_id=draw(idents),
        request_headers=draw(headers),
        response_headers=draw(headers),
        trailers=draw(headers),
        informational=draw(st.lists(st.integers(100, 199), max_size=2).map(tuple)),
        request_ended=draw(maybe_times),
        response_started=draw(maybe_times),
        first_event=draw(maybe_times),
        last_event=draw(maybe_times),
        closed=draw(maybe_times),
        status=draw(ints),
        grpc_status=draw(ints),
        error_code=draw(ints),
        task_id=draw(idents),
        context_id=draw(idents),
        states=draw(word_lists),
        requests=draw(numbers),
        events=draw(numbers),
        bytes_to_agent=draw(numbers),
        bytes_to_client=draw(numbers),
        traceparent=draw(texts),
        version_header=draw(texts),
        extensions=draw(texts),
        ours=draw(st.booleans()),
        redacted=draw(word_lists),
        current_generation=draw(st.none() | ints),
        generation_match=draw(st.none() | ints),
        generation=draw(ints),
        sent_traceparent=draw(texts),
    )


artifact_states = st.builds(
    ArtifactState,
    artifact_id=idents,
    name=texts,
    chunks=numbers,
    parts=numbers,
    size=numbers,
    complete=st.booleans(),
    first=times,
    last=times,
)
tasks = st.builds(
    Task,
    agent=texts,
    task_id=idents,
    context_id=idents,
    tenant=texts,
    state=st.integers(-1, 12),
    states=st.lists(st.tuples(times, st.integers(-1, 12)), max_size=3).map(tuple),
    first=times,
    last=times,
    generation=ints,
    seen=st.lists(st.tuples(ints, ints), max_size=3).map(tuple),
    missed=st.lists(
        st.builds(
            MissedGenerations,
            first=ints,
            last=ints,
            at=times,
            exchange=st.integers(0, 2**38),
            healed=maybe_times,
            by=st.integers(0, 2**38),
            generation=ints,
        ),
        max_size=3,
    ).map(tuple),
    support=st.sampled_from(Support),
    artifacts=st.lists(artifact_states, max_size=3).map(tuple),
    messages=numbers,
    exchanges=st.lists(st.integers(1, 2**38), max_size=4).map(tuple),
)
findings = st.builds(
    Finding,
    rule=texts,
    severity=st.sampled_from(Severity),
    at=times,
    summary=texts,
    connection=numbers,
    exchange=numbers,
    seq=st.integers(-1, 100),
    task_id=idents,
    confidence=texts,
    evidence=st.dictionaries(texts, texts, max_size=2),
)


@st.composite
def changes(draw: st.DrawFn) -> Changes:
    """Snapshots, at most one of each thing."""
    ids = st.sets(st.integers(1, 2**38), max_size=2).map(sorted)
    return Changes(
        [draw(connections(number)) for number in draw(ids)],
        [draw(exchanges(number)) for number in draw(ids)],
        draw(st.lists(tasks, max_size=2, unique_by=lambda task: (task.agent, task.task_id))),
    )


def facts(number: int = 1, **more: Any) -> SessionFacts:
    """A session of this number."""
    values = {"uuid": str(uuid.UUID(int=number)), "tool": "a2a-proxy test", "started": STARTED, "pid": 4711, **more}
    return SessionFacts(**values)


def event_frames(count: int, *, per_exchange: int = 20, seed: int = 1) -> list[Frame]:
    """Status events of about 300 bytes: English words, a fresh message UUID each, a fresh task per exchange."""
    chance = random.Random(seed)
    made = []
    task = context = ""
    for index in range(count):
        if index % per_exchange == 0:
            task, context = _uuid(chance), _uuid(chance)
        message = _uuid(chance)
        text = " ".join(chance.choices(_WORDS, k=12))
        payload = (
            f'{{"statusUpdate":{{"taskId":"{task}","contextId":"{context}","status":{{"state":"TASK_STATE_WORKING",'
            f'"message":{{"messageId":"{message}","role":"ROLE_AGENT","parts":[{{"text":"{text}"}}]}}}}}}}}'
        ).encode()
        at = STARTED + index * 1_234_567
        made.append(
            Frame(
                connection=1 + index // 1000,
                exchange=1 + index // per_exchange,
                seq=index % per_exchange,
                direction=Direction.TO_CLIENT,
                kind=FrameKind.EVENT,
                began=at,
                at=at,
                start=index * 330,
                end=(index + 1) * 330,
                payload=payload,
                size=len(payload),
                schema="json",
                framing="data: \0\r\n\r\n",
                event=EventKind.STATUS,
                task_id=task,
                context_id=context,
                message_id=message,
                state=2,
            )
        )
    return made


def _uuid(chance: random.Random) -> str:
    return str(uuid.UUID(int=chance.getrandbits(128), version=4))
