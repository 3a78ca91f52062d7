"""The TCP segment in a captured packet, below any headers of links and tunnels."""

import socket
import struct
from collections.abc import Callable
from functools import lru_cache

import msgspec

from a2a_inspect.imports.packet_file import Packet

_MAX_HEADERS = 16
"""Headers of links, tunnels and IP in one packet."""
_MAX_FRAGMENTED, _MAX_FRAGMENTS = 64, 256
"""Incomplete IP packets that are kept, and fragments of one."""
_MAX_PACKET = 65_535
"""Bytes of an IP packet that can be fragmented; of fragments that overlap, one more is kept behind
them."""
_FRAGMENT_TIME = 30_000_000_000
"""Time in ns after which another IP packet may have the same identification."""
_FIN, _SYN, _RST, _ACK = 1, 2, 4, 16
_TCP, _UDP, _FRAGMENT, _AUTHENTICATION, _ENCRYPTED = 6, 17, 44, 51, 50
_EXTENSIONS = frozenset({0, 43, _FRAGMENT, _AUTHENTICATION, 60, 135, 139, 140})
"""Headers between that of IPv6 and its payload."""
_MAX_LENGTH_FIELD = 1500
"""Above it the field of an Ethernet header is a type, else the length of an LLC packet."""
_SNAP = b"\xaa\xaa\x03"
_NFLOG_PAYLOAD = 9
_MPLS_BOTTOM = 1 << 8
_GRE_CHECKSUM, _GRE_KEY, _GRE_SEQUENCE, _GRE_ACKNOWLEDGED = 0x8000, 0x2000, 0x1000, 0x80
_ERSPAN = 0x88BE


class Segment(msgspec.Struct, frozen=True):
    """One TCP segment."""

    at: int
    """Time in ns since the epoch."""
    source: str
    """Address of the sender, `host:port`."""
    destination: str
    sequence: int
    """Sequence number of its first byte; of SYN, which counts as one byte."""
    acknowledged: int
    """Sequence number of the byte that the sender expects next; -1 if it acknowledges none."""
    is_syn: bool
    is_fin: bool
    is_reset: bool
    payload: bytes
    missing: int
    """Bytes of the payload that were not captured, at its end."""


class UnreadPacket(Exception):
    """A packet that may belong to a TCP connection, but is not read: `noun` names such a packet,
    `words` follow it."""

    def __init__(self, noun: str, words: str = "") -> None:
        super().__init__(noun, words)
        self.noun = noun
        self.words = words


class _Fragmented(msgspec.Struct):
    """The fragments of one IP packet."""

    since: int
    pieces: dict[int, bytes] = {}
    """Offset -> bytes."""
    end: int = -1
    """Bytes of the packet; -1 before its last fragment."""

    def count_bytes(self) -> int:
        """Return the bytes of all pieces."""
        return sum(map(len, self.pieces.values()))

    def join_pieces(self) -> bytes | None:
        """Return the packet, or None if it is not complete."""
        if not 0 <= self.end <= self.count_bytes():
            return None
        joined = bytearray()
        for first, piece in sorted(self.pieces.items()):
            if first > len(joined):
                return None
            joined += piece[len(joined) - first :]
        return bytes(joined[: self.end])


