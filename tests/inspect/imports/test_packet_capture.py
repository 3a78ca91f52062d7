"""Packet captures of real conversations: decoded and judged as the recording of the same bytes,
also if they are damaged, and what they lack is said."""

from __future__ import annotations

import io
import json
import struct
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_inspect.commands.import_file import open_import
from a2a_inspect.imports.exported_data import EXPORTED_LINK_TYPE, _complete_frames
from a2a_inspect.imports.packet_capture import _TLS_HINT, PacketCapture
from a2a_inspect.imports.packet_file import Packet, read_packets
from a2a_inspect.imports.recording_writer import ImportOptions, write_import
from a2a_inspect.imports.tcp_connection import TcpConnection
from a2a_inspect.imports.tcp_segment import Segment, SegmentReader, UnreadPacket
from a2a_proxy.model.errors import UserError
from a2a_proxy.model.values import Binding
from a2a_proxy.model.wire import ChunkKind
from a2a_proxy.recording.read.reader import Recording
from support_http2 import SWITCH, upgraded
from support_import import check_equal
from support_packets import (
    DOWN,
    UP,
    CaptureFormat,
    Piece,
    RecordedSource,
    Sent,
    disturb,
    encode_block,
    encode_capture,
    encode_exported,
    encode_interface,
    encode_ip,
    encode_link,
    encode_section,
    make_segments,
    read_pieces,
    reset,
    wrap_ip,
    write_capture,
)
from support_websocket import CLOSE, CONTINUATION, TEXT, agreed, asked, closing, frame, up

