"""The gate never skips a payload that a rule would flag, and skips nearly all valid ones."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import support_rules
from a2a_proto import RenderError, from_dict
from a2a_proxy.model.values import Binding, Dialect, EventKind, Exchange, Finding, Frame, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol import message as gate
from a2a_proxy.protocol.artifact_chunks import ArtifactChunk, chunks_of_frame
from a2a_proxy.protocol.bindings import grpc as grpc_binding
from a2a_proxy.protocol.status_summary import Content, StatusSummary, decode_status
from a2a_proxy.protocol.strict.json_checks import JSON_1_0
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.rows import make_key
from a2a_proxy.recording.tools.recheck import recheck_session
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.define.rule import Rule
from a2a_proxy.rules.examples.conversation import (
    RawBytes,
    grpc,
    json_text,
    rest,
    rest_stream,
    rpc,
    rpc_stream,
)
from a2a_proxy.rules.examples.objects import (
    agent_reply,
    artifact,
    chunk,
    message,
    reply,
    send,
    snapshot,
    status,
    task,
)
from a2a_proxy.rules.examples.script import Script
from a2a_proxy.rules.run import engine
from support_rules import findings

SAMPLES = sorted((Path(__file__).resolve().parents[3] / "recordings").glob("*.a2a.jsonl"))
EVENTS = {EventKind.TASK, EventKind.STATUS, EventKind.ARTIFACT, EventKind.MESSAGE}


def read_nothing_strictly(patch: pytest.MonkeyPatch) -> None:
    """Make no payload clean."""
    patch.setattr(engine, "check_payload", lambda *_: False)
    patch.setattr(gate.JsonReader, "read", lambda *_: gate.UNREAD)
    patch.setattr(grpc_binding, "read_protobuf", lambda *_: gate.UNREAD)


def ungated(script: Script) -> tuple[list[Finding], list[Frame]]:
    """The same with nothing ever clean."""
    with pytest.MonkeyPatch.context() as patch:
        read_nothing_strictly(patch)
        return findings(script), support_rules.frames(script)


def gated(script: Script) -> tuple[list[Finding], list[Frame]]:
    return findings(script), support_rules.frames(script)


@pytest.mark.parametrize("rule", all_rules().values(), ids=list(all_rules()))
def test_examples_are_judged_alike_without_the_gate(rule: Rule) -> None:
    """Both examples of every rule."""
    for script in (rule.flagged, rule.clean):
        assert gated(script) == ungated(script)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name.removesuffix(".a2a.jsonl"))
def test_samples_are_judged_alike_without_the_gate(
    sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Traffic of real peers."""

    def judged() -> list[Finding]:
        with open_recording_or_cassette(sample) as recording:
            return [
                each
                for session in recording.read_sessions()
                for each in recheck_session(recording, session)
            ]

    clean = judged()
    read_nothing_strictly(monkeypatch)
    assert clean == judged()


@pytest.mark.parametrize(
    "operation", ["SendStreamingMessage", "SubscribeToTask", "SendLiveMessage"]
)
def test_empty_grpc_messages_are_judged_alike_without_the_gate(operation: str) -> None:
    """No field is in them that could be wrong; many cost little, for no rule about payloads is
    asked."""
    asked = {"id": "t1"} if operation == "SubscribeToTask" else send()
    empty = RawBytes(bytes(5))
    for answers in (
        (empty,),
        (snapshot(), empty, empty),
        (empty, snapshot(), status("COMPLETED"), empty),
    ):
        script = grpc(operation, asked, *answers)
        assert gated(script) == ungated(script)


