"""A packet capture as the records of a journal: its connections whose clients speak HTTP without
TLS.

The file is read twice: once to know what each connection carries, and once for the records. The
memory depends on the number of connections and on the bytes behind a hole, not on the size of the
file.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, ClassVar

import msgspec

from a2a_inspect.imports.exported_data import EXPORTED_LINK_TYPE, ExportedData
from a2a_inspect.imports.packet_file import DamagedFile, read_packets
from a2a_inspect.imports.tcp_connection import TcpConnection, TcpRecord
from a2a_inspect.imports.tcp_segment import Segment, SegmentReader, UnreadPacket
from a2a_proxy.model.errors import UserError
from a2a_proxy.model.wire import Chunk
from a2a_proxy.present import text

_REQUEST_LINE = re.compile(rb"[A-Z]{3,20} \S")
_TLS_RECORD = b"\x16\x03"
_MAX_NAMED = 16
"""Servers that the session lists."""
_CAPTURE_HINT = (
    "capture whole packets of the agent's port: tcpdump -i any -s 0 -w FILE.pcap 'tcp port 8000'"
)
_TLS_HINT = (
    "decrypt the capture with tshark and a key log (a2a-inspect help import), or record with: "
    "a2a-proxy run"
)


class PacketCapture:
    """A capture file, opened for import."""

    label: ClassVar[str] = "packet capture"

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        """Find the connections of `stream`, which is named `path` in messages. Raises UserError if
        it has no HTTP call."""
        self._stream = stream
        self._damage = ""
        self._unread: Counter[tuple[str, str]] = Counter()
        self._late: set[frozenset[str]] = set()
        """Addresses of connections that began before the capture."""
        self._cut_packets = self._unfinished = self._early = self._untimed = 0
        self._missing: list[int] = []
        """Bytes that each incomplete connection lacks."""
        connections = list(dict.fromkeys(connection for connection, _, _ in self._read_records()))
        speaks_tls = [each.first_bytes.startswith(_TLS_RECORD) for each in connections]
        self._speaks_http = [
            _REQUEST_LINE.match(each.first_bytes) is not None for each in connections
        ]
        self._encrypted = sum(speaks_tls)
        self._others = sum(
            bool(each.first_bytes) and not (tls or http)
            for each, tls, http in zip(connections, speaks_tls, self._speaks_http, strict=True)
        )
        calls = [each for each, http in zip(connections, self._speaks_http, strict=True) if http]
        if not calls:
            why = "; ".join(self._count_lacks()) or "no connection begins with a request"
            hint = _TLS_HINT if self._encrypted else _CAPTURE_HINT
            raise UserError(f"{path} has no HTTP call that can be read: {why}", hint)
        self.started = min(each.opened for each in calls)
        self.upstreams = tuple(dict.fromkeys(each.server for each in calls))[:_MAX_NAMED]

    @property
    def lacks(self) -> tuple[str, ...]:
        """What the recording lacks because the file lacks it, in words."""
        hint = (f"to read what is encrypted: {_TLS_HINT}",) if self._encrypted else ()
        return (*self._count_lacks(), *hint)

    def _count_lacks(self) -> list[str]:
        counts = [
            (self._encrypted, "connection", "encrypted: TLS in captures is not read"),
            (self._others, "connection", "not HTTP"),
            (
                len(self._late),
                "connection",
                "from before the capture, without a request after its beginning",
            ),
            (
                len(self._missing),
                "connection",
                f"with {text.format_size(sum(self._missing))} missing: its calls end there",
            ),
            (self._unfinished, "connection", "whose end is not in the capture"),
            (self._cut_packets, "packet", "not captured whole (tcpdump -s 0)"),
            (self._early, "packet", "captured before what it answers, put in order"),
            (self._untimed, "packet", "without a time: it has that of the packet before it"),
        ]
        counts += [(count, noun, words) for (noun, words), count in sorted(self._unread.items())]
        found = [
            f"{text.format_count(count, noun)} {words}".rstrip()
            for count, noun, words in counts
            if count
        ]
        return [*found, f"the rest of the file: {self._damage}"] if self._damage else found

    def read_chunks(self) -> Iterator[Chunk]:
        """Yield the records in order of time."""
        numbers: dict[TcpConnection, int] = {}
        """Connection -> its number, 0 if it is left out."""
        last = count = 0
        with self._stream:
            for connection, at, record in self._read_records():
                if connection not in numbers:
                    speaks_http = (
                        len(numbers) < len(self._speaks_http) and self._speaks_http[len(numbers)]
                    )
                    count += speaks_http
                    numbers[connection] = count if speaks_http else 0
                last = max(last, at)
                if number := numbers[connection]:
                    yield Chunk(number, record.kind, record.direction, last, record.data)

    def _read_records(self) -> Iterator[tuple[TcpConnection, int, TcpRecord]]:
        """Yield all records, each with its connection and time."""
        self._damage = ""
        self._cut_packets = self._unfinished = self._early = self._untimed = 0
        self._unread.clear()
        self._late.clear()
        self._missing.clear()
        connections: dict[frozenset[str], TcpConnection] = {}
        at = 0
        for segment in self._read_segments():
            at = segment.at
            key = frozenset((segment.source, segment.destination))
            connection = connections.get(key)
            if connection is not None and connection.is_reused(segment):
                yield from self._finish_connection(connection, at)
                connection = None
            if connection is None:
                connection = _begin_connection(segment)
                if connection is None:
                    if segment.payload:
                        self._late.add(key)
                    continue
                self._late.discard(key)
                connections[key] = connection
            was_closed, early = connection.is_closed, connection.early
            for record in connection.feed(segment):
                yield connection, at, record
            self._early += connection.early - early
            if connection.is_closed and not was_closed and connection.missing:
                self._missing.append(connection.missing)
        for connection in connections.values():
            yield from self._finish_connection(connection, at)

    def _finish_connection(
        self, connection: TcpConnection, at: int
    ) -> Iterator[tuple[TcpConnection, int, TcpRecord]]:
        if connection.is_closed:
            return
        for record in connection.finish():
            yield connection, at, record
        if connection.missing:
            self._missing.append(connection.missing)
        else:
            self._unfinished += 1

    def _read_segments(self) -> Iterator[Segment]:
        reader, exported = SegmentReader(), ExportedData()
        at = 0
        self._stream.seek(0)
        try:
            for packet in read_packets(self._stream):
                if packet.at < 0:
                    self._untimed += 1
                    packet = msgspec.structs.replace(packet, at=at)
                at = packet.at
                try:
                    is_exported = packet.link_type == EXPORTED_LINK_TYPE
                    segment = (exported if is_exported else reader).read_segment(packet)
                except UnreadPacket as why:
                    self._unread[why.noun, why.words] += 1
                    continue
                if segment is not None:
                    self._cut_packets += bool(segment.missing)
                    yield segment
        except DamagedFile as wrong:
            self._damage = str(wrong)
        if count := reader.incomplete_fragments:
            self._unread["IP fragment", "whose packet is not complete"] = count


def _begin_connection(segment: Segment) -> TcpConnection | None:
    """Return the connection that a segment begins, or in which it is the first request; None if it
    is neither."""
    if segment.is_syn and segment.acknowledged >= 0:
        return TcpConnection(segment.destination, segment.source, segment.at)
    if segment.is_syn or _REQUEST_LINE.match(segment.payload):
        return TcpConnection(segment.source, segment.destination, segment.at)
    return None