START = 1_795_000_000_000_000_000
MS = 1_000_000
NAMES = ("js_grpc", "vendor")
CARD = b"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: a\r\n\r\n"
TASK = b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t-1"}}'
GET_TASK = (
    b"POST /rpc HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    % len(TASK)
    + TASK
)
ERROR = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"no such task"}}'
ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(ERROR)
    + ERROR
)
LONG_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n" + b"x" * 900
HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40)


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path / "state"))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The recording of a conversation."""
    folder, made = tmp_path_factory.mktemp("recorded"), dict[str, Path]()
    patch = pytest.MonkeyPatch()
    patch.setenv("A2A_PROXY_STATE", str(folder / "state"))
    for name in NAMES:
        made[name] = folder / f"{name}.a2a.db"
        write_import(RecordedSource(read_pieces(name)), made[name], ImportOptions())
    patch.undo()
    return made.__getitem__


def talk(*payloads: bytes, connection: int = 0, ended: bool = True) -> list[Piece]:
    """Return a conversation: what the client says, then the agent, and so on, 10 ms apart, and both
    ends."""
    pieces = [
        Piece(connection, (UP, DOWN)[number % 2], START + number * 10 * MS, data)
        for number, data in enumerate(payloads)
    ]
    last = START + len(payloads) * 10 * MS
    return pieces + [Piece(connection, each, last, b"") for each in (UP, DOWN) if ended]


def load(path: Path) -> tuple[PacketCapture, list[Any]]:
    """Import a capture, and return the exchanges too."""
    source, target = open_import(path), path.with_suffix(".a2a.db")
    target.unlink(missing_ok=True)
    write_import(source, target, ImportOptions())
    with Recording(target) as recording:
        exchanges = [row.exchange for row in recording.read_exchanges()]
    assert isinstance(source, PacketCapture)
    return source, exchanges


def imported(
    folder: Path, segments: Sequence[Sent], how: CaptureFormat | None = None
) -> tuple[PacketCapture, list[Any]]:
    return load(write_capture(folder / "a.pcap", segments, how or CaptureFormat()))


FORMATS = [
    CaptureFormat("pcap"),
    CaptureFormat("pcap-ns", 113),
    CaptureFormat("pcap-big", 101, 6),
    CaptureFormat("pcapng", 0),
    CaptureFormat("pcapng-ns", 276, 6),
    CaptureFormat("pcapng-ns", 1, 6),
    CaptureFormat("pcapng-big", 1, 6),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "how", FORMATS, ids=lambda how: f"{how.name}-{how.link_type}-{how.version}"
)
def test_a_capture_of_real_peers_is_their_recording(
    name: str, how: CaptureFormat, recorded: Callable[[str], Path], tmp_path: Path
) -> None:
    """GRPC and event streams: the same exchanges, messages, times and findings; nothing is
    missing."""
    path = write_capture(tmp_path / "a.pcap", make_segments(read_pieces(name)), how)
    source, _ = load(path)
    assert source.lacks == ()
    check_equal(tmp_path / "a.a2a.db", recorded(name))
    unit = 1 if how.name.endswith("-ns") else 1000
    times = []
    for each in (tmp_path / "a.a2a.db", recorded(name)):
        with Recording(each) as recording:
            rows = recording.read_exchanges()
            times.append(
                [found.frame.at // unit for row in rows for found in recording.read_frames(row.key)]
            )
    assert times[0] == times[1]


def test_switch_to_http2(tmp_path: Path) -> None:
    """A connection that begins in HTTP/1.1 and continues in HTTP/2."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "t"}}
    body = json.dumps(call).encode()
    head = (
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\n"
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAA\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    task = {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}
    answer = json.dumps({"jsonrpc": "2.0", "id": 1, "result": task}).encode()
    (_, first), (_, second), (_, third), (_, last) = upgraded(b"", answer, "application/json")
    pieces = talk(head.encode() + body, SWITCH + first, second + third, last)
    source, calls = imported(tmp_path, make_segments(pieces))
    assert source.lacks == ()
    assert [(each.operation, each.how, each.status) for each in calls] == [
        ("GetTask", "complete", 200),
        ("", "complete", 204),
    ]
    assert calls[0].states == ("completed",)


@pytest.mark.parametrize("disturbed", [False, True])
def test_websockets(tmp_path: Path, disturbed: bool) -> None:
    """The handshake, and the calls on the socket."""
    head = {"jsonrpc": "2.0", "id": 1}
    send = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x" * 3000}]}}
    task = {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}
    request = json.dumps({**head, "method": "SendStreamingMessage", "params": send}).encode()
    answers = [{**head, "result": {"task": task}}, {**head, "streamEnd": True}]
    pieces = talk(
        asked(Sec_WebSocket_Protocol="a2a.v1", A2A_Version="1.0"),
        agreed("a2a.v1"),
        up(TEXT, request[:900], last=False) + up(CONTINUATION, request[900:]),
        b"".join(frame(TEXT, json.dumps(each).encode()) for each in answers),
        up(CLOSE, closing(1000)),
        frame(CLOSE, closing(1000)),
    )
    segments = make_segments(pieces)
    source, calls = imported(tmp_path, disturb(segments, 1) if disturbed else segments)
    assert source.lacks == ()
    assert [(each.binding, each.operation, each.how) for each in calls] == [
        (Binding.OTHER, "", "complete"),
        (Binding.WEBSOCKET, "SendStreamingMessage", "complete"),
    ]
    assert calls[1].states == ("completed",)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", NAMES)
def test_repeated_and_disordered_segments_change_nothing(
    name: str, seed: int, recorded: Callable[[str], Path], tmp_path: Path
) -> None:
    source, _ = imported(tmp_path, disturb(make_segments(read_pieces(name)), seed))
    assert source.lacks == ()
    check_equal(tmp_path / "a.a2a.db", recorded(name))


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("name", NAMES)
def test_decrypted_data_that_tshark_exports(
    name: str, version: int, recorded: Callable[[str], Path], tmp_path: Path
) -> None:
    """A frame of HTTP/2 that one packet has in part is repeated; no end of a connection is
    exported."""
    packets: list[tuple[int, bytes]] = []
    rest: dict[tuple[int, int], bytes] = {}
    for piece in read_pieces(name):
        here = piece.connection, piece.direction
        is_frames = (name, piece.connection) == ("js_grpc", 1)
        half = len(piece.data) // 2 if is_frames else 0
        for part in filter(None, (piece.data[:half], piece.data[half:])):
            data = rest.get(here, b"") + part
            rest[here] = data[len(_complete_frames(data)) :] if is_frames else b""
            dissector = b"http2\0\0\0" if is_frames else b"http_tls"
            packets.append((piece.at, encode_exported(piece, data, dissector, version)))
    path = tmp_path / "a.pcap"
    path.write_bytes(encode_capture(packets, CaptureFormat("pcapng", EXPORTED_LINK_TYPE)))
    source, _ = load(path)
    assert all("whose end is not in the capture" in each for each in source.lacks)
    check_equal(tmp_path / "a.a2a.db", recorded(name))


def test_exported_packets_without_addresses_are_counted(tmp_path: Path) -> None:
    (piece,) = talk(GET_TASK, ended=False)
    good = encode_exported(piece, GET_TASK, b"http_tls")
    path = tmp_path / "a.pcap"
    path.write_bytes(
        encode_capture(
            [(START, each) for each in (good, good[:9], b"\0\0\0\0x")], CaptureFormat(link_type=252)
        )
    )
    source, _ = load(path)
    assert "2 exported packets without addresses" in source.lacks


def test_a_lost_segment_that_is_sent_again_is_no_gap(tmp_path: Path) -> None:
    """The bytes behind it wait until it is there, which is when the client gets them."""
    segments = make_segments(talk(CARD, ANSWER, GET_TASK, ANSWER))
    lost = next(each for each in segments if each.direction is DOWN and each.payload)
    begin, end = (
        msgspec.structs.replace(lost, payload=part)
        for part in (lost.payload[:50], lost.payload[50:])
    )
    end = msgspec.structs.replace(end, sequence=lost.sequence + 50)
    later = msgspec.structs.replace(begin, at=lost.at + 5 * MS)
    place = segments.index(lost)
    source, exchanges = imported(tmp_path, [*segments[:place], end, later, *segments[place + 1 :]])
    assert source.lacks == ()
    assert exchanges[0].response_started == later.at
    assert [each.how for each in exchanges] == ["complete", "complete"]


def test_missing_bytes_end_the_calls_of_their_connection(tmp_path: Path) -> None:
    """The receiver has acknowledged them, so only the capture lacks them; calls before them are
    there, and so is a request that was sent behind them."""
    segments = make_segments(
        talk(GET_TASK, ANSWER, GET_TASK, ANSWER, GET_TASK, ANSWER, GET_TASK, ANSWER)
    )
    answers = [each for each in segments if each.direction is DOWN and each.payload]
    segments.remove(answers[2])
    late = [
        msgspec.structs.replace(each, at=each.at + 2000 * MS * (each.at > answers[2].at))
        for each in segments
    ]
    for found in (segments, late):  # known at the end of the connection, and after a second
        source, exchanges = imported(tmp_path, found)
        assert source.lacks == (f"1 connection with {len(ANSWER)} B missing: its calls end there",)
        assert [each.how for each in exchanges] == ["complete"] * 2 + ["connection lost"] * 2
        with Recording(tmp_path / "a.a2a.db") as recording:
            (session,) = recording.read_sessions()
        assert session.lost == len(ANSWER)
        assert "bytes are not in the imported file" in session.complete


@pytest.mark.parametrize("delay", [0, 2000 * MS])
def test_response_to_a_request_that_is_not_whole(delay: int, tmp_path: Path) -> None:
    """It is in the capture, so it is in the recording, also if the loss is known before the end of
    the connection."""
    request = GET_TASK.replace(b"t-1", b"t" * 3000).replace(b": %d" % len(TASK), b": 3062")
    segments = make_segments(talk(request, ANSWER, CARD, ANSWER))
    sent = [each for each in segments if each.direction is UP and each.payload]
    segments.remove(sent[1])
    later = [msgspec.structs.replace(each, at=each.at + delay) for each in segments[-6:]]
    source, exchanges = imported(tmp_path, [*segments[:-6], *later])
    assert [(each.status, each.how) for each in exchanges] == [(200, "complete")] * 2
    assert "TASK_NOT_FOUND" in exchanges[0].error
    missing = len(sent[1].payload)
    assert source.lacks == (
        f"1 connection with {missing / 1024:.1f} KiB missing: its calls end there",
    )


def test_holes_in_both_directions_are_counted(tmp_path: Path) -> None:
    segments = make_segments(talk(GET_TASK, ANSWER, GET_TASK, ANSWER, GET_TASK, ANSWER))
    for side in (UP, DOWN):
        segments.remove([each for each in segments if each.direction is side and each.payload][1])
    source, _ = imported(tmp_path, segments)
    missing = len(GET_TASK) + len(ANSWER)
    assert source.lacks == (f"1 connection with {missing} B missing: its calls end there",)


def acknowledge_more(segments: Sequence[Sent], number: int) -> list[Sent]:
    """Return the segments with a wrong number in one: 5000 bytes that were not sent."""
    wrong = segments[number]
    wrong = msgspec.structs.replace(wrong, acknowledged=wrong.acknowledged + 5000)
    return [*segments[:number], wrong, *segments[number + 1 :]]


@pytest.mark.parametrize("delay", [0, 300 * MS])
def test_one_wrong_acknowledgement_loses_nothing(delay: int, tmp_path: Path) -> None:
    """In any segment behind the handshake: what was sent later, or the end, shows that it is
    wrong."""
    for payloads in ([GET_TASK, LONG_ANSWER * 3], [GET_TASK, LONG_ANSWER * 3, GET_TASK, ANSWER]):
        segments = [
            msgspec.structs.replace(each, at=each.at + number * delay)
            for number, each in enumerate(make_segments(talk(*payloads)))
        ]
        for number in range(3, len(segments) - 4):
            source, exchanges = imported(tmp_path, acknowledge_more(segments, number))
            assert (number, source.lacks) == (number, ())
            assert [each.how for each in exchanges][: len(payloads) // 2] == ["complete"] * (
                len(payloads) // 2
            )


def test_the_last_bytes_are_missing(tmp_path: Path) -> None:
    """Nothing follows them but their acknowledgement, or the end of the connection."""
    segments = make_segments(talk(GET_TASK, ANSWER))
    segments = [each for each in segments if not (each.direction is DOWN and each.payload)]
    for found in (segments, segments[:-4]):
        source, (exchange,) = imported(tmp_path, found)
        assert source.lacks == (f"1 connection with {len(ANSWER)} B missing: its calls end there",)
        assert exchange.how == "connection lost"


def test_a_capture_that_begins_within_a_connection(tmp_path: Path) -> None:
    """HTTP/1.1 is read from its first request on; of HTTP/2 the beginning is needed."""
    segments = make_segments(talk(CARD, ANSWER, GET_TASK, ANSWER))
    first = next(number for number, each in enumerate(segments) if each.payload == ANSWER)
    source, (exchange,) = imported(tmp_path, segments[first:])
    assert source.lacks == ()
    assert (exchange.operation, exchange.how) == ("GetTask", "complete")
    frames = make_segments(read_pieces("js_grpc"))
    with pytest.raises(UserError, match="1 connection from before the capture, without"):
        open_import(
            write_capture(tmp_path / "b.pcap", [each for each in frames if not each.flags & 2][9:])
        )
    both = [
        *segments[:4],
        *(msgspec.structs.replace(each, connection=each.connection + 50) for each in frames[14:]),
    ]
    source, _ = imported(
        tmp_path, [each for each in both if each.connection == 0 or not each.flags & 2]
    )
    assert any("from before the capture" in each for each in source.lacks)


@pytest.mark.parametrize("dropped", [0, 1, 2])
def test_one_packet_of_the_handshake_is_missing(dropped: int, tmp_path: Path) -> None:
    """The others have its sequence number."""
    segments = make_segments(talk(GET_TASK, ANSWER))
    del segments[dropped]
    source, (exchange,) = imported(tmp_path, segments)
    assert (source.lacks, exchange.how, exchange.operation) == ((), "complete", "GetTask")


def test_the_capture_ends_before_the_connection(tmp_path: Path) -> None:
    """Its open call is lost, and no bytes are."""
    source, exchanges = imported(
        tmp_path, make_segments(talk(GET_TASK, ANSWER, GET_TASK, ended=False))
    )
    assert source.lacks == ("1 connection whose end is not in the capture",)
    assert [each.how for each in exchanges] == ["complete", "connection lost"]


def test_a_reset_is_that_of_its_sender(tmp_path: Path) -> None:
    """One with a sequence number far away is none."""
    segments = make_segments(talk(GET_TASK, ended=False))
    wild = msgspec.structs.replace(reset(segments[-1]), sequence=segments[-1].sequence + 2**30)
    source, (exchange,) = imported(tmp_path, [*segments, wild, reset(segments[-1])])
    assert (source.lacks, exchange.how) == ((), "agent gone")
    with Recording(tmp_path / "a.a2a.db") as recording:
        (row,) = recording.read_connections()
    assert row.connection.how == "agent reset"


def test_the_same_ports_are_used_again(tmp_path: Path) -> None:
    """Another SYN is another connection; a repeated one is not."""
    first = make_segments(talk(GET_TASK, ANSWER))
    again = [
        msgspec.structs.replace(each, at=each.at + 1000 * MS)
        for each in make_segments(talk(CARD, ANSWER), 7)
    ]
    _, exchanges = imported(tmp_path, [first[0], *first, *again])
    assert [(each.connection, each.operation) for each in exchanges] == [
        (1, "GetTask"),
        (2, "GetAgentCard"),
    ]
    source, exchanges = imported(tmp_path, [*first[:-4], *again])
    assert [each.how for each in exchanges] == ["complete", "complete"]
    assert source.lacks == ("1 connection whose end is not in the capture",)


def test_encrypted_and_other_connections_are_counted(tmp_path: Path) -> None:
    """A capture with nothing else is refused, with the way to read TLS."""
    other = make_segments(talk(b"\0\0\0\x17hello", b"x", connection=1))
    hidden = make_segments(talk(HELLO, b"x", connection=2))
    source, (exchange,) = imported(
        tmp_path, [*make_segments(talk(GET_TASK, ANSWER)), *other, *hidden]
    )
    assert exchange.operation == "GetTask"
    assert source.lacks == (
        "1 connection encrypted: TLS in captures is not read",
        "1 connection not HTTP",
        f"to read what is encrypted: {_TLS_HINT}",
    )
    with pytest.raises(
        UserError, match="no HTTP call that can be read: 1 connection encrypted"
    ) as refused:
        open_import(write_capture(tmp_path / "b.pcap", hidden))
    assert "a2a-proxy run" in refused.value.hint
    with pytest.raises(UserError, match=r"can be read: 1 connection not HTTP$") as refused:
        open_import(write_capture(tmp_path / "b.pcap", other))
    assert "tcpdump" in refused.value.hint


def test_packets_that_were_cut(tmp_path: Path) -> None:
    """By the snap length, within their data and within their headers."""
    segments = make_segments(
        [*talk(GET_TASK, LONG_ANSWER, connection=1), *talk(CARD, b"HTTP/1.1 204 x\r\n\r\n")]
    )
    source, exchanges = imported(tmp_path, segments, CaptureFormat(snap_length=54 + len(GET_TASK)))
    assert [each.how for each in exchanges] == ["connection lost", "complete"]
    assert any("1 packet not captured whole" in each for each in source.lacks)
    with pytest.raises(UserError, match=r"\d+ packets with headers that are not complete$"):
        open_import(write_capture(tmp_path / "b.pcap", segments, CaptureFormat(snap_length=40)))


def load_packets(folder: Path, packets: Sequence[bytes], link_type: int) -> PacketCapture:
    """Import the packets of a call of GetTask, which is complete."""
    path = folder / "a.pcap"
    times = [(START + number * MS, each) for number, each in enumerate(packets)]
    path.write_bytes(encode_capture(times, CaptureFormat(link_type=link_type)))
    source, (exchange,) = load(path)
    assert (exchange.operation, exchange.how) == ("GetTask", "complete")
    return source


MAC = bytes(12)
ETHERNET = MAC + b"\x08\0"
SNAP = b"\xaa\xaa\x03\0\0\0\x08\0"
PPPOE = b"\x11\0\0\1\0\0"
VXLAN = b"\x08\0\0\0\0\0\7\0"


def udp(port: int, data: bytes) -> bytes:
    return struct.pack(">HHHH", 5555, port, 8 + len(data), 0) + data


def nflog(data: bytes, order: str) -> bytes:
    prefix = struct.pack(f"{order}HH5s3x", 9, 10, b"hello")
    return b"\2\0\0\0" + prefix + struct.pack(f"{order}HH", 4 + len(data), 9) + data


def extended(data: bytes) -> bytes:
    """Return the IPv6 packet of an IPv4 packet's segment, with four extension headers."""
    options = b"\x3c\0" + bytes(6) + b"\x2b\1" + bytes(14) + b"\x33\0" + bytes(6)
    return wrap_ip(0, options + b"\6\1" + bytes(10) + data[20:], 6)


WRAPPERS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "VLAN": (1, lambda ip: MAC + b"\x81\0\0\7\x08\0" + ip),
    "QinQ": (1, lambda ip: MAC + b"\x88\xa8\0\7\x81\0\0\7\x08\0" + ip),
    "SNAP": (1, lambda ip: MAC + struct.pack(">H", 8 + len(ip)) + SNAP + ip),
    "PPPoE": (1, lambda ip: MAC + b"\x88\x64" + PPPOE + b"\0\x21" + ip),
    "MPLS": (1, lambda ip: MAC + b"\x88\x47\0\0\x10\0\0\0\x11\0" + ip),
    "SLL VLAN": (113, lambda ip: bytes(14) + b"\x81\0\0\7\x08\0" + ip),
    "SLL SNAP": (113, lambda ip: bytes(14) + b"\0\4" + SNAP + ip),
    "SLL2 VLAN": (276, lambda ip: b"\x81\0" + bytes(18) + b"\0\7\x08\0" + ip),
    "NFLOG": (239, lambda ip: nflog(ip, "<")),
    "NFLOG big": (239, lambda ip: nflog(ip, ">")),
    "PPP": (9, lambda ip: b"\x21" + ip),
    "PPP MPLS": (9, lambda ip: b"\x02\x81\0\0\x11\0" + ip),
    "PPP HDLC": (50, lambda ip: b"\xff\x03\0\x21" + ip),
    "PPPoE link": (51, lambda ip: PPPOE + b"\0\x21" + ip),
    "VXLAN": (1, lambda ip: ETHERNET + wrap_ip(17, udp(4789, VXLAN + ETHERNET + ip))),
    "VXLAN in IPv6": (101, lambda ip: wrap_ip(17, udp(8472, VXLAN + ETHERNET + ip), 6)),
    "Geneve": (101, lambda ip: wrap_ip(17, udp(6081, b"\1\0\x65\x58" + bytes(8) + ETHERNET + ip))),
    "Geneve IP": (101, lambda ip: wrap_ip(17, udp(6081, b"\0\0\x08\0" + bytes(4) + ip))),
    "GRE": (101, lambda ip: wrap_ip(47, b"\0\0\x08\0" + ip)),
    "GRE key": (101, lambda ip: wrap_ip(47, b"\xb0\0\x65\x58" + bytes(12) + ETHERNET + ip)),
    "ERSPAN": (101, lambda ip: wrap_ip(47, b"\x10\0\x88\xbe" + bytes(12) + ETHERNET + ip)),
    "PPTP": (101, lambda ip: wrap_ip(47, b"\x30\x81\x88\x0b" + bytes(12) + b"\0\x21" + ip)),
    "IP in IP": (101, lambda ip: wrap_ip(4, ip)),
    "IPv4 in IPv6": (101, lambda ip: wrap_ip(4, ip, 6)),
    "extension headers": (101, extended),
    "atomic fragment": (101, lambda ip: wrap_ip(44, b"\6\0\0\0\0\0\0\7" + ip[20:], 6)),
    "segmentation offload": (101, lambda ip: ip[:2] + b"\0\0" + ip[4:]),
}
"""Headers around an IPv4 packet: the link type, and the function that adds them."""