def test_an_empty_grpc_message_is_clean() -> None:
    """Of a stream, or a request."""
    exchange = Exchange(1, 1, 1, Binding.GRPC, 1, dialect=Dialect.V1_0, operation="SubscribeToTask")
    checks = gate.checks_for(exchange)
    for kind in (FrameKind.EVENT, FrameKind.REQUEST):
        frame = Frame(
            1,
            1,
            1,
            Direction.TO_CLIENT,
            kind,
            1,
            1,
            0,
            5,
            b"",
            0,
            schema="lf.a2a.v1.StreamResponse",
        )
        assert gate.check_payload(frame, exchange, checks)
        assert not gate.check_payload(
            msgspec.structs.replace(frame, size=1 << 30, truncated=True), exchange, checks
        )


def frames(sample: Path) -> Iterator[tuple[Frame, Exchange]]:
    """Frames of a sample with their exchanges."""
    with open_recording_or_cassette(sample) as recording:
        for session in recording.read_sessions():
            for row in recording.frames_after(0, session=session.id):
                found = (
                    recording.read_exchange(make_key(session.id, row.frame.exchange))
                    if row.frame.exchange
                    else None
                )
                if found is not None:
                    yield row.frame, found.exchange


@pytest.mark.parametrize("name", ["concurrent-grpc", "demo", "js-three-bindings", "sdk-0.3-grpc",
                                  "sdk-0.3-jsonrpc", "sdk-0.3-rest", "sdk-1.x-grpc",
                                  "sdk-1.x-jsonrpc", "sdk-1.x-rest"])  # fmt: skip
def test_nearly_all_events_of_real_peers_pass(name: str) -> None:
    """What does not has a file, or a secret."""
    (sample,) = (path for path in SAMPLES if path.name.startswith(f"{name}."))
    seen = [
        bool(gate.check_payload(frame, exchange, gate.checks_for(exchange)))
        for frame, exchange in frames(sample)
        if frame.event in EVENTS and frame.kind in (FrameKind.EVENT, FrameKind.RESPONSE)
    ]
    assert len(seen) > 10
    assert sum(seen) / len(seen) > 0.85


# --- mutations

WHOLE = [
    status("WORKING", message=reply(taskId="t1")),
    status("COMPLETED", metadata={"a": 1}, generation="3"),
    chunk("text", append=True, lastChunk=True),
    snapshot("WORKING", artifacts=[artifact()], history=[message(taskId="t1", contextId="c1")]),
    agent_reply(taskId="t1"),
]
VALUES: list[Any] = [None, "", "x", 0, -1, 1.5, True, [], {}, [1], {"a": 1}, "TASK_STATE_WORKING",
                     "working", "ROLE_USER", "user", "ROLE_AGENT", "t2", "2026-01-01T00:00:00Z",
                     "2026-02-30T00:00:00.000Z", "text/plain", "a b"]  # fmt: skip
NAMES = ["kind", "final", "task_id", "text", "url", "raw", "data", "metadata", "extensions",
         "strange", "generation", "taskId", "contextId", "message", "task", "role", "state",
         "mediaType", "messageUpdate"]  # fmt: skip


