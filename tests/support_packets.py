"""Packet captures made of recorded bytes: segments as TCP would send them, which tests drop, repeat
and cut."""

from __future__ import annotations

import base64
import json
import random
import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import msgspec

from a2a_proxy.model.wire import Chunk, ChunkKind, ConnectionFacts, DialFacts, Direction

DATA = Path(__file__).parent / "data"
SERVER_PORT = 8000
_MSS = 1448
_US = 1000
TH_FIN, TH_SYN, TH_RST, TH_PUSH, TH_ACK = 1, 2, 4, 8, 16
UP, DOWN = Direction.TO_AGENT, Direction.TO_CLIENT


class Piece(msgspec.Struct, frozen=True):
    """Bytes of one direction, or its end if there are none."""

    connection: int
    direction: Direction
    at: int
    data: bytes


class Sent(msgspec.Struct, frozen=True):
    """A segment on the wire."""

    at: int
    connection: int
    direction: Direction
    sequence: int
    acknowledged: int
    flags: int
    payload: bytes = b""


def read_pieces(name: str) -> list[Piece]:
    """Return the bytes of a conversation of real peers (`tests/peers/capture.py`)."""
    lines = map(json.loads, (DATA / f"capture_{name}.jsonl").read_text().splitlines())
    return [
        Piece(
            each["conn"], Direction(each["dir"]), each["at"], base64.b64decode(each.get("b64", ""))
        )
        for each in lines
    ]


def make_segments(pieces: Iterable[Piece], first_sequence: int = 4_294_967_000) -> list[Sent]:
    """Return the segments of all connections, with handshakes and acknowledgements; sequence
    numbers soon wrap."""
    made: list[Sent] = []
    sent: dict[tuple[int, Direction], int] = {}
    for piece in pieces:
        one, at = piece.connection, piece.at
        if (one, UP) not in sent:
            sent[one, UP] = sent[one, DOWN] = first_sequence + 1
            made.append(Sent(at - 3 * _US, one, UP, first_sequence, 0, TH_SYN))
            made.append(
                Sent(at - 2 * _US, one, DOWN, first_sequence, first_sequence + 1, TH_SYN | TH_ACK)
            )
            made.append(Sent(at - 1 * _US, one, UP, first_sequence + 1, first_sequence + 1, TH_ACK))
        here, back = (one, piece.direction), (one, piece.direction.other)
        parts = [piece.data[begin : begin + _MSS] for begin in range(0, len(piece.data), _MSS)]
        for part in parts:
            made.append(
                Sent(at, one, piece.direction, sent[here], sent[back], TH_ACK | TH_PUSH, part)
            )
            sent[here] += len(part)
        if not parts:
            made.append(Sent(at, one, piece.direction, sent[here], sent[back], TH_ACK | TH_FIN))
            sent[here] += 1
        made.append(Sent(at, one, piece.direction.other, sent[back], sent[here], TH_ACK))
    return made


def reset(after: Sent) -> Sent:
    """Return the RST that the sender of a segment sends next."""
    sequence = after.sequence + len(after.payload)
    return msgspec.structs.replace(
        after, flags=TH_RST | TH_ACK, payload=b"", sequence=sequence, at=after.at + 1
    )


def encode_ip(sent: Sent, version: int = 4) -> bytes:
    """Return the IP packet of a segment."""
    ports = 40_000 + sent.connection, SERVER_PORT
    source, destination = ports if sent.direction is UP else ports[::-1]
    acknowledged = sent.acknowledged % 2**32 if sent.flags & TH_ACK else 0
    numbers = sent.sequence % 2**32, acknowledged
    tcp = struct.pack(">HHIIBBHHH", source, destination, *numbers, 5 << 4, sent.flags, 8192, 0, 0)
    return wrap_ip(6, tcp + sent.payload, version)


def wrap_ip(protocol: int, data: bytes, version: int = 4, fragment: int = 0) -> bytes:
    """Return an IP packet; `fragment` has the flags and the offset of IPv4."""
    if version == 4:
        host = bytes([127, 0, 0, 1])
        head = (0x45, 0, 20 + len(data), 7, fragment, 64, protocol, 0, host, host)
        return struct.pack(">BBHHHBBH4s4s", *head) + data
    host = bytes([*[0] * 15, 1])
    return struct.pack(">IHBB16s16s", 6 << 28, len(data), protocol, 64, host, host) + data


def encode_link(data: bytes, link_type: int) -> bytes:
    """Return an IP packet with the header of this link type."""
    kind = b"\x08\0" if data[0] >> 4 == 4 else b"\x86\xdd"
    if link_type == 1:
        return (bytes(12) + kind + data).ljust(60, b"\0")
    heads = {0: b"\2\0\0\0", 101: b"", 113: bytes(14) + kind, 276: kind + bytes(18)}
    return heads[link_type] + data


class CaptureFormat(msgspec.Struct, frozen=True):
    """How a capture is written."""

    name: str = "pcap"
    """`pcap` with times in us, `pcap-ns`, `pcap-big` (the other byte order), `pcapng`,
    `pcapng-ns`, `pcapng-big`."""
    link_type: int = 1
    version: int = 4
    snap_length: int = 65_536


def write_capture(
    path: Path,
    segments: Iterable[Sent],
    how: CaptureFormat = CaptureFormat(),  # noqa: B008
) -> Path:
    """Write a capture of these segments in their order."""
    packets = [
        (each.at, encode_link(encode_ip(each, how.version), how.link_type)) for each in segments
    ]
    path.write_bytes(encode_capture(packets, how))
    return path


