from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from a2a_proxy.capture.record_format import (
    RECORD_HEADER,
    SEGMENT_HEADER,
    bytes_after,
    pack_record,
    previous_segment_end,
    scan_records,
    segment_header,
    segment_path,
    unpack_header,
)
from a2a_proxy.model.wire import Chunk, ChunkKind, Direction

CHUNKS = st.lists(
    st.builds(
        Chunk,
        connection=st.integers(0, 2**32 - 1),
        kind=st.sampled_from(ChunkKind),
        direction=st.sampled_from(Direction),
        at=st.integers(0, 2**64 - 1),
        data=st.binary(max_size=40),
    ),
    max_size=8,
)


def wire(chunks: list[Chunk]) -> bytes:
    return b"".join(
        piece
        for chunk in chunks
        for piece in pack_record(
            chunk.kind, chunk.direction, chunk.connection, chunk.at, chunk.data
        )
    )


def test_the_format() -> None:
    """The bytes of a record and of a segment's header, so that a change of the format does not go
    unseen."""
    record = b"".join(
        pack_record(ChunkKind.DATA, Direction.TO_CLIENT, 7, 0x0102030405060708, b"hi")
    )
    assert (
        record.hex()
        == "02000000" + record[4:8].hex() + "03010000" + "07000000" + "0807060504030201" + "6869"
    )
    assert RECORD_HEADER.size == 24
    assert segment_header(2, 99) == b"A2AJRNL\n" + bytes.fromhex("01000000020000006300000000000000")
    assert unpack_header(pack_record(3, 1, 7, 9, b"")[0]) == (3, 1, 7, 9)


@given(CHUNKS)
def test_packed_records_are_scanned_back_equal(chunks: list[Chunk]) -> None:
    """Records come back equal, with nothing left."""
    data = wire(chunks)
    found = scan_records(data)
    assert (found.chunks, found.end, found.damage) == (chunks, len(data), "")


@given(CHUNKS, st.data())
def test_a_torn_tail_is_no_damage_and_is_read_later(
    chunks: list[Chunk], data: st.DataObject
) -> None:
    """Cut anywhere, the whole records are found, the rest is no damage, and reading on from there
    finds the others."""
    raw = wire(chunks)
    cut = data.draw(st.integers(0, len(raw)))
    first = scan_records(raw[:cut])
    assert first.damage == ""
    assert first.end + first.needed_bytes > cut
    rest = scan_records(raw, first.end)
    assert first.chunks + rest.chunks == chunks


@given(CHUNKS.filter(bool), st.data())
def test_damage_is_reported_without_an_exception(chunks: list[Chunk], data: st.DataObject) -> None:
    """One wrong byte: the records before it are found, nothing wrong is, and no exception comes."""
    raw = bytearray(wire(chunks))
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= data.draw(st.integers(1, 255))
    found = scan_records(bytes(raw))
    assert found.chunks == chunks[: len(found.chunks)]
    assert found.end <= place
    assert found.damage or found.needed_bytes > len(raw) - found.end


@given(st.binary(max_size=200))
def test_any_bytes_are_scanned_without_an_exception(data: bytes) -> None:
    """Garbage is damage or a torn tail."""
    found = scan_records(data)
    assert found.end <= len(data)


def test_a_record_of_an_unknown_kind_is_damage() -> None:
    """Also with a right checksum."""
    for kind, direction in ((0, 0), (len(ChunkKind) + 1, 0), (255, 1), (3, 2)):
        assert (
            "unknown kind" in scan_records(b"".join(pack_record(kind, direction, 1, 1, b""))).damage
        )


def test_an_impossible_length_is_damage_at_once() -> None:
    """It is not waited for."""
    assert "length" in scan_records(b"\xff\xff\xff\xff" + bytes(20)).damage


def test_a_segment_header_of_another_version_is_refused() -> None:
    """Wrong magic, wrong version, or too short."""
    good = segment_header(1, 5)
    assert previous_segment_end(good) == 5
    assert previous_segment_end(good[:-1]) is None
    assert previous_segment_end(b"X" + good[1:]) is None
    assert previous_segment_end(good[:8] + b"\2" + good[9:]) is None
    assert len(good) == SEGMENT_HEADER.size


def test_bytes_after_a_position_are_of_its_segment_and_later_ones(tmp_path: Path) -> None:
    """A deleted segment has none; a position beyond the end is not negative."""
    for number, size in ((1, 50), (2, 300), (3, 7)):
        segment_path(tmp_path, number).write_bytes(bytes(size))
    assert [bytes_after(tmp_path, at) for at in ((1, 50), (2, 100), (3, 7), (3, 9), (4, 5))] == [
        307,
        207,
        0,
        0,
        0,
    ]
    segment_path(tmp_path, 1).unlink()
    assert bytes_after(tmp_path, (1, 50)) == 307