def places(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a value, the root apart."""
    pairs = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for name, item in pairs:
        yield (*here, name)
        yield from places(item, (*here, name))


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """An event with one or two things changed, added or taken away."""
    value = copy.deepcopy(draw(st.sampled_from(WHOLE)))
    for _ in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from(list(places(value)) or [("task",)]))
        holder = value
        for name in path[:-1]:
            holder = holder[name]
        how = draw(st.sampled_from(["set", "drop", "add", "rename"]))
        if how == "set" or not isinstance(holder, dict):
            holder[path[-1]] = copy.deepcopy(draw(st.sampled_from(VALUES)))
        elif how == "drop":
            holder.pop(path[-1], None)
        elif how == "add":
            holder[draw(st.sampled_from(NAMES))] = copy.deepcopy(draw(st.sampled_from(VALUES)))
        else:
            holder[draw(st.sampled_from(NAMES))] = holder.pop(path[-1], None)
    return value


def agreed(script: Script) -> None:
    """With and without the gate the rules say the same."""
    assert gated(script) == ungated(script)


EXAMPLES = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@EXAMPLES
@given(mutated(), st.booleans())
def test_the_gate_changes_no_finding_about_mutated_json(value: Any, by_rest: bool) -> None:
    """Events of JSON-RPC and REST."""
    if by_rest:
        agreed(rest_stream("POST", "/message:stream", send(), value))
    else:
        agreed(rpc_stream("SendStreamingMessage", send(), value))


@EXAMPLES
@given(mutated())
def test_the_gate_changes_no_finding_about_mutated_protobuf(value: Any) -> None:
    """Events of gRPC, as far as protobuf can say them."""
    try:
        data = from_dict("1.0", "StreamResponse", value).SerializeToString()
    except (RenderError, AttributeError):
        return
    agreed(grpc("SendStreamingMessage", send(), data))


@EXAMPLES
@given(st.sampled_from(WHOLE), st.data())
def test_the_gate_changes_no_finding_about_mutated_bytes(value: Any, data: st.DataObject) -> None:
    """One byte changed, added or taken away."""
    raw = bytearray(from_dict("1.0", "StreamResponse", value).SerializeToString())
    place = data.draw(st.integers(0, len(raw) - 1))
    how = data.draw(st.sampled_from(["change", "drop", "add"]))
    if how == "drop":
        del raw[place]
    elif how == "add":
        raw.insert(place, data.draw(st.integers(0, 255)))
    else:
        raw[place] = data.draw(st.integers(0, 255))
    agreed(grpc("SendStreamingMessage", send(), bytes(raw)))


@pytest.mark.parametrize(
    "text",
    [
        '{"jsonrpc":"2.0","id":1,"id":1,"result":%s}',
        '{"jsonrpc":"2.0","id":1,"result":%s,"more":1}',
        '{"jsonrpc":"2.0","id":"1","result":%s}',
        '{"jsonrpc":"2.0","id":1,"\\u0069d":1,"result":%s}',
        '{"jsonrpc":"2.0","id":1.0,"result":%s}',
        '{"jsonrpc":"1.0","id":1,"result":%s}',
        '{"jsonrpc":"2.0","id":1,"result":%s,"error":null}',
    ],
)
def test_odd_envelopes_are_judged_alike_without_the_gate(text: str) -> None:
    """What is wrong around an event is seen."""
    data = (text % json_text(status("COMPLETED"))).encode()
    agreed(
        rpc_stream("SendStreamingMessage", send(), snapshot(), RawBytes(b"data: " + data + b"\n\n"))
    )


def written(value: Any, twice: tuple[Any, ...] | None) -> str:
    """JSON without spaces; the member at the path `twice` stands there twice."""
    if isinstance(value, dict):
        members = [
            (name, item, twice[1:] if twice and twice[0] == name else None)
            for name, item in value.items()
        ]
        found = [f"{json_text(name)}:{written(item, below)}" for name, item, below in members]
        found += [
            f"{json_text(name)}:{written(item, None)}"
            for name, item, below in members
            if below == ()
        ]
        return "{" + ",".join(found) + "}"
    if isinstance(value, list):
        below = [twice[1:] if twice and twice[0] == index else None for index in range(len(value))]
        return "[" + ",".join(map(written, value, below)) + "]"
    return json_text(value)


@EXAMPLES
@given(st.one_of(st.sampled_from(WHOLE), mutated()), st.booleans(), st.data())
def test_quotes_are_counted_as_an_encoder_would(value: Any, rpc: bool, data: st.DataObject) -> None:
    """An escape makes an encoder count, and the verdict is the same; one more name is seen either
    way."""
    check = JSON_1_0.check("event", enveloped=rpc)
    made = (
        {"jsonrpc": "2.0", "id": data.draw(st.sampled_from([1, "1"])), "result": value}
        if rpc
        else value
    )
    text = written(made, None)
    names = [path for path in places(made) if isinstance(path[-1], str)]
    assume(names)
    spelled = text.replace('"taskId"', '"\\u0074askId"')
    assert check(text.encode()) == check(spelled.encode())
    twice = written(made, data.draw(st.sampled_from(names)))
    assert twice != text
    assert check(twice.encode()) is None


TOLD = [
    {
        "role": "ROLE_AGENT",
        "messageId": "m1",
        "parts": [{"text": "a", "mediaType": "text/plain", "filename": "b"}] * 2,
    },
    {"role": "ROLE_AGENT", "messageId": "m1", "parts": [{"text": ""}], "taskId": "t1"},
    {
        "role": "ROLE_AGENT",
        "messageId": "m1",
        "parts": [{"text": "\u00e9\n"}],
        "contextId": "c1",
        "taskId": "t1",
    },
]
UPDATES = [
    *WHOLE[:3],
    status("WORKING"),
    status("WORKING", metadata={}),
    *(status("WORKING", message=each) for each in TOLD),
    {
        "artifactUpdate": {
            "taskId": "t1",
            "contextId": "c1",
            "artifact": artifact(name="n", description="d"),
        }
    },
    chunk("text", metadata={"a": 1}, generation="3", append=False),
    {
        "statusUpdate": {
            "taskId": "t1",
            "contextId": "c1",
            "status": {"state": "TASK_STATE_WORKING"},
        }
    },
]


@pytest.mark.parametrize("value", UPDATES)
@pytest.mark.parametrize("how", ["json", "rest", "grpc"])
def test_gate_summaries_equal_partial_decoding(
    value: Any, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of updates with texts the gate reads what rules compare."""
    seen: list[tuple[Frame, Content]] = []
    judge_block = engine.Engine.judge_block

    def watched(self: engine.Engine, items: Any, out: Any) -> None:
        seen.extend((item[0], item[2].content) for item in items if item[2] is not None)
        judge_block(self, items, out)

    monkeypatch.setattr(engine.Engine, "judge_block", watched)
    if how == "grpc":
        findings(
            grpc(
                "SendStreamingMessage",
                send(),
                from_dict("1.0", "StreamResponse", value).SerializeToString(),
            )
        )
    elif how == "rest":
        findings(rest_stream("POST", "/message:stream", send(), value))
    else:
        findings(rpc_stream("SendStreamingMessage", send(), value))
    ((frame, found),) = [
        each for each in seen if each[0].event in (EventKind.STATUS, EventKind.ARTIFACT)
    ]
    assert found
    if isinstance(found, StatusSummary):
        expected = decode_status(frame)
        names = [each for each in expected.named_ids if each]
        assert [each for each in found.named_ids if each] == names
        assert (
            msgspec.structs.replace(found, named_ids=expected.named_ids, is_plain=False) == expected
        )
    elif isinstance(found, ArtifactChunk):
        pieces = list(found.pieces)
        whole = msgspec.structs.replace(found, pieces=pieces, place=None)
        assert [whole] == chunks_of_frame(frame)
    else:
        assert "metadata" in json_text(value) or how == "grpc"


def test_duplicate_names_among_escaped_quotes_are_seen() -> None:
    """A second name cannot hide behind quotes that are spelled by their number."""
    result = (
        '{"message":{"messageId":"m","role":"ROLE_AGENT",'
        '"contextId":"c1","parts":[{"text":"%s"}],"metadata":{%s}}}'
    )
    hidden = "\\u0022" * 4
    for text, free in (
        (hidden, '"a":1,"a":1'),
        ("\\\\", '"a":1,"a":1'),
        ('\\"', '"a\\\\":1,"a\\\\":1'),
    ):
        body = f'{{"jsonrpc":"2.0","id":1,"result":{result % (text, free)}}}'
        script = rpc("SendMessage", send(), answer=body)
        assert "A2A-RPC-018" in {each.rule for each in findings(script)}


REQUESTS = [
    send(
        taskId="t1",
        contextId="c1",
        configuration={"historyLength": 2, "acceptedOutputModes": ["text/plain"]},
    ),
    send(metadata={"a": 1}),
    {"id": "t1"},
    {"id": ""},
    {"id": "t1", "historyLength": -1},
    {"message": message(role="ROLE_AGENT")},
    send(configuration={"taskPushNotificationConfig": {"url": "http://10.0.0.1/"}}),
    send(configuration={"ifGenerationMatch": "3"}),
]


@pytest.mark.parametrize("params", REQUESTS)
def test_requests_are_judged_alike_without_the_gate(params: dict[str, Any]) -> None:
    """Of all bindings."""
    sends = "message" in params
    method = "SendMessage" if sends else "GetTask"
    answer = agent_reply() if sends else task()
    agreed(rpc(method, params, answer))
    agreed(grpc(method, params, answer))
    agreed(
        rest("POST", "/message:send", params, answer)
        if sends
        else rest("POST", "/tasks/t1:cancel", params, answer)
    )
    agreed(rest("GET", "/tasks/t1?historyLength=-1", None, task()))


def test_payloads_of_old_dialects_are_judged_alike_without_the_gate() -> None:
    """What 0.3 may not have passes no gate of it."""
    done = {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "completed"}}
    said_old = {
        "kind": "message",
        "role": "user",
        "messageId": "m1",
        "parts": [{"kind": "text", "text": "x"}],
    }
    for change in ({}, {"kind": "message"}, {"strange": 1}, {"status": {"state": "unknown"}},
                   {"contextId": ""}, {"history": [said_old | {"taskId": "t2"}]},
                   {"status": {"state": "working", "timestamp": "now"}}):  # fmt: skip
        agreed(rpc("message/send", {"message": said_old}, done | change, version=""))
        agreed(rpc("message/send", {"message": said_old | change}, done, version=""))


