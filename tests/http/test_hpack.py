"""Our HPACK loop against the `hpack` package."""

from __future__ import annotations

import pytest
from hpack import Decoder, Encoder
from hpack.exceptions import HPACKError
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.http import hpack
from a2a_proxy.http.hpack import HpackDecoder, HpackError
from support_wire import reload

NAMES = st.sampled_from(
    [b":status", b":path", b"te", b"x", b"grpc-status", b"x-trace-bin"]
) | st.binary(max_size=20)
FIELDS = st.lists(st.tuples(NAMES, st.binary(max_size=60), st.booleans()), max_size=8)
BLOCKS = st.lists(st.tuples(FIELDS, st.booleans(), st.none() | st.integers(0, 9000)), max_size=8)


def reference(limit: int = 9000) -> Decoder:
    decoder = Decoder(max_header_list_size=hpack.MAX_LIST_SIZE)
    decoder.max_allowed_table_size = limit
    return decoder


def ours(limit: int = 9000) -> HpackDecoder:
    decoder = HpackDecoder()
    decoder.apply_settings([(1, limit)])
    return decoder


def outcome(decode, block):
    try:
        return [tuple(field) for field in decode(block)]
    except (HPACKError, HpackError):
        return None


@given(BLOCKS)
@settings(max_examples=150, deadline=None)
def test_valid_blocks_decode_as_the_library_does_also_saved_between_them(blocks):
    """Same fields, whatever the encoder's table sizes, and after save and restore at each block."""
    encoder, library, decoder = Encoder(), reference(), ours()
    for fields, huffman, size in blocks:
        if size is not None:
            encoder.header_table_size = size
        block = encoder.encode(fields, huffman=huffman)
        expected = [(name, value) for name, value, _ in fields]
        assert [tuple(field) for field in library.decode(block, raw=True)] == expected
        assert decoder.decode_block(block) == expected
        decoder = reload(decoder)


@given(st.lists(st.binary(max_size=40), max_size=6))
@settings(max_examples=400, deadline=None)
def test_garbage_is_accepted_or_rejected_as_the_library_does(blocks):
    """The same verdict and the same fields on random blocks, up to the first rejected one."""
    library, decoder = reference(), ours()
    for block in blocks:
        expected = outcome(lambda data: library.decode(data, raw=True), block)
        assert outcome(decoder.decode_block, block) == expected
        if expected is None:
            break


@given(FIELDS, st.integers(0, 200), st.integers(0, 255))
@settings(max_examples=300, deadline=None)
def test_damaged_blocks_are_judged_as_the_library_does(fields, where, byte):
    """One byte of a valid block replaced, or the block cut there."""
    block = bytearray(Encoder().encode(fields))
    where = min(where, len(block))
    for damaged in (
        bytes(block[:where]),
        bytes(block[:where]) + bytes([byte]) + bytes(block[where + 1 :]),
    ):
        expected = outcome(lambda data: reference().decode(data, raw=True), damaged)
        assert outcome(ours().decode_block, damaged) == expected


def test_raw_binary_metadata_passes():
    """Peers built on gRPC C-core send `-bin` values as a NUL and raw bytes; they are not text."""
    value = b"\x00\xff\xfe\x80raw"
    block = b"\x00\x05x-bin" + bytes([len(value)]) + value
    assert HpackDecoder().decode_block(block) == [(b"x-bin", value)]


def test_a_lowered_limit_does_not_reject_blocks_sent_before_it_was_known():
    """After a smaller SETTINGS_HEADER_TABLE_SIZE the old size is still followed."""
    decoder = ours(8192)
    decoder.apply_settings([(1, 0)])
    encoder = Encoder()
    encoder.header_table_size = 8192
    assert decoder.decode_block(encoder.encode([(b"a", b"b")])) == [(b"a", b"b")]


def test_a_header_list_bomb_is_rejected():
    """One large entry, repeated by its index, stays under the limit of the decoded list."""
    decoder = ours()
    decoder.decode_block(b"\x40\x01a\x7f\xa1\x1e" + b"v" * 4000)
    repeats = hpack.MAX_LIST_SIZE // 4033
    assert len(decoder.decode_block(b"\xbe" * repeats)) == repeats
    with pytest.raises(HpackError, match="header list"):
        decoder.decode_block(b"\xbe" * (repeats + 1))


@pytest.mark.parametrize(
    "block",
    [
        b"\x80",
        b"\xbe",
        b"\xff",
        b"\xff\xff\xff\xff\xff\xff\x01",
        b"\x82\x20",
        b"\x3f\xff\xff\xff\x0f",
        b"\x00\x05ab",
    ],
)
def test_each_kind_of_error_is_named(block):
    """Index 0, index beyond the table, cut integer, long integer, late update, large update, cut
    string."""
    with pytest.raises(HpackError):
        HpackDecoder().decode_block(block)


def test_a_table_keeps_as_many_entries_as_its_size_allows():
    """A table of 100 bytes holds an entry of 100 bytes, or two of 50; older entries are no longer
    addressable."""
    decoder = ours()
    size_100, indexed_62, indexed_64 = b"\x3f\x45", b"\xbe", b"\xc0"
    assert (
        decoder.decode_block(size_100 + b"\x40\x01a\x43" + b"v" * 67 + indexed_62)
        == [(b"a", b"v" * 67)] * 2
    )
    for number in range(5):
        decoder.decode_block(b"\x40\x01%d\x11" % number + b"v" * 17)
    assert decoder.decode_block(b"\xbe\xbf") == [(b"4", b"v" * 17), (b"3", b"v" * 17)]
    with pytest.raises(HpackError):
        decoder.decode_block(indexed_64)