@pytest.mark.parametrize("name", WRAPPERS)
def test_headers_of_links_and_tunnels(name: str, tmp_path: Path) -> None:
    """Each is read, and so are packets of which the snap length cut the end."""
    link_type, wrap = WRAPPERS[name]
    segments = make_segments(talk(GET_TASK, ANSWER))
    packets = [wrap(encode_ip(each)) for each in segments]
    assert load_packets(tmp_path, packets, link_type).lacks == ()
    reader = SegmentReader()
    packet = packets[3]
    expected = reader.read_segment(Packet(START, link_type, packet, 0))
    assert expected is not None
    for size in range(len(packet)):
        cut = Packet(START, link_type, packet[:size], len(packet) - size)
        try:
            found = reader.read_segment(cut)
        except UnreadPacket as why:
            assert why.words == "with headers that are not complete"  # noqa: PT017
            continue
        if found is None:  # cut within the headers of the link, which have no type of IP then
            assert size < len(packet) - len(encode_ip(segments[3]))
            continue
        assert found.missing == len(expected.payload) - len(found.payload)
        assert found.sequence == expected.sequence


NOT_READ = {
    "IPsec": (1, ETHERNET + wrap_ip(50, bytes(40)), "2 packets encrypted by IPsec"),
    "MACsec": (1, MAC + b"\x88\xe5" + bytes(40), "2 packets encrypted by MACsec"),
    "802.11": (105, bytes(40), "2 packets of the link type 105"),
    "many": (1, MAC + b"\x81\0\0\7" * 20 + bytes(40), "2 packets with more than 16 headers"),
    "other": (1, MAC + b"\x08\x06" + bytes(28), "no connection begins with a request"),
    "LLC": (1, MAC + b"\0\x26\x42\x42\x03" + bytes(35), "no connection begins with a request"),
    "UDP": (101, wrap_ip(17, udp(53, bytes(40))), "no connection begins with a request"),
    "fragment": (
        101,
        wrap_ip(6, bytes(40), 4, 0x2000),
        "1 IP fragment whose packet is not complete",
    ),
}


