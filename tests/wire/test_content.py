"""Content codings, compared with the libraries that encode them."""

from __future__ import annotations

import gzip
import importlib
import sys
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.wire import content
from a2a_proxy.wire.content import ContentDecoder, decompress_message
from support_wire import reload

try:
    zstd = importlib.import_module("compression.zstd")
except ImportError:
    zstd = importlib.import_module("backports.zstd")


def raw_deflate(data):
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def flushed_gzip(data):
    """As a server does with a stream of events: a flush after each piece."""
    packer = zlib.compressobj(wbits=31)
    pieces = [
        packer.compress(data[i : i + 50]) + packer.flush(zlib.Z_SYNC_FLUSH)
        for i in range(0, len(data), 50)
    ]
    return b"".join(pieces) + packer.flush()


CODINGS = {
    b"": lambda data: data,
    b"identity": lambda data: data,
    b"gzip": gzip.compress,
    b"X-GZIP": flushed_gzip,
    b"deflate": zlib.compress,
    b"Deflate": raw_deflate,
    b"zstd": zstd.compress,
    b"deflate, gzip": lambda data: gzip.compress(zlib.compress(data), mtime=0),
    b"gzip , identity,zstd": lambda data: zstd.compress(gzip.compress(data, mtime=0)),
}


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("plain", [b"", b"x", b'data: {"jsonrpc":"2.0"}\r\n\r\n' * 20])
def test_every_split_decodes_to_the_same(coding, plain):
    """Whole, byte by byte, and cut at each byte with a restart there."""
    wire = CODINGS[coding](plain)
    whole, single = ContentDecoder(coding), ContentDecoder(coding)
    assert whole.feed(wire) == plain
    assert b"".join(single.feed(wire[i : i + 1]) for i in range(len(wire))) == plain
    for decoder in (whole, single):
        decoder.finish()
        assert decoder.problem == ""
    for cut in range(len(wire)):
        decoder = ContentDecoder(coding)
        out = decoder.feed(wire[:cut])
        decoder = reload(decoder)
        assert out + decoder.feed(wire[cut:]) == plain


@pytest.mark.parametrize("coding", [b"gzip", b"zstd"])
def test_concatenated_members_are_one_body(coding):
    wire = CODINGS[coding](b"one ") + CODINGS[coding](b"two")
    single = ContentDecoder(coding)
    assert ContentDecoder(coding).feed(wire) == b"one two"
    assert b"".join(single.feed(wire[i : i + 1]) for i in range(len(wire))) == b"one two"


def test_padding_after_gzip_is_ignored():
    decoder = ContentDecoder(b"gzip")
    assert decoder.feed(gzip.compress(b"plain", mtime=0) + b"\0\0\0\0") == b"plain"
    assert decoder.problem == ""


@pytest.mark.parametrize("coding", [b"gzip", b"deflate", b"Deflate", b"zstd"])
def test_a_body_that_ends_early_is_a_problem(coding):
    plain = bytes(range(256)) * 10
    decoder = ContentDecoder(coding)
    assert plain.startswith(decoder.feed(CODINGS[coding](plain)[:-3]))
    decoder.finish()
    assert decoder.problem == "encoded content ends early"


@given(
    st.sampled_from([b"gzip", b"deflate", b"zstd", b"gzip, zstd"]),
    st.lists(st.binary(max_size=50), max_size=5),
)
@settings(max_examples=200, deadline=None)
def test_garbage_never_raises(coding, pieces):
    """After the first problem nothing more is given."""
    decoder = ContentDecoder(coding)
    for piece in pieces:
        before = decoder.problem
        assert not (decoder.feed(piece) and before)
    decoder.finish()


def test_broken_bytes_are_a_problem():
    for coding in (b"gzip", b"zstd", b"deflate"):
        decoder = ContentDecoder(coding)
        decoder.feed(b"\xff\xfe not compressed at all")
        assert decoder.problem
        assert decoder.feed(b"more") == b""
        assert reload(decoder).problem == decoder.problem


