"""`a2a-inspect segments`: lines and JSON of samples; media written to files; bad input."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from a2a_inspect.commands.segments.media import MediaObject
from a2a_proto import from_dict
from a2a_proxy.model.values import Binding, Changes, Dialect, EventKind, Exchange, Frame, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.segments.evidence import is_message
from a2a_proxy.recording.cassette.file import (
    open_recording_or_cassette,
    read_cassette,
    write_cassette,
)
from a2a_proxy.recording.read.conversations import read_conversations
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionFacts
from a2a_proxy.recording.write.writer import Writer
from support_cli import Ran, run_here

SAMPLES = sorted((Path(__file__).resolve().parents[4] / "recordings").glob("*.a2a.jsonl"))
GOLDEN = Path(__file__).resolve().parents[3] / "data" / "segments"
ACTS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What could act on a terminal."""
START, MS = 1_700_000_000_000_000_000, 1_000_000
every = pytest.mark.parametrize(
    "sample", SAMPLES, ids=lambda path: path.name.removesuffix(".a2a.jsonl")
)


def segments(folder: Path, *words: object) -> Ran:
    return run_here(folder, "segments", *words, TZ="UTC")


def objects(folder: Path, *words: object) -> list[dict[str, Any]]:
    done = segments(folder, *words, "--json")
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.lines]


@pytest.mark.parametrize("name", ["demo", "dialect-0.2"])
def test_two_samples_line_by_line(tmp_path: Path, name: str) -> None:
    """Where a sample is recorded anew: `TZ=UTC a2a-inspect segments recordings/NAME.a2a.jsonl`,
    looked through."""
    (sample,) = (path for path in SAMPLES if path.name == f"{name}.a2a.jsonl")
    assert segments(tmp_path, sample).out == (GOLDEN / f"{name}.txt").read_text()


@every
def test_segments_of_samples_are_consistent(sample: Path) -> None:
    """Each message of a client is in a turn, what an agent says follows it, everything is over in
    the end."""
    with open_recording_or_cassette(sample) as recording:
        for session in recording.read_sessions():
            found = read_conversations(recording, session)
            asked = 0
            for row in recording.read_exchanges(session.id):
                if row.exchange.operation in (
                    "SendMessage",
                    "SendStreamingMessage",
                    "SendLiveMessage",
                ):
                    requests = (
                        r.frame
                        for r in recording.read_frames(row.key)
                        if r.frame.kind is FrameKind.REQUEST
                    )
                    # A live stream that begins with a task id and no parts only reconnects.
                    asked += sum(
                        not (each.seq == 0 and each.task_id and not is_message(each))
                        for each in requests
                    )
            assert sum(each.frames for each in found.segments if each.speaker == "client") == asked
            for each in found.segments:
                assert each.reason
                assert each.began <= each.start <= each.end <= each.ended
                assert each.turn or each.speaker == "agent"
            stored = {row.segment.id: row.segment for row in recording.read_segments(session.id)}
            assert stored
            assert [each for each in found.segments if each.id in stored] == [*stored.values()]


def test_a_cassette_keeps_segments(tmp_path: Path) -> None:
    read_cassette(SAMPLES[0], tmp_path / "a.db")
    with Recording(tmp_path / "a.db") as recording:
        write_cassette(recording, tmp_path / "b.a2a.jsonl")
    read_cassette(tmp_path / "b.a2a.jsonl", tmp_path / "b.db")
    with Recording(tmp_path / "a.db") as one, Recording(tmp_path / "b.db") as other:
        assert [*one.read_segments()] == [*other.read_segments()] != []


# --- made conversations


class Made:
    """A recording of one stream."""

    def __init__(
        self, operation: str = "SendStreamingMessage", binding: Binding = Binding.JSONRPC
    ) -> None:
        self._exchange = Exchange(1, 1, 1, binding, START, Dialect.V1_0, operation, streaming=True)
        self._frames: list[Frame] = []

    def say(self, at: int, schema: str, payload: bytes, **fields: Any) -> Made:
        """A frame at `at` ms; to the client, unless it is a request."""
        kind = fields.setdefault("kind", FrameKind.EVENT)
        direction = Direction.TO_AGENT if kind is FrameKind.REQUEST else Direction.TO_CLIENT
        when = START + at * MS
        fields |= {"seq": len(self._frames), "direction": direction, "began": when, "at": when}
        self._frames.append(
            Frame(
                connection=1,
                exchange=1,
                start=0,
                end=0,
                payload=payload,
                size=len(payload),
                schema=schema,
                **fields,
            )
        )
        return self

    def to(self, path: Path) -> Path:
        writer = Writer(path, SessionFacts(uuid="u", tool="test", started=START))
        writer.write(self._frames, [], Changes([], [self._exchange], []))
        writer.finish(START + 10_000 * MS)
        return path