@pytest.mark.parametrize("name", NOT_READ)
def test_packets_that_are_not_read_are_named_in_the_error(name: str, tmp_path: Path) -> None:
    link_type, packet, why = NOT_READ[name]
    path = tmp_path / "a.pcap"
    path.write_bytes(encode_capture([(START, packet)] * 2, CaptureFormat(link_type=link_type)))
    with pytest.raises(UserError, match=f"no HTTP call that can be read: {why}$"):
        open_import(path)


def fragments(packet: bytes, version: int, size: int = 24) -> list[bytes]:
    """Return the fragments of the payload of an IPv4 packet without a header of options."""
    number, pieces = packet[4:6], range(20, len(packet), size)
    found = []
    for at in pieces:
        offset, has_more = at - 20, at != pieces[-1]
        data = packet[at : at + size]
        if version == 4:
            found.append(wrap_ip(packet[9], data, 4, offset >> 3 | has_more << 13))
        else:
            head = struct.pack(">BBHI", packet[9], 0, offset | has_more, int.from_bytes(number))
            found.append(wrap_ip(44, head + data, 6))
    return found


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("version", [4, 6])
def test_ip_fragments_are_joined(version: int, order: int, tmp_path: Path) -> None:
    """In any order, also repeated ones, and those of the packet around a tunnel."""
    ip = [encode_ip(each) for each in make_segments(talk(GET_TASK, ANSWER))]
    tunnel = [wrap_ip(17, udp(4789, VXLAN + ETHERNET + each)) for each in ip]
    for packets in (ip, tunnel):
        pieces = [each for packet in packets for each in fragments(packet, version)[::order]]
        assert load_packets(tmp_path, pieces, 101).lacks == ()
        first = fragments(packets[3], version)[0]
        assert load_packets(tmp_path, [*pieces, first], 101).lacks == (
            "1 IP fragment whose packet is not complete",
        )


