"""Blocks without a dynamic table, read by the `hpack` package."""

from __future__ import annotations

from hpack import Decoder, Encoder
from hpack.struct import HeaderTuple, NeverIndexedHeaderTuple
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.http.hpack import FORGET_TABLE, HpackDecoder, encode_literals

NAMES = st.sampled_from(
    [b":status", b":path", b":authority", b"te", b"x", b"www-authenticate", b"x-trace-bin"]
)
VALUES = st.sampled_from(
    [b"", b"/", b"200", b"\x00\xff\xfe", b"v" * 126, b"v" * 127, b"v" * 128, b"v" * 20_000]
)
FIELDS = st.lists(
    st.tuples(NAMES | st.binary(max_size=200), VALUES | st.binary(max_size=60), st.booleans()),
    max_size=9,
)


def library(block, table=0):
    """Fields, whether each is never to be indexed, and how many entries the table has after it."""
    decoder = Decoder(max_header_list_size=1 << 20)
    decoder.max_allowed_table_size = table
    fields = decoder.decode(block, raw=True)
    return [
        (*field, isinstance(field, NeverIndexedHeaderTuple)) for field in fields
    ], decoder.header_table


@given(FIELDS)
@settings(max_examples=200, deadline=None)
def test_the_library_reads_the_same_fields_and_fills_no_table(fields):
    """Names, bytes, order and what is never to be indexed; also where the reader allows no table at
    all."""
    never = {place for place, field in enumerate(fields) if field[2]}
    block = encode_literals([(name, value) for name, value, _ in fields], never)
    read, table = library(FORGET_TABLE + block)
    assert read == fields
    assert not table.dynamic_entries


@given(FIELDS, st.booleans())
@settings(max_examples=200, deadline=None)
def test_what_is_never_indexed_is_found_in_blocks_of_the_library(fields, huffman):
    """Whatever the encoding of the fields around, also with a table size update in front."""
    encoder = Encoder()
    encoder.header_table_size = 100
    headers = [
        (NeverIndexedHeaderTuple if never else HeaderTuple)(name, value)
        for name, value, never in fields
    ]
    decoder, ours = Decoder(max_header_list_size=1 << 20), HpackDecoder()
    for _ in range(2):
        block = encoder.encode(headers, huffman=huffman)
        read = decoder.decode(block, raw=True)
        ours.decode_block(block)
        assert ours.marked == {
            at for at, field in enumerate(read) if isinstance(field, NeverIndexedHeaderTuple)
        }


def test_static_table_fields_are_one_byte():
    """Nobody pays for `:method POST` in full."""
    assert encode_literals([(b":method", b"POST"), (b":scheme", b"http")]) == b"\x83\x86"