def rpc(result: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()


def ask(text: str = "go", **message: Any) -> bytes:
    sent = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}], **message}
    return json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": sent}}
    ).encode()


_ASKED = {"kind": FrameKind.REQUEST, "event": EventKind.MESSAGE, "message_id": "m"}
_ABOUT = {"task_id": "t", "context_id": "c"}


def tool(kind: str, **data: Any) -> bytes:
    part = {"data": {"name": "search", "id": "7", **data}, "metadata": {"adk_type": kind}}
    return rpc(
        {
            "statusUpdate": {
                "taskId": "t",
                "status": {
                    "state": "TASK_STATE_WORKING",
                    "message": {"messageId": "x", "parts": [part]},
                },
            }
        }
    )


def test_measures_of_a_streaming_tool(tmp_path: Path) -> None:
    """Called at 100; answers at 300, 500, 900: latency 200, period 300, the longest wait 100 more
    than that."""
    made = Made().say(0, "json", ask(), **_ASKED)
    status = {"event": EventKind.STATUS, "state": 2, "message_id": "x", **_ABOUT}
    made.say(100, "json", tool("function_call", args={"q": "x"}), **status)
    for at in (300, 500, 900):
        made.say(at, "json", tool("function_response", response={}), **status)
    made.say(1000, "json", rpc({}), event=EventKind.STATUS, state=3, **_ABOUT)
    found = objects(tmp_path, made.to(tmp_path / "tool.db"))
    (tool_line,) = (each for each in found if each["what"] == "tool")
    expected = {"name": "search", "id": "7", "answers": 3, "completed": True}
    expected |= {"latency_ns": 200 * MS, "period_ns": 300 * MS, "drift_ns": 100 * MS}
    assert {name: tool_line[name] for name in expected} == expected
    (summary,) = (each for each in found if each["what"] == "summary")
    assert summary["tool_latency"] == {
        "count": 1,
        "p50_ns": 200 * MS,
        "p95_ns": 200 * MS,
        "max_ns": 200 * MS,
    }


def test_a_turn_as_json(tmp_path: Path) -> None:
    """Asked at 10; 20 characters from 110 to 310: 100 a second."""
    made = Made().say(10, "json", ask(), **_ASKED)
    for at, append in ((110, False), (310, True)):
        update = {
            "taskId": "t",
            "artifact": {"artifactId": "a", "parts": [{"text": "ten signs."}]},
            "append": append,
        }
        fields = {"event": EventKind.ARTIFACT, "artifact_id": "a", "append": append, **_ABOUT}
        made.say(at, "json", rpc({"artifactUpdate": update}), **fields)
    made.say(410, "json", rpc({}), event=EventKind.STATUS, state=3, **_ABOUT)
    found = objects(tmp_path, made.to(tmp_path / "turn.db"))
    (turn,) = (each for each in found if each["what"] == "turn")
    assert turn["time_to_first_event_ns"] == turn["time_to_first_output_ns"] == 100 * MS
    assert turn["duration_ns"] == 400 * MS
    assert turn["longest_gap_ns"] == 200 * MS
    assert turn["output_characters"] == 20
    assert turn["output_characters_per_second"] == 100
    assert [each["text"] for each in found if each["what"] == "segment"] == [
        "go",
        "ten signs.ten signs.",
    ]


_SOUND = random.Random(1).randbytes(30_000)
_CHUNKS = [_SOUND[:9000], _SOUND[9000:9001], _SOUND[9001:]]


def _json_chunk(data: bytes, append: bool) -> tuple[str, bytes]:
    part = {
        "raw": base64.b64encode(data).decode(),
        "mediaType": "audio/wav",
        "filename": "../../voice.wav",
    }
    update = {"taskId": "t", "artifact": {"artifactId": "a", "parts": [part]}, "append": append}
    return "json", rpc({"artifactUpdate": update})


def _proto_chunk(line: str, name: str) -> Any:
    def make(data: bytes, append: bool) -> tuple[str, bytes]:
        part = {
            "raw": base64.b64encode(data).decode(),
            "mediaType": "audio/wav",
            "filename": "../../voice.wav",
        }
        update = {"taskId": "t", "artifact": {"artifactId": "a", "parts": [part]}, "append": append}
        event: dict[str, Any] = {"artifactUpdate": update}
        value = {"event": event} if name == "LiveResponse" else event
        payload = from_dict(line, name, value).SerializeToString()
        return f"lf.a2a.v1.{name}{f'@{line}' if line != '1.0' else ''}", payload

    return make