def test_fragments_of_another_packet_of_the_same_number() -> None:
    """After 30 seconds, and behind 64 newer packets, which bounds the memory."""
    packet = encode_ip(make_segments(talk(GET_TASK))[3])
    first, *rest = fragments(packet, 6)
    reader = SegmentReader()

    def read(data: bytes, at: int = START) -> Any:
        return reader.read_segment(Packet(at, 101, data, 0))

    assert read(first) is None
    assert not any(read(each, START + 31_000 * MS) for each in rest)
    assert read(first, START + 31_000 * MS).payload == GET_TASK
    assert reader.incomplete_fragments == 1
    read(first)
    for number in range(64):
        read(first[:44] + struct.pack(">I", 100 + number) + first[48:])
    assert not any(read(each) for each in rest)
    assert reader.incomplete_fragments == 1 + 1 + 64 + len(rest)


def test_bytes_of_fragments_are_bounded() -> None:
    """Also without a length, and if they overlap: none ends beyond the largest IP packet, and of
    each packet at most twice its size is kept."""
    reader = SegmentReader()
    for size, count, is_refused in ((1 << 22, 4, True), (60_000, 256, False)):
        data = bytearray(wrap_ip(6, b"", 4)) + bytes(size)
        data[2:4] = bytes(2)
        tracemalloc.start()
        try:
            for number in range(count):
                data[6:8] = struct.pack(">H", 0x2000 | number)
                packet = Packet(START, 101, bytes(data), 0)
                if is_refused:
                    with pytest.raises(UnreadPacket, match="beyond the end of the largest"):
                        reader.read_segment(packet)
                else:
                    assert reader.read_segment(packet) is None
            kept, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert kept - size < 200_000


