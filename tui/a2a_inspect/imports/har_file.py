"""A HAR file as the records of a journal.

The file is read twice, entry by entry: once for the times of all entries, and once, in order of
time, for their records. The memory depends on the number of entries and on the largest ones, not on
the size of the file.
"""

import heapq
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, ClassVar

import msgspec

from a2a_inspect.imports.har_call import EntryError, HarCall
from a2a_proxy.model.errors import UserError
from a2a_proxy.model.wire import Chunk

_TOKEN = re.compile(rb'[{}\[\]]|"[^"\\]*(?:\\.[^"\\]*)*"|"', re.DOTALL)
"""A bracket, a string, or the beginning of a string that ends beyond the bytes read so far."""
_READ_BYTES = 1 << 20
_MAX_ENTRY_BYTES = 512 << 20
_CREATOR = re.compile(rb'"creator"\s*:\s*\{[^{}]*?"name"\s*:\s*"([^"\\]*)"')
_MAX_NAMED = 16
"""Servers that the session lists."""
_FILE_HINT = (
    "export it again: in a browser, `Save all as HAR with content`; with mitmdump, --set "
    "hardump=FILE"
)


class _EntryPlace(msgspec.Struct, frozen=True, order=True):
    """Where an entry is, in order of time."""

    started: int
    offset: int
    size: int


