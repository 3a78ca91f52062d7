"""Secrets in several frames: lines of a log, and chunks of an artifact."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

import support_planted
from a2a_proxy.model.values import EventKind, Frame, FrameKind
from a2a_proxy.model.wire import Chunk, Direction
from a2a_proxy.protocol.artifact_chunks import chunks_of_frame, texts_of_frame
from a2a_proxy.redaction import Redactor
from a2a_proxy.redaction.policy import DEFAULT
from a2a_proxy.redaction.scanner import ScanningRedactor, Sight
from a2a_proxy.redaction.scrubber import Scrubber
from a2a_proxy.redaction.split_secrets import LONGEST_KEY, LONGEST_TAIL, MAX_TEXTS, SplitSecrets
from support_conversation import Grpc, Http, Script
from support_observer import observe, scripted
from support_pipe import Stdio
from support_rules import record
from support_secrets import encode_message, everything

KEY = b"k" * 32
PLANTS = support_planted.split()
PEM = support_planted.private_key()
SHOWN = 24
"""Characters of a key that are recorded before its form shows, at most: a prefix and six, or what
precedes a prefix."""
ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "proxy/a2a_proxy/manual").glob("[a-m]*.md"))


def cut(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def chunk(piece: str, number: int = 1, artifact: str = "a", **more: Any) -> dict[str, Any]:
    """Return an event with the next chunk of an artifact."""
    parts = {"artifactId": artifact, "parts": [{"text": piece}]}
    return {
        "artifactUpdate": {
            "taskId": f"t-{number}",
            "contextId": "c",
            "append": True,
            "artifact": parts,
            **more,
        }
    }


def sse(texts: list[list[str]]) -> Script:
    """Return a call for each text, whose chunks are events of its stream."""
    http = Http()
    for number, pieces in enumerate(texts, 1):
        http.call(
            "SendStreamingMessage", {"message": {"messageId": "m"}}, number, A2A_Version="1.0"
        ).stream()
        for piece in pieces:
            http.rpc_event(chunk(piece, number), number)
        http.done()
    return http


def grpc(texts: list[list[str]]) -> Script:
    """Return the same as `sse` over gRPC."""
    grpc = Grpc()
    for number, pieces in enumerate(texts):
        stream = 2 * number + 1
        request = encode_message("1.0", "SendMessageRequest", {"message": {"messageId": "m"}})
        grpc.open("/lf.a2a.v1.A2AService/SendStreamingMessage", stream, a2a_version="1.0").send(
            request, stream
        )
        grpc.respond(stream)
        for piece in pieces:
            grpc.give(encode_message("1.0", "StreamResponse", chunk(piece, number)), stream)
        grpc.trailers(0, stream)
    return grpc


def joined(out: Iterable[object]) -> dict[int, str]:
    """Return the text of each exchange."""
    texts: dict[int, str] = {}
    for each in out:
        if isinstance(each, Frame) and each.event is EventKind.ARTIFACT:
            texts[each.exchange] = (
                texts.get(each.exchange, "") + b"".join(texts_of_frame(each)).decode()
            )
    return texts


def count_shown(secret: str, text: str) -> int:
    """Return the length of the longest part of a secret that is in the text."""
    found = 0
    for start in range(len(secret)):
        while start + found < len(secret) and secret[start : start + found + 1] in text:
            found += 1
    return found


@pytest.mark.parametrize(
    ("carry", "size", "step"), [(sse, 1, 4), (sse, 5, 1), (sse, 20, 1), (grpc, 8, 1)]
)
def test_a_key_in_chunks_is_replaced(carry: Any, size: int, step: int) -> None:
    """Of a key of any format at most the prefix and a few characters are recorded, however it is
    cut."""
    plants = PLANTS[::step]
    shown = joined(observe(scripted(carry([cut(plant.line, size) for plant in plants]))).out)
    assert len(shown) == len(plants)
    pairs = zip(plants, shown.values(), strict=True)
    longest = {plant.what: count_shown(plant.secret, text) for plant, text in pairs}
    assert {what: length for what, length in longest.items() if length > SHOWN} == {}
    assert [plant.what for plant in plants if longest[plant.what] > len(plant.secret) - 8] == []
    assert all(text.startswith("use ") and text.endswith(" for this") for text in shown.values())


@pytest.mark.parametrize("size", [7, 100])
def test_a_long_token_in_chunks_is_replaced(size: int) -> None:
    """Its end is far from the characters that show its form."""
    parts = (
        "".join(Random(18).choices(support_planted.WORD, k=length)) for length in (60, 1400, 86)
    )
    token = "eyJ" + ".".join(parts)
    (shown,) = joined(observe(scripted(sse([cut(f"use {token} for this", size)]))).out).values()
    assert count_shown(token, shown) <= SHOWN
    assert shown.endswith(" for this")


@pytest.mark.parametrize("size", [3, 5, 8, 20])
@pytest.mark.parametrize("length", [36, 64])
def test_value_whose_quote_is_open_is_replaced(size: int, length: int) -> None:
    """A value is replaced before the quote or the element that it is in is closed."""
    shapes = (
        'password: "%s" end',
        "token = '%s'; end",
        '["--api-key", "%s"] end',
        "['--token', '%s'] end",
        "<password>%s</password> end",
        '- name: API_KEY\n  value: "%s"\n',
    )
    word = "".join(Random(length).choices("abcdefghkmXYZQ23456789", k=length))
    texts = [cut("Here it is: " + shape % word, size) for shape in shapes]
    shown = joined(observe(scripted(sse(texts))).out).values()
    for shape, text in zip(shapes, shown, strict=True):
        assert count_shown(word, text) <= SHOWN, shape


def test_a_scan_finds_what_is_split_and_what_is_beside_it() -> None:
    """Each secret has its own place, in a message with a chunk and another secret too."""
    scanner, plant = ScanningRedactor(DEFAULT), PLANTS[30]
    found: list[Sight] = []
    for _ in range(2):
        found = []
        for seq, piece in enumerate(cut(plant.line, 6)):
            metadata = {"password": "cAnary7f3Qx9Zk"}
            found += scanner.in_frame(_frame(chunk(piece, metadata=metadata), seq), None)
    places = {each.secret: each.where for each in found}
    assert places.pop(b"cAnary7f3Qx9Zk") == "$.artifactUpdate.metadata.password"
    assert set(places.values()) == {"$.artifactUpdate.artifact.parts[0].text"}
    assert plant.secret.encode() in places


def test_the_recording_has_no_key(tmp_path: Path) -> None:
    """Neither frames nor tasks have the key that was streamed, also when it is seen as a whole
    afterwards."""
    plant = PLANTS[30]
    record(tmp_path / "r.a2a.db", scripted(sse([cut(plant.line, 6), [plant.line]])))
    data = everything(tmp_path / "r.a2a.db")
    assert b"redacted-" in data
    assert plant.secret.encode() not in data


def test_the_state_survives_a_restart() -> None:
    """The result is the same if the observer is saved and restored before each record."""
    chunks = scripted(sse([cut(plant.line, 5) for plant in PLANTS[:8]]))
    again = observe(chunks, restart_at=range(1, len(chunks)))
    assert joined(again.out) == joined(observe(chunks).out)


@pytest.mark.parametrize("size", [1, 5, 20, 65, 4000])
def test_a_private_key_in_chunks_is_replaced(size: int) -> None:
    """The lines between its first and its last line are; the text before and after stays."""
    text = "\n".join(("here", *PEM, "thanks, bye"))
    (shown,) = joined(observe(scripted(sse([cut(text, size)]))).out).values()
    assert all(line[at : at + 12] not in shown for line in PEM[1:-1] for at in range(0, 53, 7))
    assert shown.startswith(f"here\n{PEM[0]}")
    assert shown.endswith("PRIVATE KEY-----\nthanks, bye")


def test_artifacts_and_streams_are_judged_apart() -> None:
    """Chunks of two artifacts alternate, on two streams of the task: each key is found in its own
    text."""
    secret = PLANTS[30].secret
    http = Http()
    for number in (1, 2):
        http.call("SubscribeToTask", {"id": "t-1"}, number, A2A_Version="1.0").stream()
        for piece in cut(secret, 4):
            http.rpc_event(chunk(piece, artifact="a"), number).rpc_event(
                chunk("walks and so on", artifact="b"), number
            )
        http.done()
    for text in joined(observe(scripted(http)).out).values():
        assert count_shown(secret, text.replace("walks and so on", "")) <= SHOWN
        assert text.count("walks and so on") == len(cut(secret, 4))


def _frame(payload: Any, seq: int = 0, exchange: int = 1, **more: Any) -> Frame:
    data = msgspec.json.encode(payload)
    facts = {
        "schema": "json",
        "event": EventKind.ARTIFACT,
        "artifact_id": "a",
        "task_id": "t-1",
        **more,
    }
    kind = facts.pop("kind", FrameKind.EVENT)
    return Frame(1, exchange, seq, Direction.TO_CLIENT, kind, 1, 1, 0, 1, data, len(data), **facts)


def test_chunks_that_are_delivered_are_replaced() -> None:
    """Push notifications carry the chunks too, each in a call of its own."""
    secret, redactor = PLANTS[30].secret, Redactor(KEY)
    frames = [
        _frame(chunk(piece), exchange=number, kind=FrameKind.REQUEST)
        for number, piece in enumerate(cut(secret, 6), 1)
    ]
    text = b"".join(
        text for frame in frames for text in texts_of_frame(redactor.redact_frame(frame, None))
    ).decode()
    assert count_shown(secret, text) <= SHOWN


def test_a_key_that_a_snapshot_cuts_off_is_replaced() -> None:
    """The snapshot of a task that is still at work ends in the middle of a key."""
    secret = PLANTS[30].secret
    task = {
        "id": "t-1",
        "artifacts": [{"artifactId": "a", "parts": [{"text": f"use {secret[:-6]}"}]}],
    }
    clean = Redactor(KEY).redact_frame(
        _frame({"task": task}, event=EventKind.TASK, artifact_id=""), None
    )
    assert count_shown(secret, clean.payload.decode()) < 4
    assert clean.redacted == ("$.task.artifacts[0].parts[0].text",)


def test_a_known_secret_in_chunks_is_replaced() -> None:
    """A secret from a header that an agent repeats in pieces of eight characters."""
    redactor = Redactor(KEY)
    redactor.redact_text("Authorization: Bearer f00dbabe-correct-horse")
    frames = [
        _frame(chunk(piece), seq)
        for seq, piece in enumerate(cut("it is f00dbabe-correct-horse, right", 8))
    ]
    text = b"".join(
        text for frame in frames for text in texts_of_frame(redactor.redact_frame(frame, None))
    ).decode()
    assert count_shown("f00dbabe-correct-horse", text) <= 10
    assert text.endswith(", right")


def test_a_secret_beside_ordinary_chunks_is_replaced() -> None:
    """The events are alike but for their text, until one has a secret outside of it."""
    redactor, secret = Redactor(KEY), "cAnary7f3Qx9Zk"

    def redact(frame: Frame) -> Frame:
        chunks = chunks_of_frame(frame)
        sieved = redactor.sieve_frames([frame], chunks=chunks)
        return redactor.redact_frame(frame, None, sieved, chunk=chunks[0])

    for seq in range(4):
        frame = _frame(chunk("some words ", metadata={"session": ""}), seq)
        assert redact(frame) is frame
    clean = redact(_frame(chunk("some words ", metadata={"password": secret}), 4))
    assert clean.redacted == ("$.artifactUpdate.metadata.password",)
    frame = _frame(chunk(f"some words {secret} "), 5)
    assert secret.encode() not in redactor.redact_frame(frame, None).payload


@pytest.mark.parametrize("together", [1, 8])
def test_the_short_test_of_chunks_changes_no_result(
    monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    """With it and without it, keys, ordinary text and escaped characters give the same frames, also
    where several chunks, of several texts, are tested together."""
    random = Random(31)
    texts = [plant.line for plant in PLANTS[::3]] + [
        page.read_text("utf-8")[:3_000] for page in PAGES[:8]
    ]
    texts += ["\n".join(PEM), 'a "quoted"\n\u00e9\u4e16 text with Bearer aB3dEf6hIj9kLm2nOp5q']
    frames = []
    for numbers in (range(0, len(texts), 2), range(1, len(texts), 2)):
        streams = []
        for number in numbers:
            pieces = cut(texts[number], random.randrange(3, 30))
            streams.append(
                [
                    _frame(chunk(piece, number, lastChunk=seq == len(pieces) - 1), seq, number + 1)
                    for seq, piece in enumerate(pieces)
                ]
            )
        while streams:
            stream = random.choice(streams[:2])
            frames.append(stream.pop(0))
            streams = [each for each in streams if each]

    def redact() -> list[Frame]:
        redactor, clean = Redactor(KEY), list[Frame]()
        for at in range(0, len(frames), together):
            group = frames[at : at + together]
            chunks = [chunks_of_frame(each)[0] for each in group]
            sieved = redactor.sieve_frames(group, chunks=chunks)
            for each, read in zip(group, chunks, strict=True):
                clean.append(redactor.redact_frame(each, None, sieved, chunk=read))
        return clean

    short = redact()
    assert sum(new is old for new, old in zip(short, frames, strict=True)) > len(frames) / 2
    monkeypatch.setattr(SplitSecrets, "accept_clean_piece", lambda *_: False)
    assert redact() == short


def test_a_second_reading_begins_anew() -> None:
    """`redact` and `scan` read all frames twice: an open key at the end has no effect on the
    beginning."""
    redactor = Redactor(KEY)
    frames = [_frame(chunk(piece), seq) for seq, piece in enumerate(("one two", *PEM[:3]))]
    frames.append(_frame(chunk("see token=cAnary7f3Qx9Zk"), exchange=2))
    first, second = (
        [redactor.redact_frame(frame, None).payload for frame in frames] for _ in range(2)
    )
    assert first == second
    assert b"one two" in second[0]
    assert b"see token=" in second[-1]


def test_ordinary_text_in_chunks_stays() -> None:
    """Of the manual, sent word by word, fewer than one chunk in 1,000 is changed: those near names
    of secrets."""
    pieces, changed = 0, 0
    redactor = Redactor(KEY)
    for number, page in enumerate(PAGES, 1):
        for seq, line in enumerate(page.read_text("utf-8").splitlines(keepends=True)):
            for word in line.split(" "):
                frame = _frame(chunk(f" {word}"), seq, number)
                changed += redactor.redact_frame(frame, None) is not frame
                pieces += 1
    assert pieces > 20_000
    assert changed < pieces / 1000


def _log(chunks: list[Chunk], **options: Any) -> list[str]:
    """Return the payloads of the lines outside messages."""
    kinds = (FrameKind.LOG, FrameKind.OTHER)
    return [
        f.payload.decode()
        for f in observe(chunks, **options).out
        if isinstance(f, Frame) and f.kind in kinds
    ]


@pytest.mark.parametrize("write", [Stdio.log, Stdio.read])
@pytest.mark.parametrize("prefix", ["", "INFO agent: "])
def test_a_private_key_in_lines_is_replaced(write: Any, prefix: str) -> None:
    """Each line between the first and the last is a label, on stderr and on stdout, also if the
    recorder restarts."""
    lines = ["starting", *PEM, "ready"]
    stdio = Stdio()
    for line in lines:
        write(stdio, f"{prefix}{line}\n".encode())
    chunks = stdio.exit().closed().session()
    shown = _log(chunks)
    assert shown[:2] == [f"{prefix}starting", prefix + PEM[0]]
    assert shown[-1] == f"{prefix}ready"
    assert shown[-2].endswith(PEM[-1])
    assert all(line.startswith("redacted-") and len(line) == 21 for line in shown[2:-2])
    assert len(shown) == len(lines)
    assert _log(chunks, restart_at=range(1, len(chunks))) == shown
    bytewise = Stdio()
    for byte in "".join(f"{prefix}{line}\n" for line in lines).encode():
        write(bytewise, bytes([byte]))
    assert _log(bytewise.exit().closed().session()) == shown


def test_stderr_and_stdout_are_judged_apart() -> None:
    """A key on stderr says nothing of lines on stdout."""
    stdio = Stdio().log(f"{PEM[0]}\n".encode()).read(b"hello\n").log(f"{PEM[1]}\n".encode())
    shown = _log(stdio.exit().closed().session())
    assert shown[:2] == [PEM[0], "hello"]
    assert shown[2].startswith("redacted-")


def test_a_key_without_an_end_hides_no_more_than_its_limit() -> None:
    """Lines are readable again after `LONGEST_KEY` bytes."""
    line = "an ordinary line of the log, of sixty-four bytes with this end.."
    stdio = Stdio().log(f"{PEM[0]}\n".encode())
    count = LONGEST_KEY // len(line)
    for _ in range(count + 3):
        stdio.log(f"{line}\n".encode())
    assert _log(stdio.exit().closed().session())[count:].count(line) == 3


@pytest.mark.parametrize(
    "line", [f'expected "{PEM[0]}" in key.pem', f"{PEM[0]} {PEM[1]} {PEM[-1]}"]
)
def test_a_line_about_a_key_hides_no_other(line: str) -> None:
    """A sentence about the first line of a key, and a line with a whole key: the next line
    stays."""
    stdio = (
        Stdio()
        .read(f"{line}\n".encode())
        .log(f"{line}\n".encode())
        .log(b"ready\n")
        .read(b"ready\n")
    )
    assert _log(stdio.exit().closed().session()).count("ready") == 2


def test_a_key_in_lines_of_json_is_replaced() -> None:
    """What replaces such a line is JSON too."""
    stdio = Stdio()
    for line in PEM:
        stdio.read(msgspec.json.encode({"log": line}) + b"\n")
    shown = _log(stdio.exit().closed().session())
    assert [shown[0], shown[-1]] == [
        f'{{"log":"{PEM[0]}"}}',
        f'"redacted-{shown[-1][10:22]}{PEM[-1]}\\"}}"',
    ]
    assert all(msgspec.json.decode(line)[:9] == "redacted-" for line in shown[1:-1])


def test_what_is_remembered_is_bounded() -> None:
    """Of the newest texts the last bytes are kept, in the snapshot too."""
    split = SplitSecrets(Scrubber(KEY))
    for number in range(MAX_TEXTS + 200):
        split.redact_pieces((1, number, 1, "a"), (number, 0), [b"x" * 5000], is_line=False)
    saved = split.texts
    assert MAX_TEXTS * 15 // 16 <= len(saved) <= MAX_TEXTS + 1
    assert max(len(text.tail) for text in saved.values()) == LONGEST_TAIL
