"""How much of a journal is read at once."""

from __future__ import annotations

from pathlib import Path

from a2a_proxy.capture.record_format import pack_record, segment_header, segment_path
from a2a_proxy.model.values import Frame, FrameKind, Observation
from a2a_proxy.model.wire import Chunk
from a2a_proxy.observer import Observer
from a2a_proxy.recorder.crashes import CrashHistory
from a2a_proxy.recorder.pump import MOST, PIECE, JournalPump
from a2a_proxy.redaction import Redactor
from support_conversation import Grpc, frame
from support_observer import KEY, observe, scripted, streaming

_EACH = 3000
"""Messages without content in one DATA frame."""


def _journal(folder: Path, chunks: list[Chunk]) -> Path:
    records = [
        b"".join(pack_record(each.kind, each.direction, each.connection, each.at, each.data))
        for each in chunks
    ]
    segment_path(folder, 1).write_bytes(segment_header(1, 0) + b"".join(records))
    return folder


def _feed(folder: Path) -> JournalPump:
    return JournalPump(
        folder, CrashHistory(folder, None, is_successor=False), Observer(Redactor(KEY))
    )


def _frames(out: list[Observation]) -> list[Frame]:
    """Without findings: these come when the frames of a step have been read."""
    return [each for each in out if type(each) is Frame]


def _empty(messages: int) -> list[Chunk]:
    grpc = (
        Grpc()
        .open("/lf.a2a.v1.A2AService/SubscribeToTask", a2a_version="1.0")
        .send(b"\x12\x02t1")
        .respond()
    )
    for _ in range(messages // _EACH):
        grpc.agent(frame(0, 0, 1, bytes(5 * _EACH)))
    return scripted(grpc)


def test_a_step_holds_a_bounded_number_of_messages(tmp_path: Path) -> None:
    """Five bytes are a message: a step reads less of such a journal, and all of it comes in the
    end."""
    messages = 90_000
    session = _empty(messages)
    feed, steps, out = _feed(_journal(tmp_path, session)), list[int](), list[Observation]()
    while feed.decode_next(step := []):
        steps.append(len(step))
        out += step
    assert max(steps) < MOST + PIECE / 5
    assert _frames(out) == _frames(observe(session).out)
    assert sum(each.kind is FrameKind.EVENT for each in _frames(out)) == messages


def test_reading_in_pieces_yields_the_same_frames(tmp_path: Path) -> None:
    """A journal read byte by byte, piece by piece, or at once."""
    session = scripted(streaming("t", chunks=30))
    _journal(tmp_path, session)
    expected = _frames(observe(session).out)
    for data in (1, 500, 1 << 20):
        feed, out = _feed(tmp_path), list[Observation]()
        while feed.decode_next(out, max_bytes=data):
            pass
        assert _frames(out) == expected