class HarFile:
    """A HAR file, opened for import."""

    label: ClassVar[str] = "HAR file"

    def __init__(self, path: Path, stream: BinaryIO, *, is_recoded: bool = False) -> None:
        """Find the entries of `stream`, which is named `path` in messages, and is a copy in UTF-8
        if it `is_recoded`. Raises UserError if it has no call."""
        self._path = path
        self._stream = stream
        self._of_text = " of its text in UTF-8" if is_recoded else ""
        """What offsets are counted in, if not in the file."""
        self._creator = ""
        self._lacks: set[str] = set()
        self._left_out = 0
        self._invalid = 0
        self._first_invalid = ""
        """Place of the first entry that is not valid, and why."""
        self._truncation = ""
        """Where the file ends, in words, if it ends too early."""
        hosts: dict[str, None] = {}
        places: list[_EntryPlace] = []
        for offset, size in self._find_entries(self._stream):
            try:
                call = self._read_call(offset, size)
            except EntryError as wrong:
                self._invalid += 1
                self._first_invalid = (
                    self._first_invalid or f"at byte {offset}{self._of_text}: {wrong}"
                )
                continue
            if call.is_call:
                hosts[call.upstream] = None
                places.append(_EntryPlace(call.started, offset, size))
            else:
                self._left_out += 1
        if not places:
            why = ""
            if self._truncation:
                why = f": {self._truncation}"
            elif self._invalid:
                why = f": an entry is not valid, {self._first_invalid}"
            raise UserError(f"{path} has no HTTP call{why}", _FILE_HINT)
        self._places = sorted(places)
        self.started = self._places[0].started
        self.upstreams = tuple(hosts)[:_MAX_NAMED]

    @property
    def lacks(self) -> tuple[str, ...]:
        """What the recording lacks because the file lacks it, in words."""
        left_out = _count_entries(self._left_out, "no HTTP call", "no HTTP calls")
        invalid = _count_entries(self._invalid, "not valid", "not valid")
        invalid = [f"{each}; the first {self._first_invalid}" for each in invalid]
        always = ["connections: each call has its own", "bytes of framing", "content codings"]
        cut = [f"its end: {self._truncation}"] if self._truncation else []
        return (*sorted(self._lacks), *left_out, *invalid, *cut, *always)

    def read_chunks(self) -> Iterator[Chunk]:
        """Yield the records in order of time. Raises UserError."""
        open_calls: list[tuple[int, int, Chunk, Iterator[Chunk]]] = []
        at = 0
        with self._stream:
            for number, place in enumerate(self._places, 1):
                while open_calls and open_calls[0][0] < place.started:
                    chunk = self._pop_chunk(open_calls)
                    at = max(at, chunk.at)
                    yield msgspec.structs.replace(chunk, at=at)
                call = self._read_call(place.offset, place.size)
                chunks = call.read_chunks(number)
                first = next(chunks)
                heapq.heappush(
                    open_calls, (first.at, number, first, _collect_calls(chunks, call, self._lacks))
                )
            while open_calls:
                chunk = self._pop_chunk(open_calls)
                at = max(at, chunk.at)
                yield msgspec.structs.replace(chunk, at=at)

    @staticmethod
    def _pop_chunk(open_calls: list[tuple[int, int, Chunk, Iterator[Chunk]]]) -> Chunk:
        _, number, chunk, rest = open_calls[0]
        following = next(rest, None)
        if following is None:
            heapq.heappop(open_calls)
        else:
            heapq.heapreplace(open_calls, (following.at, number, following, rest))
        return chunk

    def _read_call(self, offset: int, size: int) -> HarCall:
        self._stream.seek(offset)
        data = self._stream.read(size)
        try:
            return HarCall(json.loads(data), self._creator)
        except RecursionError as wrong:
            raise EntryError("it is nested too deeply") from wrong
        except ValueError as wrong:
            raise EntryError(f"it is not JSON: {wrong}") from wrong

    def _find_entries(self, stream: BinaryIO) -> Iterator[tuple[int, int]]:
        """Yield offset and size of each entry. The position of `stream` may change between two
        entries."""
        buffer, base, position = b"", 0, 0
        depth, name, list_depth, begin = 0, b"", 0, 0
        found = False
        while True:
            # An unfinished entry or string is read again with twice as many bytes.
            stream.seek(base + len(buffer))
            more = stream.read(max(_READ_BYTES, len(buffer)))
            if not more:
                break
            buffer += more
            self._check_buffer(buffer, base)
            while token := _TOKEN.search(buffer, position):
                text = token[0]
                if text == b'"':
                    position = token.start()
                    break
                position = token.end()
                if text in b"{[":
                    depth += 1
                    if text == b"[" and depth == 3 and name == b'"entries"':
                        list_depth, found = depth, True
                    elif text == b"{" and list_depth and depth == list_depth + 1:
                        begin = token.start()
                elif text in b"}]":
                    if list_depth and text == b"}" and depth == list_depth + 1:
                        yield base + begin, position - begin
                        begin = position
                    elif depth == list_depth:
                        list_depth = 0
                    depth -= 1
                elif depth == 2:
                    name = text
            else:
                position = len(buffer)
            keep = min(begin, position) if list_depth and depth > list_depth else position
            buffer, base, position, begin = (
                buffer[keep:],
                base + keep,
                position - keep,
                max(begin - keep, 0),
            )
        if not found:
            reason = "is not a HAR file: it has no `log.entries`" if base or buffer else "is empty"
            raise UserError(f"{self._path} {reason}", _FILE_HINT)
        if depth:
            self._truncation = f"it is truncated after {base + len(buffer)} bytes{self._of_text}"

    def _check_buffer(self, data: bytes, offset: int) -> None:
        """Check the bytes read at `offset` of the file. Raises UserError."""
        if len(data) > _MAX_ENTRY_BYTES:
            raise UserError(
                f"{self._path}: an entry is larger than {_MAX_ENTRY_BYTES >> 20} MiB", _FILE_HINT
            )
        if offset:
            return
        if not data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
            raise UserError(
                f"{self._path} is neither a HAR file nor a packet capture: it is no JSON object",
                _FILE_HINT,
            )
        if creator := _CREATOR.search(data):
            self._creator = creator[1].decode("utf-8", "replace")


def _count_entries(count: int, one: str, more: str) -> list[str]:
    """Return the number of entries that are left out, in words, if there are any."""
    if count == 1:
        return [f"1 entry that is {one}"]
    return [f"{count} entries that are {more}"] if count else []


def _collect_calls(chunks: Iterator[Chunk], call: HarCall, lacks: set[str]) -> Iterator[Chunk]:
    """Yield the chunks, then add what the call lacks."""
    yield from chunks
    lacks |= call.lacks
