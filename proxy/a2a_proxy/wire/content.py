"""Decodes content codings (gzip, deflate, zstd, br) of the copy of a body as it arrives, with
bounded output.

Used for HTTP bodies (RFC 9110 8.4) and single gRPC messages. The relayed bytes are never changed.
"""

import importlib
import zlib
from collections.abc import Callable
from typing import Any, Protocol

from a2a_proxy.model.saved_state import State
from a2a_proxy.wire.body import MAX_BODY_SIZE, TRUNCATED_SIZE, BodyCollector

MAX_RATIO = 200
"""Maximum ratio of decoded to encoded bytes, beyond the slack."""
RATIO_SLACK = 16 << 20
"""Decoded bytes allowed for any body, whatever the ratio."""
MAX_FEED_OUTPUT = 64 << 20
"""Maximum number of decoded bytes of one piece."""
MAX_REPLAYED = 4 << 20
"""Encoded bytes kept to restore a saved decoder to its position."""

_SLICE_SIZE = 64 << 10
_GZIP_WBITS = 31
_RAW_DEFLATE_WBITS = -15
_MAX_ZSTD_WINDOW_LOG = 27


class ContentError(ValueError):
    """The bytes do not match the content coding, or decode to too many bytes."""


class _CodingDecoder(Protocol):
    """One coding.

    `feed` returns at most `room + 1` bytes; one byte more than `room` means that the limit is
    exceeded.
    """

    is_within: bool
    """Whether the encoded stream has begun and not ended."""

    def feed(self, data: bytes, room: int) -> bytes: ...


class _GzipDecoder:
    """RFC 1952: a sequence of members; bytes after the last member are ignored."""

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
    """RFC 9110 8.4.1.2 requires the zlib format; some senders omit its header, so the first two
    bytes decide."""

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
            self._stream = (
                zlib.decompressobj() if wrapped else zlib.decompressobj(_RAW_DEFLATE_WBITS)
            )
        if self._stream.eof:
            return b""
        out = _decompress_at_most(self._stream, data, room + 1)
        self.is_within = not self._stream.eof
        return out


class _ZstdDecoder:
    """RFC 8878: a sequence of frames."""

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
    """RFC 7932, if a brotli module that can bound its output is installed."""

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


class ContentDecoder(State, dict=True):
    """Decodes the content codings of one body. Never raises: if decoding stops, `problem` says why.

    An unknown coding leaves the bytes unchanged and sets `problem` from the start. After any later
    problem (corrupt bytes, a decompression bomb, a restart after too many bytes) no more bytes are
    returned. A decompressor cannot be saved: the encoded bytes are, up to `MAX_REPLAYED`.
    """

    encodings: bytes = b""
    """The value of the field (`gzip`, `deflate, gzip`), in the order in which the sender applied
    the codings."""
    problem: str = ""
    """Why the body cannot be decoded; empty while there is no problem."""
    broken: bool = False
    """Whether the sender is at fault: the bytes do not match the field. False if the proxy lacks a
    decoder."""
    _fed: bytearray = bytearray()
    _is_replayable: bool = True

    def __post_init__(self) -> None:
        names = [name.strip().lower() for name in self.encodings.split(b",")]
        self._is_passed_through = False
        try:
            self._decoders: list[_CodingDecoder] = [
                _DECODER_OF_CODING[name]()
                for name in reversed(names)
                if name not in (b"", b"identity")
            ]
        except (KeyError, ImportError):
            self.problem = f"no decoder for content coding {self.encodings.decode('latin-1')}"
            self._decoders, self._is_passed_through = [], True
        self._counts = [[0, 0] for _ in self._decoders]
        if not self._is_replayable:
            self.problem = self.problem or "cannot resume encoded content"
        elif self._fed:
            problem, self.problem = self.problem, ""
            self._decode_bounded(bytes(self._fed))
            self.problem = self.problem or problem

    def feed(self, data: bytes) -> bytes:
        """Decode the next bytes of the body and return the output available so far."""
        if self._is_passed_through or (not self._decoders and not self.problem):
            return data
        if self.problem:
            return b""
        self._keep_for_replay(data)
        return self._decode_bounded(data)

    def finish(self) -> None:
        """End the body; `problem` is set if its coding is incomplete."""
        if not self.problem and any(stage.is_within for stage in self._decoders):
            self.problem, self.broken = "encoded content ends early", True

    def _keep_for_replay(self, data: bytes) -> None:
        if self._is_replayable:
            self._fed += data
            if len(self._fed) > MAX_REPLAYED:
                self._is_replayable = False
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
        """Pass one slice through all codings; output beyond the limit is dropped."""
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
    """Decode one compressed message. Return its content and the problem in words (empty if there is
    none).

    Above `limit` bytes the first `keep` bytes, the full size and the hash are kept.
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
    """Import the standard library's module (Python 3.14 and later) or its backport."""
    try:
        return importlib.import_module("compression.zstd")
    except ImportError:
        return importlib.import_module("backports.zstd")


def is_utf8(data: bytes) -> bool:
    """Return whether the bytes are UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