@pytest.mark.parametrize("order", ["<", ">"])
def test_simple_packets_have_no_times(order: str, tmp_path: Path) -> None:
    """They are those of the first interface, cut at its snap length, and have the time of the
    packet before them, which is said."""
    ip = [encode_ip(each) for each in make_segments(talk(GET_TASK, ANSWER))]
    seconds = struct.pack(f"{order}IIIII", 0, 0, 7, len(ip[0]), len(ip[0])) + ip[0]
    old = struct.pack(f"{order}HHIIII", 0, 0, 0, 9, len(ip[1]), len(ip[1])) + ip[1]
    content = encode_section(order) + encode_interface(101, 0, order, max_packet=4000)
    content += encode_block(6, seconds, order) + encode_block(5, bytes(12), order)
    content += encode_block(2, old, order)
    for each in ip[2:]:
        content += encode_block(3, struct.pack(f"{order}I", len(each)) + each, order)
    (tmp_path / "a.pcap").write_bytes(content)
    source, (exchange,) = load(tmp_path / "a.pcap")
    count = len(ip) - 2
    assert source.lacks == (f"{count} packets without a time: it has that of the packet before it",)
    assert (exchange.operation, exchange.how) == ("GetTask", "complete")
    assert (exchange.started, exchange.closed) == (9_000_000_000, 9_000_000_000)
    (tmp_path / "a.pcap").write_bytes(
        encode_section(order)
        + encode_interface(101, 0, order, max_packet=10)
        + encode_block(3, struct.pack(f"{order}I", 50) + bytes(10), order)
    )
    with (tmp_path / "a.pcap").open("rb") as stream:
        assert list(read_packets(stream)) == [Packet(-1, 101, bytes(10), 40)]