def encode_capture(packets: Sequence[tuple[int, bytes]], how: CaptureFormat) -> bytes:
    """Return the bytes of the file. Each packet has its time in ns."""
    blocks = (
        _pcapng_blocks(packets, how)
        if how.name.startswith("pcapng")
        else _pcap_blocks(packets, how)
    )
    return b"".join(blocks)


def _pcap_blocks(packets: Sequence[tuple[int, bytes]], how: CaptureFormat) -> Iterator[bytes]:
    is_fine, order = how.name == "pcap-ns", ">" if how.name == "pcap-big" else "<"
    magic = 0xA1B23C4D if is_fine else 0xA1B2C3D4
    yield struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, how.snap_length, how.link_type)
    for at, data in packets:
        kept = data[: how.snap_length]
        part = at % 10**9 // (1 if is_fine else 1000)
        yield struct.pack(f"{order}IIII", at // 10**9, part, len(kept), len(data)) + kept


def encode_block(kind: int, content: bytes, order: str = "<") -> bytes:
    """Return a block of pcapng."""
    content += bytes(-len(content) % 4)
    size = struct.pack(f"{order}I", 12 + len(content))
    return struct.pack(f"{order}I", kind) + size + content + size


def encode_section(order: str = "<") -> bytes:
    """Return the head of a section."""
    return encode_block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def encode_interface(
    link_type: int, resolution: int = 6, order: str = "<", max_packet: int = 0
) -> bytes:
    """Return the block of an interface, whose times have this `if_tsresol`."""
    head = struct.pack(f"{order}HHI", link_type, 0, max_packet)
    option = struct.pack(f"{order}HHB3xHH", 9, 1, resolution, 0, 0)
    return encode_block(1, head + option, order)


def _pcapng_blocks(packets: Sequence[tuple[int, bytes]], how: CaptureFormat) -> Iterator[bytes]:
    """A section with two interfaces, of which the packets use the second."""
    is_fine, order = how.name == "pcapng-ns", ">" if how.name == "pcapng-big" else "<"
    yield encode_section(order)
    yield encode_interface(147, order=order)
    yield encode_interface(how.link_type, 9 if is_fine else 6, order)
    for at, data in packets:
        ticks, kept = at // (1 if is_fine else 1000), data[: how.snap_length]
        sizes = len(kept), len(data)
        head = struct.pack(f"{order}IIIII", 1, ticks >> 32, ticks & 0xFFFF_FFFF, *sizes)
        yield encode_block(6, head + kept, order)


def encode_exported(piece: Piece, data: bytes, dissector: bytes, version: int = 4) -> bytes:
    """Return the packet that tshark exports for decrypted data."""
    ports = 40_000 + piece.connection, SERVER_PORT
    source, destination = ports if piece.direction is UP else ports[::-1]
    host, first = (bytes([127, 0, 0, 1]), 20) if version == 4 else (bytes([*[0] * 15, 1]), 22)
    tags = {12: dissector, first: host, first + 1: host, 24: struct.pack(">I", 2)}
    tags |= {25: struct.pack(">I", source), 26: struct.pack(">I", destination), 0: b""}
    return (
        b"".join(struct.pack(">HH", tag, len(value)) + value for tag, value in tags.items()) + data
    )


def disturb(segments: Sequence[Sent], seed: int) -> list[Sent]:
    """Return the segments as a bad network delivers them: out of order, repeated, and repeated with
    other borders."""
    chance = random.Random(seed)
    found: list[Sent] = []
    for each in segments:
        found.append(each)
        if each.payload and chance.random() < 0.3:
            found.append(each)
        if len(each.payload) > 2 and chance.random() < 0.3:
            cut = chance.randrange(1, len(each.payload))
            tail = msgspec.structs.replace(
                each, sequence=each.sequence + cut, payload=each.payload[cut:]
            )
            found.insert(len(found) - 1, tail)
    for place in range(len(found) - 1):
        one, other = found[place], found[place + 1]
        is_movable = one.payload and other.payload and one.connection == other.connection
        if is_movable and one.direction is other.direction and chance.random() < 0.5:
            at = one.at
            found[place], found[place + 1] = (
                msgspec.structs.replace(each, at=at) for each in (other, one)
            )
    return found


class RecordedSource:
    """The same bytes as the relay would have recorded them."""

    label: ClassVar[str] = "test"
    lacks: ClassVar[tuple[str, ...]] = ()

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces
        self.started = pieces[0].at - 3 * _US
        self.upstreams = (f"127.0.0.1:{SERVER_PORT}",)

    def read_chunks(self) -> Iterator[Chunk]:
        """Yield the records."""
        numbers: dict[int, int] = {}
        ended: dict[int, int] = {}
        for piece in self._pieces:
            if piece.connection not in numbers:
                number = numbers[piece.connection] = len(numbers) + 1
                address = self.upstreams[0]
                facts = ConnectionFacts(f"127.0.0.1:{40_000 + piece.connection}", address, address)
                yield Chunk(number, ChunkKind.OPEN, UP, piece.at, msgspec.json.encode(facts))
                dialed = msgspec.json.encode(DialFacts(address, address))
                yield Chunk(number, ChunkKind.DIALED, UP, piece.at, dialed)
            number = numbers[piece.connection]
            kind = ChunkKind.DATA if piece.data else ChunkKind.EOF
            yield Chunk(number, kind, piece.direction, piece.at, piece.data)
            ended[number] = ended.get(number, 0) + (not piece.data)
            if ended[number] == 2:
                yield Chunk(number, ChunkKind.CLOSED, UP, piece.at)