class SegmentReader:
    """Reads the packets of one file."""

    def __init__(self) -> None:
        self.incomplete_fragments = 0
        """IP fragments whose packet is not complete."""
        self._fragmented: dict[tuple[bytes, bytes, int, int], _Fragmented] = {}
        self._packet = Packet(0, 0, b"", 0)
        self._hosts = b"", b""
        """Addresses of the innermost IP header."""
        self._missing = 0
        """Bytes that the packet lacks at its end, as that header says."""

    def read_segment(self, packet: Packet) -> Segment | None:
        """Return the TCP segment of a packet, or None if it has another protocol or is a fragment.

        Raises:
            UnreadPacket: the packet is encrypted, is cut within its headers, or has an unknown link
            type.
        """
        self._packet = packet
        layer = _LINK_LAYERS.get(packet.link_type)
        if layer is None:
            raise UnreadPacket("packet", f"of the link type {packet.link_type}")
        data = packet.data
        try:
            for _ in range(_MAX_HEADERS):
                found = layer(self, data)
                if found is None or isinstance(found, Segment):
                    return found
                layer, data = found
        except (struct.error, IndexError) as wrong:
            raise UnreadPacket("packet", "with headers that are not complete") from wrong
        raise UnreadPacket("packet", f"with more than {_MAX_HEADERS} headers")

    def read_ip(self, data: bytes) -> "_Found":
        """Return the payload of IPv4 or IPv6."""
        if data[0] >> 4 == 4:
            head, total, number, fragment, protocol, *hosts = struct.unpack_from(
                ">BxHHHxB2x4s4s", data
            )
            size = (head & 15) * 4
            offset, has_more = (fragment & 0x1FFF) * 8, bool(fragment & 0x2000)
        elif data[0] >> 4 == 6:
            length, protocol, *hosts = struct.unpack_from(">4xHBx16s16s", data)
            size, total = 40, length and 40 + length
            number, offset, has_more = 0, 0, False
        else:
            return None
        self._hosts = hosts[0], hosts[1]
        # The length is 0 where the network card divides large segments.
        self._missing = max(total - len(data), 0) if total else self._packet.missing
        data = data[size : total or None]
        whole = self._join_fragment(protocol, number, offset, data, has_more=has_more)
        return None if whole is None else self._read_extensions(protocol, whole)

    def _read_extensions(self, protocol: int, data: bytes) -> "_Found":
        at = 0
        while protocol in _EXTENSIONS:
            kind, protocol, size = protocol, data[at], data[at + 1]
            if kind != _FRAGMENT:
                at += (size + 2) * 4 if kind == _AUTHENTICATION else (size + 1) * 8
                continue
            flags, number = struct.unpack_from(">HI", data, at + 2)
            whole = self._join_fragment(
                protocol, number, flags & 0xFFF8, data[at + 8 :], has_more=bool(flags & 1)
            )
            if whole is None:
                return None
            data, at = whole, 0
        if protocol == _ENCRYPTED:
            raise UnreadPacket("packet", "encrypted by IPsec")
        layer = _IP_LAYERS.get(protocol)
        return layer and (layer, data[at:])

    def _join_fragment(
        self, protocol: int, number: int, offset: int, data: bytes, *, has_more: bool
    ) -> bytes | None:
        """Return the payload of the IP packet that this one is or completes, or None."""
        if not (offset or has_more):
            return data
        if protocol not in _IP_LAYERS and protocol not in _EXTENSIONS:
            return None
        if self._missing:
            raise UnreadPacket("IP fragment", "not captured whole")
        if offset + len(data) > _MAX_PACKET:
            raise UnreadPacket("IP fragment", "beyond the end of the largest IP packet")
        key = (*self._hosts, protocol, number)
        found = self._fragmented.get(key)
        if found is None or not 0 <= self._packet.at - found.since <= _FRAGMENT_TIME:
            self._fragmented.pop(key, None)
            found = self._fragmented[key] = _Fragmented(self._packet.at)
            if len(self._fragmented) > _MAX_FRAGMENTED:
                del self._fragmented[next(iter(self._fragmented))]
        if offset not in found.pieces:
            self.incomplete_fragments += 1
        if len(found.pieces) < _MAX_FRAGMENTS and found.count_bytes() <= _MAX_PACKET:
            found.pieces[offset] = data
        if not has_more:
            found.end = offset + len(data)
        joined = found.join_pieces()
        if joined is not None:
            self.incomplete_fragments -= len(found.pieces)
            del self._fragmented[key]
        return joined

    def read_tcp(self, data: bytes) -> Segment:
        """Return the segment."""
        ports_and_numbers = struct.unpack_from(">HHIIBB", data)
        source, destination, sequence, acknowledged, offset, flags = ports_and_numbers
        size = (offset >> 4) * 4
        return Segment(
            at=self._packet.at,
            source=f"{format_host(self._hosts[0])}:{source}",
            destination=f"{format_host(self._hosts[1])}:{destination}",
            sequence=sequence,
            acknowledged=acknowledged if flags & _ACK else -1,
            is_syn=bool(flags & _SYN),
            is_fin=bool(flags & _FIN),
            is_reset=bool(flags & _RST),
            payload=data[size:],
            missing=max(self._missing - max(size - len(data), 0), 0),
        )


_Layer = Callable[[SegmentReader, bytes], "_Found"]
_Found = tuple[_Layer, bytes] | Segment | None
"""What a header has behind it: the next header and its bytes, the segment, or nothing that is
read."""


def _after(size: int, layer: _Layer) -> _Layer:
    """Return a layer whose header has no more than a size."""
    return lambda _, data: (layer, data[size:])


def _typed(at: int, size: int) -> _Layer:
    """Return a layer whose header of `size` bytes has the type of its payload, as Ethernet numbers
    them, at `at`."""
    return lambda _, data: _choose_layer(struct.unpack_from(">H", data, at)[0], data[size:])


def _choose_layer(kind: int, data: bytes) -> _Found:
    if kind <= _MAX_LENGTH_FIELD:
        return (_typed(6, 8), data) if data.startswith(_SNAP) else None
    layer = _ETHERNET_LAYERS.get(kind)
    return layer and (layer, data)


