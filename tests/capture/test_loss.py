from __future__ import annotations

import pytest

from a2a_proxy.capture import loss as gap_module
from a2a_proxy.capture.loss import LossBuffer
from a2a_proxy.capture.record_format import pack_record, scan_records
from a2a_proxy.model.wire import Chunk, ChunkKind, Direction
from support_journal import lost, payload

OPEN, DATA, OURS, LOST, EOF, CLOSED = (
    ChunkKind.OPEN,
    ChunkKind.DATA,
    ChunkKind.OURS,
    ChunkKind.LOST,
    ChunkKind.EOF,
    ChunkKind.CLOSED,
)
A, B = Direction


def add(gap: LossBuffer, *records: tuple[ChunkKind, Direction, int, bytes]) -> None:
    for kind, direction, connection, data in records:
        gap.add(list(pack_record(kind, direction, connection, 5, data)), "")


def taken(gap: LossBuffer) -> list[Chunk]:
    return scan_records(b"".join(gap.take_pieces())).chunks


def test_control_records_are_kept_and_lost_payload_is_counted() -> None:
    """Each direction that lost bytes has one LOST, at the place of the first."""
    gap = LossBuffer()
    add(gap, (OPEN, A, 1, b"{}"), (DATA, A, 1, b"abc"), (DATA, B, 1, b"de"), (DATA, A, 1, b"f"))
    add(gap, (OURS, B, 1, b"gh"), (EOF, A, 1, b""), (CLOSED, A, 1, b""))
    chunks = taken(gap)
    assert [(chunk.kind, chunk.direction) for chunk in chunks] == [
        (OPEN, A),
        (LOST, A),
        (LOST, B),
        (EOF, A),
        (CLOSED, A),
    ]
    assert [chunk.data for chunk in chunks[1:3]] == [b'{"bytes":4}', b'{"bytes":4}']
    assert gap.lost_bytes == 8
    assert not gap


def test_lost_loss_records_are_merged() -> None:
    """LOST records that could not be written either are merged, and not counted twice."""
    gap = LossBuffer()
    add(gap, (DATA, A, 1, b"abc"))
    again = gap.take_pieces()
    gap.add(again, "")
    add(gap, (DATA, A, 1, b"de"))
    assert lost(taken(gap)) == 5 == gap.lost_bytes


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections that open when too much is kept already are only counted; those that are known
    still close."""
    monkeypatch.setattr(gap_module, "MAX_ENTRIES", 3)
    gap = LossBuffer()
    for number in range(1, 4):
        add(gap, (OPEN, A, number, b"{}"))
    for number in range(4, 100):
        add(
            gap,
            (OPEN, A, number, b"{}"),
            (DATA, A, number, b"xy"),
            (EOF, A, number, b""),
            (CLOSED, A, number, b""),
        )
    add(gap, (CLOSED, A, 2, b""))
    chunks = taken(gap)
    assert [(chunk.kind, chunk.connection) for chunk in chunks] == [
        (OPEN, 1),
        (OPEN, 2),
        (OPEN, 3),
        (LOST, 0),
        (CLOSED, 2),
    ]
    assert lost(chunks) == 192 == gap.lost_bytes
    assert payload(chunks) == 0