@pytest.mark.parametrize(
    "chunk",
    [
        _json_chunk,
        _proto_chunk("1.0", "StreamResponse"),
        _proto_chunk("live-1975", "LiveResponse"),
        _proto_chunk("live-2153", "StreamResponse"),
    ],
    ids=["json", "grpc", "live-1975", "live-2153"],
)
def test_chunked_media_are_written_unchanged(tmp_path: Path, chunk: Any) -> None:
    """One object of three chunks, with where each begins; large ones are blobs, and each frame is
    whole again."""
    made = Made().say(0, "json", ask(), **_ASKED)
    payloads = []
    for number, data in enumerate(_CHUNKS):
        schema, payload = chunk(data, number > 0)
        payloads.append(payload)
        fields = {"event": EventKind.ARTIFACT, "artifact_id": "a", "append": number > 0, **_ABOUT}
        made.say(100 + number, schema, payload, **fields)
    path = made.to(tmp_path / "media.db")
    found = objects(tmp_path, path, "--media", tmp_path / "out")
    (media,) = (each for each in found if each["what"] == "media")
    assert (media["media_type"], media["filename"], media["size"]) == (
        "audio/wav",
        "../../voice.wav",
        30_000,
    )
    assert [each["offset"] for each in media["chunks"]] == [0, 9000, 9001]
    (written,) = (tmp_path / "out").iterdir()
    assert (written.name, written.stat().st_mode & 0o777) == (media["file"], 0o600)
    assert written.name.startswith(hashlib.sha256(_SOUND).hexdigest())
    assert written.read_bytes() == _SOUND
    parts = [each for line in found if line["what"] == "segment" for each in line["media"]]
    assert [each["sha256"] for each in parts] == [
        hashlib.sha256(data).hexdigest() for data in _CHUNKS
    ]
    assert {each["path"] for each in parts} == {"artifactUpdate.artifact.parts[0]"}
    with Recording(path) as recording:
        rows = [*recording.frames_after(0)][1:]
        assert [row.frame.payload for row in rows] == payloads
        assert [row.pieces for row in rows] == [True, False, True]


def test_payload_text_cannot_act_on_a_terminal(tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07\x9b31m\u202e\n\r\x00"
    made = Made().say(0, "json", ask(evil), **_ASKED)
    part = {"raw": "QUJD", "mediaType": evil, "filename": evil}
    link = {"url": "http://x/" + evil, "mediaType": "a/b"}
    artifact = {
        "artifactId": evil,
        "parts": [{"text": evil}, part, link, {"data": {"name": evil, "args": {}}}],
    }
    fields = {
        "task_id": "t" + evil,
        "context_id": "c" + evil,
        "event": EventKind.ARTIFACT,
        "artifact_id": evil,
    }
    made.say(10, "json", rpc({"artifactUpdate": {"taskId": "t", "artifact": artifact}}), **fields)
    done = segments(tmp_path, made.to(tmp_path / "evil.db"), "--media", tmp_path / "out")
    assert done.code == 0, done.err
    assert not ACTS.search(done.out)
    assert [path.suffix for path in (tmp_path / "out").iterdir()] == [".bin"]


def test_segments_are_selected_by_task_or_exchange(tmp_path: Path) -> None:
    sample = next(path for path in SAMPLES if path.name.startswith("demo"))
    everything = objects(tmp_path, sample)
    tasks = [each["task_id"] for each in everything if each["what"] == "turn"]
    assert {each.get("task_id", tasks[0]) for each in objects(tmp_path, sample, tasks[0][:8])} == {
        tasks[0]
    }
    chosen = [each for each in objects(tmp_path, sample, "4") if each["what"] == "turn"]
    assert len(chosen) == 2  # both turns of the task that exchange 4 belongs to


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere.db"], "there is no recording nowhere.db"),
        ([SAMPLES[0], "nobody"], "nobody is neither an exchange of "),
        ([SAMPLES[0], "--media", "/dev/null/x"], "cannot write to /dev/null/x"),
    ],
)
def test_bad_input_is_an_error_with_a_hint(
    tmp_path: Path, words: list[object], message: str
) -> None:
    done = segments(tmp_path, *words)
    assert done.code == 2
    assert message in done.err
    assert "a2a-inspect: hint:" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("media_type", "extension"),
    [
        ("audio/wav", ".wav"),
        ("Audio/PCM; rate=16000", ".pcm"),
        ("image/png", ".png"),
        ("../../x", ".bin"),
        ("", ".bin"),
    ],
)
def test_media_files_are_named_by_content_and_type(media_type: str, extension: str) -> None:
    """Not as its agent called it."""
    name = MediaObject("t", "a", media_type, "../../evil.sh", bytearray(b"x"), []).name
    assert name == hashlib.sha256(b"x").hexdigest() + extension