def _read_ppp(_: SegmentReader, data: bytes) -> _Found:
    at = 2 if data.startswith(b"\xff\x03") else 0
    size = 1 if data[at] & 1 else 2  # an odd first byte is the whole protocol
    layer = _PPP_LAYERS.get(int.from_bytes(data[at : at + size]))
    return layer and (layer, data[at + size :])


def _read_mpls(_: SegmentReader, data: bytes) -> _Found:
    at = 0
    while not struct.unpack_from(">I", data, at)[0] & _MPLS_BOTTOM:
        at += 4
    return SegmentReader.read_ip, data[at + 4 :]


def _read_nflog(_: SegmentReader, data: bytes) -> _Found:
    """The numbers have the byte order of the host: the type of the first value is below 256."""
    order, at = "<" if data[6] else ">", 4
    while at < len(data):
        size, kind = struct.unpack_from(f"{order}HH", data, at)
        if kind & 0x7FFF == _NFLOG_PAYLOAD:
            return SegmentReader.read_ip, data[at + 4 : at + size]
        at += max(size + -size % 4, 4)
    return None


def _read_udp(_: SegmentReader, data: bytes) -> _Found:
    layer = _UDP_LAYERS.get(struct.unpack_from(">H", data, 2)[0])
    return layer and (layer, data[8:])


def _read_vxlan(_: SegmentReader, data: bytes) -> _Found:
    return (_read_ethernet, data[8:]) if data[0] & 8 else None


def _read_geneve(_: SegmentReader, data: bytes) -> _Found:
    options, kind = struct.unpack_from(">BxH", data)
    return _choose_layer(kind, data[8 + (options & 0x3F) * 4 :])


def _read_gre(_: SegmentReader, data: bytes) -> _Found:
    flags, kind = struct.unpack_from(">HH", data)
    given = (_GRE_CHECKSUM, _GRE_KEY, _GRE_SEQUENCE, _GRE_ACKNOWLEDGED)
    size = 4 + 4 * sum(bool(flags & each) for each in given)
    if flags & 7:  # of PPTP
        return _read_ppp, data[size:]
    if kind == _ERSPAN:
        return _read_ethernet, data[size + (8 if flags & _GRE_SEQUENCE else 0) :]
    return _choose_layer(kind, data[size:])


def _refuse_macsec(_: SegmentReader, __: bytes) -> _Found:
    raise UnreadPacket("packet", "encrypted by MACsec")


_read_ethernet = _typed(12, 14)
_LINK_LAYERS: dict[int, _Layer] = {
    0: _after(4, SegmentReader.read_ip),
    1: _read_ethernet,
    9: _read_ppp,
    50: _read_ppp,
    51: _after(6, _read_ppp),
    108: _after(4, SegmentReader.read_ip),
    113: _typed(14, 16),
    239: _read_nflog,
    276: _typed(0, 20),
    **dict.fromkeys((12, 14, 101, 228, 229), SegmentReader.read_ip),
}
"""Link type -> its header: BSD loopback, Ethernet, PPP, PPPoE, Linux cooked (`tcpdump -i any`),
NFLOG, raw IP."""
_ETHERNET_LAYERS: dict[int, _Layer] = {
    0x0800: SegmentReader.read_ip,
    0x86DD: SegmentReader.read_ip,
    **dict.fromkeys((0x8100, 0x88A8, 0x9100, 0x9200), _typed(2, 4)),
    0x6558: _read_ethernet,
    **dict.fromkeys((0x8847, 0x8848), _read_mpls),
    0x8864: _after(6, _read_ppp),
    0x88E5: _refuse_macsec,
}
"""Type in an Ethernet header -> IP, VLAN tag, Ethernet in a tunnel, MPLS, PPPoE, MACsec."""
_PPP_LAYERS: dict[int, _Layer] = {
    0x21: SegmentReader.read_ip,
    0x57: SegmentReader.read_ip,
    0x281: _read_mpls,
}
_UDP_LAYERS: dict[int, _Layer] = {4789: _read_vxlan, 8472: _read_vxlan, 6081: _read_geneve}
_IP_LAYERS: dict[int, _Layer] = {
    4: SegmentReader.read_ip,
    _TCP: SegmentReader.read_tcp,
    _UDP: _read_udp,
    41: SegmentReader.read_ip,
    47: _read_gre,
}
"""Protocol in an IP header -> IP in IP, TCP, UDP, GRE."""


@lru_cache(4096)
def format_host(address: bytes) -> str:
    """Return an IP address as text; IPv6 in brackets. Raises ValueError."""
    if len(address) == 4:
        return socket.inet_ntop(socket.AF_INET, address)
    return f"[{socket.inet_ntop(socket.AF_INET6, address)}]"