@pytest.mark.parametrize("coding", [b"gzip", b"deflate", b"zstd", b"zstd, gzip"])
def test_a_compression_bomb_is_reported_and_bounded(coding):
    """What comes out stays within the slack and the ratio."""
    wire = CODINGS[coding if coding in CODINGS else b"zstd"](bytes(content.RATIO_SLACK * 3))
    wire = gzip.compress(wire, mtime=0) if coding == b"zstd, gzip" else wire
    decoder = ContentDecoder(coding)
    out = sum(len(decoder.feed(wire[i : i + 1000])) for i in range(0, len(wire), 1000))
    assert "encoded bytes become more than" in decoder.problem
    assert 0 < out <= content.RATIO_SLACK * 1.5


@pytest.mark.parametrize("coding", [b"snappy", b"gzip, unheard-of", b"\xff"])
def test_an_unknown_coding_leaves_the_bytes_unchanged(coding):
    decoder = reload(ContentDecoder(coding))
    assert decoder.problem.startswith("no decoder for content coding")
    assert decoder.feed(b"as sent") == b"as sent"


def test_a_late_restart_is_a_problem(monkeypatch):
    """Encoded bytes are kept up to a limit; beyond it the decoder continues, but cannot be
    restored."""
    monkeypatch.setattr(content, "MAX_REPLAYED", 50)
    wire = gzip.compress(bytes(range(256)), mtime=0)
    decoder = ContentDecoder(b"gzip")
    first = decoder.feed(wire[:60])
    restored = reload(decoder)
    assert restored.problem == "cannot resume encoded content"
    assert restored.feed(wire[60:]) == b""
    assert first + decoder.feed(wire[60:]) == bytes(range(256))


def test_messages_are_decompressed_up_to_the_limit():
    """A larger one keeps its beginning, its true size and its hash."""
    plain, problem = decompress_message(
        b"gzip", gzip.compress(b"m" * 100, mtime=0), limit=100, keep=10
    )
    assert (plain.data, plain.size, plain.truncated, problem) == (b"m" * 100, 100, False, "")
    plain, problem = decompress_message(
        b"gzip", gzip.compress(b"m" * 101, mtime=0), limit=100, keep=10
    )
    assert (plain.data, plain.size, plain.truncated, problem) == (b"m" * 10, 101, True, "")
    assert len(plain.sha256) == 32


class FakeBrotli:
    """Stands for the module `brotli`, which is not installed here: bytes doubled, output
    bounded."""

    class error(Exception):
        pass

    class Decompressor:
        def __init__(self):
            self.rest = b""

        def process(self, data, output_buffer_limit):
            if data[:1] == b"!":
                raise FakeBrotli.error("broken")
            self.rest += bytes(byte for byte in data for _ in range(2))
            out, self.rest = self.rest[:output_buffer_limit], self.rest[output_buffer_limit:]
            return out

        def can_accept_more_data(self):
            return not self.rest

        def is_finished(self):
            return not self.rest


def test_brotli_is_used_if_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "brotli", FakeBrotli)
    decoder = ContentDecoder(b"br")
    assert decoder.feed(b"ab") == b"aabb"
    decoder.feed(b"!")
    assert decoder.problem == "broken"
    empty = ContentDecoder(b"br")
    empty.finish()
    assert empty.problem == ""
    monkeypatch.setitem(sys.modules, "brotli", None)
    assert ContentDecoder(b"br").problem == "no decoder for content coding br"


def test_the_limit_in_a_problem_is_the_number_of_decoded_bytes():
    """Of all pieces up to the limit, not of the last piece."""
    wire = gzip.compress(bytes(content.RATIO_SLACK * 3), mtime=0)
    decoder, out = ContentDecoder(b"gzip"), 0
    for start in range(0, len(wire), 100):
        out += len(decoder.feed(wire[start : start + 100]))
        if decoder.problem:
            break
    assert decoder.problem.endswith(f" become more than {out}")


def test_deflate_without_header_is_recognised_by_the_method_in_the_first_byte():
    """The first two bytes are divisible by 31, as those of a header, but the method is not 8."""
    plain = b"twenty-one characters"
    wire = b"\x09\x15\x00\xea\xff" + plain
    assert int.from_bytes(wire[:2], "big") % 31 == 0
    assert ContentDecoder(b"deflate").feed(wire) == plain
