"""Content codings (gzip, deflate, zstd, br) taken off the copy of a body, as it arrives, bounded.

Serves HTTP bodies (RFC 9110 8.4) and single gRPC messages. The peers' bytes are never touched.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from typing import Any, Protocol

from a2a_proxy.wire.body import MAX_BODY_SIZE, TRUNCATED_SIZE, BodyCollector

MAX_RATIO = 200
"""How many bytes each byte of a body may become, after the slack."""
RATIO_SLACK = 16 << 20
"""Bytes that any body may become, whatever the ratio."""
MAX_FEED_OUTPUT = 64 << 20
"""Bytes that one piece may become."""
MAX_REPLAYED = 4 << 20
"""Encoded bytes kept to bring a saved decoder back to where it was."""

_SLICE_SIZE = 64 << 10
_GZIP_WBITS = 31
_RAW_DEFLATE_WBITS = -15
_MAX_ZSTD_WINDOW_LOG = 27


class ContentError(ValueError):
    """Bytes that are not what the content coding says, or become too many."""


class _CodingDecoder(Protocol):
    """One coding. `feed` gives at most `room + 1` bytes; one more than the room means there were too many."""

    is_within: bool
    """In the middle of the encoded stream."""

    def feed(self, data: bytes, room: int) -> bytes: ...


class _GzipDecoder:
    """RFC 1952: one member after the other; what follows them and is no member is ignored."""

    def __init__(self) -> None:
        self.is_within = False
        self._started = False
        self._member = zlib.decompressobj(_GZIP_WBITS)

    def feed(self, data: bytes, room: int) -> bytes:
        out = b""
        while data and len(out) <= room:
            if not self.is_within:
                if self._started and data[:1] != b"\x1f":
                    break
                self._member = zlib.decompressobj(_GZIP_WBITS)
                self._started = self.is_within = True
            out += _decompress_at_most(self._member, data, room + 1 - len(out))
            self.is_within = not self._member.eof
            data = self._member.unused_data
        return out


class _DeflateDecoder:
    """RFC 9110 8.4.1.2 asks for the zlib format; some senders leave its header out, so the first two bytes decide."""

    def __init__(self) -> None:
        self.is_within = False
        self._head = b""
        self._stream: Any = None

    def feed(self, data: bytes, room: int) -> bytes:
        if self._stream is None:
            data = self._head + data
            self.is_within = bool(data)
            if len(data) < 2:
                self._head = data
                return b""
            wrapped = data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
            self._stream = zlib.decompressobj() if wrapped else zlib.decompressobj(_RAW_DEFLATE_WBITS)
        if self._stream.eof:
            return b""
        out = _decompress_at_most(self._stream, data, room + 1)
        self.is_within = not self._stream.eof
        return out


class _ZstdDecoder:
    """RFC 8878: one frame after the other."""

    def __init__(self) -> None:
        self.is_within = False
        self._zstd = _import_zstd()
        self._frame: Any = None

    def feed(self, data: bytes, room: int) -> bytes:
        out = b""
        while data and len(out) <= room:
            if not self.is_within:
                options = {self._zstd.DecompressionParameter.window_log_max: _MAX_ZSTD_WINDOW_LOG}
                self._frame = self._zstd.ZstdDecompressor(options=options)
                self.is_within = True
            try:
                out += self._frame.decompress(data, room + 1 - len(out))
            except self._zstd.ZstdError as error:
                raise ContentError(str(error)) from None
            self.is_within = not self._frame.eof
            data = self._frame.unused_data if self._frame.eof else b""
        return out


class _BrotliDecoder:
    """RFC 7932, where a module for it is installed that can bound its output."""

    def __init__(self) -> None:
        self.is_within = False
        self._brotli = importlib.import_module("brotli")
        self._stream = self._brotli.Decompressor()
        if not hasattr(self._stream, "can_accept_more_data"):
            raise ImportError("brotli without bounded output")

    def feed(self, data: bytes, room: int) -> bytes:
        try:
            out = bytes(self._stream.process(data, output_buffer_limit=room + 1))
            while len(out) <= room and not self._stream.can_accept_more_data():
                out += self._stream.process(b"", output_buffer_limit=room + 1 - len(out))
        except self._brotli.error as error:
            raise ContentError(str(error)) from None
        self.is_within = not self._stream.is_finished()
        return out


_DECODER_OF_CODING: dict[bytes, Callable[[], _CodingDecoder]] = {
    b"gzip": _GzipDecoder,
    b"x-gzip": _GzipDecoder,
    b"deflate": _DeflateDecoder,
    b"zstd": _ZstdDecoder,
    b"br": _BrotliDecoder,
}


class ContentDecoder:
    """Takes the content codings off one body. Never raises: where it cannot go on, `problem` says why.

    A coding that is unknown here leaves the bytes as they are, with `problem` set from the start. After a problem that
    comes later (broken bytes, a decompression bomb, a restart that came too late) nothing more is given.
    """

    def __init__(self, encodings: bytes = b"") -> None:
        self.encodings = encodings
        """The value of the field (`gzip`, `deflate, gzip`), in the order in which the sender applied them."""
        self.problem = ""
        """Why the body cannot be read; empty while all is well."""
        self.broken = False
        """The bytes are not what the field says: the sender's fault, not a want of ours."""
        names = [name.strip().lower() for name in encodings.split(b",")]
        self._decoders: list[_CodingDecoder] = []
        self._counts: list[list[int]] = []
        self._fed = bytearray()
        self._replayable = True
        self._is_passed_through = False
        try:
            self._decoders = [_DECODER_OF_CODING[name]() for name in reversed(names) if name not in (b"", b"identity")]
        except (KeyError, ImportError):
            self.problem = f"no decoder for content coding {encodings.decode('latin-1')}"
            self._is_passed_through = True
        self._counts = [[0, 0] for _ in self._decoders]

    def feed(self, data: bytes) -> bytes:
        """The next bytes of the body, decoded as far as they go."""
        if self._is_passed_through or (not self._decoders and not self.problem):
            return data
        if self.problem:
            return b""
        self._keep_for_replay(data)
        return self._decode_bounded(data)

    def finish(self) -> None:
        """The body is over; `problem` is set where its coding is not."""
        if not self.problem and any(stage.is_within for stage in self._decoders):
            self.problem, self.broken = "encoded content ends early", True

    def save(self) -> dict[str, object]:
        """Plain values: a decompressor cannot be saved, so these hold the encoded bytes, up to `MAX_REPLAYED`."""
        return {
            "encodings": self.encodings,
            "problem": self.problem,
            "broken": self.broken,
            "seen": bytes(self._fed) if self._replayable else None,
        }

    @classmethod
    def restore(cls, state: dict[str, Any]) -> ContentDecoder:
        """The decoder that `save` described; with a `problem` where too many bytes had passed for that."""
        decoder = cls(state["encodings"])
        if decoder._is_passed_through:
            return decoder
        if state["seen"] is None:
            decoder._replayable = False
            decoder.problem = state["problem"] or "cannot resume encoded content"
            decoder.broken = state["broken"]
        else:
            decoder.feed(state["seen"])
            decoder.problem = decoder.problem or state["problem"]
        return decoder

    def _keep_for_replay(self, data: bytes) -> None:
        if self._replayable:
            self._fed += data
            if len(self._fed) > MAX_REPLAYED:
                self._replayable = False
                self._fed = bytearray()

    def _decode_bounded(self, data: bytes) -> bytes:
        out = bytearray()
        try:
            for start in range(0, len(data), _SLICE_SIZE):
                out += self._decode_slice(data[start : start + _SLICE_SIZE])
                if self.problem:
                    break
        except ContentError as error:
            self.problem, self.broken = str(error), True
        return bytes(out)

    def _decode_slice(self, data: bytes) -> bytes:
        """One slice through all stages; of what is too much, only what there is room for."""
        for stage, count in zip(self._decoders, self._counts, strict=True):
            count[0] += len(data)
            room = min(RATIO_SLACK + MAX_RATIO * count[0] - count[1], MAX_FEED_OUTPUT)
            data = stage.feed(data, room)
            if len(data) > room:
                self.problem = f"{count[0]} encoded bytes become more than {count[1] + room}"
                data = data[:room]
            count[1] += len(data)
        return data


def decompress_message(
    encoding: bytes, data: bytes, limit: int = MAX_BODY_SIZE, keep: int = TRUNCATED_SIZE
) -> tuple[BodyCollector, str]:
    """Decode one compressed message: what came out, and the problem in words (empty where there is none).

    Over `limit` bytes the first `keep` stay, with the true size and the hash.
    """
    decoder = ContentDecoder(encoding)
    plain = BodyCollector(limit, keep)
    for start in range(0, len(data), _SLICE_SIZE):
        plain.add(decoder.feed(data[start : start + _SLICE_SIZE]), 0, 0, 0)
    decoder.finish()
    return plain, decoder.problem


def _decompress_at_most(stream: Any, data: bytes, limit: int) -> bytes:
    try:
        return bytes(stream.decompress(data, limit))
    except zlib.error as error:
        raise ContentError(str(error)) from None


def _import_zstd() -> Any:
    """The standard library's module, or its backport before Python 3.14."""
    try:
        return importlib.import_module("compression.zstd")
    except ImportError:
        return importlib.import_module("backports.zstd")