@pytest.mark.parametrize(("resolution", "unit"), [(3, 10**6), (0x8A, 10**9 // 2**10)])
def test_units_of_times(resolution: int, unit: int) -> None:
    """Powers of ten and of two."""
    packet = struct.pack("<IIIII", 0, 1, 3, 0, 0)
    content = encode_section() + encode_interface(1, resolution) + encode_block(6, packet)
    (found,) = read_packets(io.BytesIO(content))
    assert abs(found.at - (2**32 + 3) * unit) < unit * 2**28


def swap_answers(segments: Sequence[Sent]) -> list[Sent]:
    """Return the segments with each request behind the packets that answer it."""
    found = list(segments)
    for request in [each for each in segments if each.direction is UP and each.payload]:
        found.remove(request)
        end = request.sequence + len(request.payload)
        answers = [
            place
            for place, each in enumerate(found)
            if each.direction is DOWN
            and each.connection == request.connection
            and each.acknowledged >= end
            and each.at <= request.at + 10 * MS
        ]
        found.insert(answers[-1] + 1, request)
    return found


def test_responses_that_were_captured_before_their_requests(tmp_path: Path) -> None:
    """Their acknowledgements order them, as their receivers saw them, and they are counted."""
    whole = make_segments(talk(GET_TASK, ANSWER, CARD, ANSWER), 4_294_967_000)
    source, exchanges = imported(tmp_path, swap_answers(whole))
    assert source.lacks == ("2 packets captured before what it answers, put in order",)
    assert [(each.operation, each.how) for each in exchanges] == [
        ("GetTask", "complete"),
        ("GetAgentCard", "complete"),
    ]
    lost = [each for each in whole if each.payload != GET_TASK]
    source, exchanges = imported(
        tmp_path, [*lost, *make_segments(talk(CARD, ANSWER, connection=2))]
    )
    assert f"1 connection with {len(GET_TASK)} B missing: its calls end there" in source.lacks
    assert [each.operation for each in exchanges] == ["GetAgentCard"]


@pytest.mark.parametrize("sides", [(DOWN, DOWN), (UP, DOWN)])
def test_bytes_that_wait_for_the_other_direction_are_bounded(sides: tuple[Any, Any]) -> None:
    """Acknowledgements of bytes that nobody sent keep at most 16 MiB, or one segment if both
    directions have them; no byte is left out."""
    connection = TcpConnection("c:1", "s:2", START)
    names = {UP: ("c:1", "s:2"), DOWN: ("s:2", "c:1")}
    for side, acknowledged in ((UP, -1), (DOWN, 0)):
        begin = Segment(START, *names[side], 2**32 - 1, acknowledged, True, False, False, b"", 0)
        assert list(connection.feed(begin))
    sizes, kept, largest = {UP: 0, DOWN: 0}, 0, 0
    for number in range(600):
        side = sides[number % 2]
        data = bytes(1 << 16)
        sent = Segment(
            START + number, *names[side], sizes[side], 2**30, False, False, False, data, 0
        )
        sizes[side] += 1 << 16
        kept += 1 << 16
        kept -= sum(len(each.data) for each in connection.feed(sent) if each.kind is ChunkKind.DATA)
        largest = max(largest, kept)
        if connection.is_closed:
            break
    assert largest <= (16 << 20 if sides[0] is sides[1] else 1 << 16)
    assert connection.is_closed is (sides[0] is sides[1])
    assert not (connection.is_closed and kept)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_file_that_is_cut_off_keeps_its_beginning(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """At any byte: the calls before it are there, and the damage is named."""
    folder = tmp_path_factory.mktemp("cut")
    how = data.draw(st.sampled_from(FORMATS[:4]))
    path = write_capture(
        folder / "a.pcap", make_segments(talk(GET_TASK, ANSWER, GET_TASK, ANSWER)), how
    )
    whole = path.read_bytes()
    path.write_bytes(whole[: data.draw(st.integers(5, len(whole) - 1))])
    try:
        source = open_import(path)
    except UserError as refused:
        assert "no HTTP call" in refused.message  # noqa: PT017
        return
    chunks = list(source.read_chunks())
    assert [each.at for each in chunks] == sorted(each.at for each in chunks)
    assert chunks[-1].kind is ChunkKind.CLOSED
    assert source.lacks


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_damaged_bytes_never_fail_otherwise(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Random bytes are replaced, also in lengths: an error with a hint, or records in order."""
    path = tmp_path_factory.mktemp("damaged") / "a.pcap"
    how = data.draw(st.sampled_from(FORMATS))
    content = bytearray(
        write_capture(path, make_segments(talk(GET_TASK, ANSWER, HELLO)), how).read_bytes()
    )
    for place, value in data.draw(
        st.lists(st.tuples(st.integers(4, len(content) - 1), st.integers(0, 255)), max_size=12)
    ):
        content[place] = value
    path.write_bytes(bytes(content))
    try:
        source = open_import(path)
    except UserError as refused:
        assert refused.hint  # noqa: PT017
        return
    last, closed = 0, set()
    for chunk in source.read_chunks():
        assert chunk.at >= last
        assert chunk.connection not in closed
        last = chunk.at
        closed |= {chunk.connection} if chunk.kind is ChunkKind.CLOSED else set()


def test_times_that_a_recording_cannot_hold_are_damage(tmp_path: Path) -> None:
    """Packets of the year 2262 and later are left out, with the rest of the file."""
    segments = make_segments(talk(GET_TASK, ANSWER))
    later = [msgspec.structs.replace(each, at=each.at + (1 << 63)) for each in segments]
    source, exchanges = imported(tmp_path, [*segments, *later], CaptureFormat("pcapng-ns"))
    assert len(exchanges) == 1
    assert source.lacks[-1].startswith("the rest of the file: the bytes before ")


def test_bytes_behind_a_hole_are_bounded(tmp_path: Path) -> None:
    """A hole that nothing acknowledges is given up after 16 MiB."""
    body = b"HTTP/1.1 200 OK\r\nContent-Length: 20000000\r\n\r\n" + bytes(20_000_000)
    segments = make_segments(talk(GET_TASK, body))
    answers = [each for each in segments if each.direction is DOWN and each.payload]
    segments = [each for each in segments if each.direction is DOWN or each.at < answers[0].at]
    segments.remove(answers[3])
    source, (exchange,) = imported(tmp_path, segments)
    assert exchange.how == "connection lost"
    assert source.lacks == ("1 connection with 1.4 KiB missing: its calls end there",)


@pytest.mark.parametrize("begin", [b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"])
def test_compressed_files_are_named(begin: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.pcap.gz").write_bytes(begin)
    with pytest.raises(UserError, match=r"a\.pcap\.gz is compressed") as refused:
        open_import(tmp_path / "a.pcap.gz")
    assert "gunzip" in refused.value.hint


def test_several_servers_and_sections(tmp_path: Path) -> None:
    """Two pcapng files behind each other are one with two sections."""
    one = [
        (each.at, encode_link(encode_ip(each), 1)) for each in make_segments(talk(GET_TASK, ANSWER))
    ]
    other = [
        (each.at, encode_link(encode_ip(each, 6), 101))
        for each in make_segments(talk(CARD, ANSWER, connection=3))
    ]
    content = encode_capture(one, CaptureFormat("pcapng")) + encode_capture(
        other, CaptureFormat("pcapng-ns", 101)
    )
    (tmp_path / "a.pcap").write_bytes(content)
    source, exchanges = load(tmp_path / "a.pcap")
    assert [each.operation for each in exchanges] == ["GetTask", "GetAgentCard"]
    assert source.upstreams == ("127.0.0.1:8000", "[::1]:8000")
