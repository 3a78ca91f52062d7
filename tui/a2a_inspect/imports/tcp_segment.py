"""The TCP segment in a captured packet."""

import socket
import struct
from typing import Any

import msgspec
from dpkt import Error
from dpkt.ethernet import Ethernet
from dpkt.ip import IP
from dpkt.ip6 import IP6
from dpkt.tcp import TCP, TH_ACK, TH_FIN, TH_RST, TH_SYN

from a2a_inspect.imports.packet_file import Packet

_ETHERNET = 1
_HEAD_SIZES = {0: 4, 108: 4, 12: 0, 14: 0, 101: 0, 228: 0, 229: 0, 113: 16, 276: 20}
"""Link type -> bytes before the IP header: BSD loopback, raw IP, Linux cooked
(`tcpdump -i any`)."""
_PARSE_ERRORS = (Error, struct.error, IndexError, ValueError, TypeError, AttributeError, KeyError)
"""What dpkt raises for damaged bytes."""


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


def read_segment(packet: Packet) -> Segment | None:
    """Return the TCP segment of a packet, or None if it has another protocol.

    Raises:
        UnreadPacket: the packet is a fragment, is cut within its headers, or has an unknown link
        type.
    """
    found = _find_ip(packet)
    if found is None:
        return None
    is_fragment = isinstance(found, IP) and bool(found.mf or found.offset)
    tcp = found.data
    if is_fragment and found.p == socket.IPPROTO_TCP:
        raise UnreadPacket("IP fragment")
    if not isinstance(tcp, TCP):
        if isinstance(found, IP) and found.p == socket.IPPROTO_TCP:
            raise UnreadPacket("packet", "with headers that are not complete")
        return None
    source, destination = (format_host(each) for each in (found.src, found.dst))
    return Segment(
        at=packet.at,
        source=f"{source}:{tcp.sport}",
        destination=f"{destination}:{tcp.dport}",
        sequence=tcp.seq,
        acknowledged=tcp.ack if tcp.flags & TH_ACK else -1,
        is_syn=bool(tcp.flags & TH_SYN),
        is_fin=bool(tcp.flags & TH_FIN),
        is_reset=bool(tcp.flags & TH_RST),
        payload=bytes(tcp.data),
        missing=packet.missing,
    )


def _find_ip(packet: Packet) -> Any:
    """Return the IP packet, or None. Raises UnreadPacket."""
    try:
        if packet.link_type == _ETHERNET:
            found = Ethernet(packet.data).data
            return found if isinstance(found, IP | IP6) else None
        if packet.link_type not in _HEAD_SIZES:
            raise UnreadPacket("packet", f"of the link type {packet.link_type}")
        data = packet.data[_HEAD_SIZES[packet.link_type] :]
        return {4: IP, 6: IP6}[data[0] >> 4](data) if data else None
    except _PARSE_ERRORS:
        return None


def format_host(address: bytes) -> str:
    """Return an IP address as text; IPv6 in brackets. Raises ValueError."""
    if len(address) == 4:
        return socket.inet_ntop(socket.AF_INET, address)
    return f"[{socket.inet_ntop(socket.AF_INET6, address)}]"