OLD_DONE = {"id": "t1", "contextId": "c1", "status": {"state": "TASK_STATE_COMPLETED"}}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"role": "ROLE_AGENT"},
        {"content": []},
        {"parts": [{"text": "x"}]},
        {"messageId": ""},
        {"content": [{"file": {"name": "a"}}]},
        {"taskId": "t2"},
    ],
)
def test_rest_of_0_3_is_judged_alike_without_the_gate(change: dict[str, Any]) -> None:
    """In its protobuf form, as request and as answer."""
    made = {"messageId": "m1", "role": "ROLE_USER", "content": [{"text": "x"}]} | change
    agreed(rest("POST", "/v1/message:send", {"message": made}, {"task": OLD_DONE}, version=""))
    told = {
        "taskId": "t1",
        "contextId": "c1",
        "status": {"state": "TASK_STATE_WORKING", "message": made},
    }
    agreed(
        rest_stream(
            "POST", "/v1/message:stream", {"message": made}, {"statusUpdate": told}, version=""
        )
    )
    for params in ({"id": "t1"}, {"id": ""}, {"id": "t1", "historyLength": -1}):
        agreed(rpc("tasks/get", params, {"kind": "message"} | made, version=""))
        agreed(
            rpc(
                "tasks/get",
                params,
                {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "working"}},
            )
        )


def test_large_redacted_and_cut_payloads_are_not_clean() -> None:
    """However faultless they look."""
    made = Exchange(1, 1, 0, gate.Binding.REST, 1, gate.Dialect.V1_0, "GetTask", "GET")
    payload = msgspec.json.encode(task())
    frame = Frame(1, 1, 0, 1, FrameKind.RESPONSE, 1, 1, 0, 1, payload, len(payload), schema="json")  # type: ignore[arg-type]
    checks = gate.checks_for(made)
    assert gate.check_payload(frame, made, checks)
    for change in (
        {"redacted": ("id",)},
        {"truncated": True},
        {"size": gate.MAX_CHECKED_BYTES + 1},
        {"payload": payload + b" x"},
    ):
        assert not gate.check_payload(msgspec.structs.replace(frame, **change), made, checks)
