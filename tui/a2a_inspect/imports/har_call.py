"""One entry of a HAR file as the records of a connection of its own.

Members that begin with an underscore are extensions: `_a2a` of `a2a-inspect export har`, `_error`,
`_encoding`, `_eventSourceMessages` of Chromium.
"""

import base64
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from math import isfinite
from typing import Any
from urllib.parse import SplitResult, urlencode, urlsplit

import msgspec

from a2a_inspect.imports.http_writer import Fields, Http1Writer, Http2Writer, HttpWriter
from a2a_proxy.model.wire import Chunk, ChunkKind, ConnectionFacts, DialFacts, Direction
from a2a_proxy.recording.store.row_types import check_time

_MS = 1_000_000
"""One millisecond in ns."""
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,](\d+))?\s*(Z|[+-]\d\d:?\d\d)?", re.ASCII
)
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""Name of a header field."""
_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
_BLOCK = re.compile(rb".*?(?:\r\n\r\n|\n\n|\r\r|\Z)", re.DOTALL)
"""An event of an event stream with its empty line."""
_DATA_LINE = re.compile(rb"^data(?::|$)", re.MULTILINE)
_BODILESS_TYPES = frozenset(
    {"stylesheet", "script", "image", "font", "media", "manifest", "websocket"}
)
"""Values of `_resourceType` that browsers write for other things than calls."""
_CLIENT_ENDS = ("client", "net::ERR_ABORTED")
"""How the texts begin that say that the client ended the call."""
_STREAM_RESETS = ("client cancel", "agent reset", "net::ERR_ABORTED")
"""How a call ended of which HTTP/2 reset only the stream."""
_MITMPROXY = "mitmproxy"
_OURS = "a2a-inspect"

Pieces = list[tuple[int, bytes]]
"""Parts of a body with their times, ns."""


class EntryError(Exception):
    """An entry lacks a member of HAR 1.2, or has another type there. The message names it."""


class HarCall:
    """One entry."""

    def __init__(self, entry: Any, creator: str) -> None:
        """Read the entry; `creator` is the program that wrote the file. Raises EntryError."""
        self.lacks: set[str] = set()
        """What the entry lacks, in words."""
        try:
            self._read_entry(entry, creator)
        except KeyError as wrong:
            raise EntryError(f"it has no member {str(wrong)[:200]}") from wrong
        except (TypeError, AttributeError, OverflowError) as wrong:
            raise EntryError("a member is of another type than in the format HAR") from wrong
        except UnicodeEncodeError as wrong:
            raise EntryError("a text has half of a character (a lone surrogate)") from wrong
        except ValueError as wrong:
            raise EntryError(str(wrong)[:200]) from wrong

    def _read_entry(self, entry: Any, creator: str) -> None:
        request, response = entry["request"], entry.get("response") or {}
        self._creator = creator
        self.ended = 0
        """Time of its end, ns."""
        ours = (entry.get("_a2a") or {}) if creator == _OURS else {}
        self.started = parse_time(ours.get("started") or entry["startedDateTime"])
        url = _read_url(request["url"])
        self._scheme = url.scheme
        self.authority = url.netloc.rpartition("@")[2]
        self._target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        self._method = str(request["method"])
        if self._method.upper() in _METHODS:  # some programs write their own spelling
            self._method = self._method.upper()
        self.is_call = (
            url.scheme in ("http", "https") and bool(self.authority) and self._method != "CONNECT"
        )
        """Whether it is an HTTP call: not a WebSocket, a stdio call, or a file that a browser loads
        by itself."""
        self.is_call = self.is_call and entry.get("_resourceType") not in _BODILESS_TYPES
        host, _, port = self.upstream.rpartition("//")[2].rpartition(":")
        peer = str(entry.get("serverIPAddress") or "").strip("[]") or host
        self._dialed = msgspec.json.encode(DialFacts(self.upstream, f"{peer}:{port}"))
        self._request_fields = self._read_fields(request)
        self._status = _read_status(response)
        self.is_call = self.is_call and self._status != 101
        self._reason = str(response.get("statusText") or "")
        answered = self._read_fields(response)
        media = (
            f"{_field_value(self._request_fields, 'content-type')} "
            f"{_field_value(answered, 'content-type')}"
        )
        self._is_grpc = "application/grpc" in media
        self._response_fields, self._trailers = (
            _split_trailers(answered) if self._is_grpc else (answered, [])
        )
        self._version = str(request.get("httpVersion") or "")
        self._how = ours.get("how") if creator == _OURS else response.get("_error")
        self._writer = self._choose_writer()
        self._read_times(entry)
        posted = request.get("postData") or request.get("_content") or {}
        coding = posted.get("encoding") or posted.get("_encoding")
        if posted.get("params") and not posted.get("text"):
            pairs = [(each["name"], each.get("value") or "") for each in posted["params"]]
            posted = {"text": urlencode(pairs)}
        self._request_body = self._read_body(posted, coding, self._request_fields)
        content = response.get("content") or {}
        self._response_body = self._read_body(content, content.get("encoding"), answered)
        size = content.get("size") or 0
        self._missing = (
            size if content.get("text") is None and isinstance(size, int) and size > 0 else 0
        )
        self._frame_times = _frame_times(ours)
        self._is_rebuilt = False
        """Whether the body was made of the events that Chromium lists, because the file lacks
        it."""
        if messages := entry.get("_eventSourceMessages"):
            self._read_event_messages(messages)
        # Without `_a2a` nothing says when a client of a stream ended its side: as soon as it had
        # sent its last message.
        first_end = ours.get("half_close")
        self._half_closes = not ours or first_end == "client" or not (first_end or self._is_cut)
        ends = (
            each
            for each in ours.get("frames") or ()
            if (each["kind"], each["direction"]) == ("end", "to_agent")
        )
        self._half_closed = next((parse_time(each["at"]) for each in ends), 0)

    def _read_fields(self, message: Any) -> Fields:
        """Return the header fields without pseudo-header fields, which browsers list too."""
        found = []
        if (headers := message.get("headers")) is None:
            body = message.get("postData") or message.get("content") or {}
            found = [("Content-Type", str(body["mimeType"]))] if body.get("mimeType") else []
            self.lacks.add("header fields of some messages")
        for each in headers or ():
            name, value = str(each["name"]), str(each["value"])
            if _NAME.fullmatch(name):
                found.append((name, value))
            elif not name.startswith(":"):
                self.lacks.add("some header fields: their names cannot be sent")
        return found

    def _read_event_messages(self, messages: Any) -> None:
        """Take the times of events from Chromium, and the events themselves if the body is
        missing."""
        times = [_event_time(each["time"]) for each in messages]
        if not self._response_body:
            self._response_body = b"".join(map(_event_block, messages))
            self._is_rebuilt, self._missing = True, 0
            self.lacks.add(
                "bytes of event streams: some are made of their events, and their end is unknown"
            )
        self.ended = max((self.ended, *times))
        self._frame_times = self._frame_times[0], _block_times(self._response_body, times)

    def _read_times(self, entry: Any) -> None:
        timings = {
            name: int(value * _MS) if isinstance(value, (int, float)) and value > 0 else 0
            for name, value in (entry.get("timings") or {}).items()
        }
        before = sum(timings.get(name, 0) for name in ("blocked", "dns", "connect"))
        # The start of an entry of mitmproxy is that of the request: it has connected to the server
        # before.
        self._sent = self.started + (0 if self._creator == _MITMPROXY else before)
        self._request_ended = self._sent + timings.get("send", 0)
        self._answered = self._request_ended + timings.get("wait", 0)
        self.ended = check_time(self._answered + timings.get("receive", 0))

    def _read_body(self, content: Any, encoding: object, fields: Fields) -> bytes:
        text = content.get("text")
        if not text:
            return b""
        if encoding == "base64":
            try:
                return base64.b64decode(text, validate=False)
            except ValueError as wrong:
                raise EntryError("a body is not base64, as its `encoding` says") from wrong
        declared = _field_value(fields, "content-type").lower()
        if self._creator == _MITMPROXY and "json" not in declared and "charset" not in declared:
            # It reads bodies of unknown charset as Latin-1, which is reversed here.
            try:
                return str(text).encode("latin-1")
            except UnicodeEncodeError:
                pass
        return str(text).encode(
            "utf-8", "surrogateescape" if self._creator == _MITMPROXY else "surrogatepass"
        )

    @property
    def upstream(self) -> str:
        """The server's address, with `https://` if it speaks TLS."""
        port = (
            ""
            if re.search(r":\d+$", self.authority)
            else ":443"
            if self._scheme == "https"
            else ":80"
        )
        return f"{'https://' if self._scheme == 'https' else ''}{self.authority}{port}"

    def read_chunks(self, number: int) -> Iterator[Chunk]:
        """Yield the records of connection `number`."""
        to_agent = Direction.TO_AGENT
        host = self.upstream.rpartition("//")[2]
        facts = ConnectionFacts(client="client:0", listen=host, upstream=self.upstream)
        yield Chunk(number, ChunkKind.OPEN, to_agent, self._sent, msgspec.json.encode(facts))
        yield Chunk(number, ChunkKind.DIALED, to_agent, self._sent, self._dialed)
        records = [
            (at, ChunkKind.DATA, direction, data)
            for direction, at, data in self._iter_messages()
            if data
        ]
        records.sort(key=lambda each: each[0])
        for at, kind, direction, data in records:
            yield Chunk(number, kind, direction, at, data)
        yield from self._end_connection(number, max(self.ended, records[-1][0]))

    def _iter_messages(self) -> Iterator[tuple[Direction, int, bytes]]:
        writer = self._writer
        up, down = Direction.TO_AGENT, Direction.TO_CLIENT
        url = self._scheme, self.authority, self._target
        fields = _without_coding(self._request_fields)
        yield (
            up,
            self._sent,
            writer.write_request_head(self._method, url, fields, len(self._request_body)),
        )
        last = self._sent
        pieces = self._split_body(
            self._request_body, self._frame_times[0], self._sent, self._request_ended
        )
        for left, (at, data) in zip(range(len(pieces) - 1, -1, -1), pieces, strict=True):
            is_end = not left and self._half_closes and not self._half_closed
            yield up, at, writer.write_request_data(data, is_end=is_end)
            last = at
        if self._half_closes and (self._half_closed or not pieces):
            yield up, max(last, self._half_closed), writer.write_request_data(b"", is_end=True)
        if not self._status:
            return
        is_whole = not (self._missing or self._is_cut or self._is_rebuilt)
        fields, size = (
            _without_coding(self._response_fields),
            len(self._response_body) if is_whole else -1,
        )
        if not is_whole:
            # With a `Content-Length` of at most the size of the body, a cut one would be whole.
            fields = [
                each
                for each in fields
                if not (
                    each[0].lower() == "content-length"
                    and each[1].isdecimal()
                    and int(each[1]) <= len(self._response_body)
                )
            ]
        yield (
            down,
            self._answered,
            writer.write_response_head(self._status, self._reason, fields, size),
        )
        for at, data in self._split_body(
            self._response_body, self._frame_times[1], self._answered, self.ended
        ):
            yield down, at, writer.write_response_data(data)
        if is_whole and (
            self._trailers or not self._is_grpc or _field_value(fields, "grpc-status")
        ):
            yield down, self.ended, writer.end_response(self._trailers)

    def _choose_writer(self) -> HttpWriter:
        version = self._version.lower()
        if version.startswith(("http/3", "h3", "quic")):
            self.lacks.add("HTTP/3: its calls are written as HTTP/2")
        if self._is_grpc or version.startswith(("http/2", "h2", "http/3", "h3", "quic")):
            return Http2Writer()
        return Http1Writer("HTTP/1.0" if version == "http/1.0" else "HTTP/1.1")

    def _split_body(self, body: bytes, times: Sequence[int], begin: int, end: int) -> Pieces:
        """Return the body in its messages or events with their times: the known ones, or evenly
        spread ones."""
        parts = _grpc_messages(body) if self._is_grpc else [body]
        if not self._is_grpc and "text/event-stream" in _field_value(
            self._response_fields, "content-type"
        ):
            parts = [part for part in _BLOCK.findall(body) if part]
        if len(parts) == len(times):
            return [
                (max(begin, min(at, self.ended)), part)
                for at, part in zip(times, parts, strict=True)
            ]
        if len(parts) == 1:
            return [(end, parts[0])]
        if parts:
            self.lacks.add(
                "times of single events: they are spread evenly over the time of their stream"
            )
        step = (end - begin) // max(len(parts), 1)
        return [(begin + step * at, part) for at, part in enumerate(parts, 1)]

    @property
    def _is_cut(self) -> bool:
        return bool(self._how) and self._how != "complete"

    def _end_connection(self, number: int, at: int) -> Iterator[Chunk]:
        up, down = Direction.TO_AGENT, Direction.TO_CLIENT
        lacks_trailers = self._is_grpc and not (
            self._trailers or _field_value(self._response_fields, "grpc-status")
        )
        if self._is_grpc:
            self.lacks.add("the place where a response's header fields end and its trailers begin")
        if self._is_cut:
            side = up if str(self._how).startswith(_CLIENT_ENDS) else down
            if self._how in _STREAM_RESETS and isinstance(self._writer, Http2Writer):
                yield Chunk(number, ChunkKind.DATA, side, at, self._writer.reset_stream())
            else:
                yield Chunk(number, ChunkKind.RESET, side, at)
        elif not self._status or self._missing or lacks_trailers or self._is_rebuilt:
            if not self._status:
                self.lacks.add("some responses")
            elif self._missing:
                self.lacks.add("some bodies: let the program that writes the file include contents")
            elif lacks_trailers:
                self.lacks.add("trailers: no gRPC call has its status")
            yield Chunk(number, ChunkKind.LOST, down, at, b'{"bytes":%d}' % self._missing)
        else:
            yield Chunk(number, ChunkKind.EOF, down, at)
            yield Chunk(number, ChunkKind.EOF, up, at)
        yield Chunk(number, ChunkKind.CLOSED, up, at)


def parse_time(text: Any) -> int:
    """Return a time in ISO 8601, of any number of decimals, as ns since the epoch.

    Raises ValueError: it is not a time, or a recording cannot hold it.
    """
    found = _TIME.match(str(text))
    try:
        if found is None:
            raise ValueError
        seconds, decimals, zone = found.groups()
        whole = int(
            datetime.fromisoformat(
                seconds.replace(" ", "T") + (zone or "Z").replace("Z", "+00:00")
            ).timestamp()
        )
    except ValueError as wrong:
        raise ValueError(f"{str(text)[:40]!r} is not a time in ISO 8601") from wrong
    return check_time(whole * 1_000_000_000 + int((decimals or "0")[:9].ljust(9, "0")))


def _frame_times(ours: Any) -> tuple[list[int], list[int]]:
    """Return the times of the messages to the agent and to the client, from the member of
    `a2a-inspect export har`."""
    found: tuple[list[int], list[int]] = [], []
    for frame in ours.get("frames") or ():
        if frame["kind"] in _BODY_KINDS:
            found[frame["direction"] == "to_client"].append(parse_time(frame["at"]))
    return found


def _event_time(seconds: Any) -> int:
    """Return the time of an event of Chromium, in ns. Raises ValueError or TypeError."""
    if isinstance(seconds, float) and not isfinite(seconds):
        raise ValueError("the time of an event is not a finite number")
    return check_time(int(+seconds * 1_000_000) * 1000)  # the sign refuses a text


def _event_block(message: Any) -> bytes:
    """Return an event of an event stream, from a member of `_eventSourceMessages`."""
    lines = [f"event: {message['eventName']}"] if message["eventName"] != "message" else []
    lines += [f"id: {message['eventId']}"] if message["eventId"] else []
    lines += [f"data: {line}" for line in str(message["data"]).split("\n")]
    return "\n".join([*lines, "", ""]).encode("utf-8", "surrogatepass")


def _block_times(body: bytes, times: list[int]) -> list[int]:
    """Return the time of each block of an event stream; a comment has that of the event before it.
    The result is empty if the events are not those of `times`."""
    found: list[int] = []
    count = 0
    for block in filter(None, _BLOCK.findall(body)):
        count += _DATA_LINE.search(block) is not None
        found.append(times[min(max(count, 1), len(times)) - 1])
    return found if count == len(times) else []


_BODY_KINDS = frozenset(
    {"request", "response", "event", "error", "comment", "other", "undecodable"}
)
"""Kinds of frames that are a message or an event of a body."""


def _read_url(url: Any) -> SplitResult:
    try:
        found: SplitResult = urlsplit(url)
    except ValueError as wrong:
        raise EntryError(f"its URL is not valid: {url[:40]!r}") from wrong
    return found


def _read_status(response: Any) -> int:
    """Return the status; 0 if there was none."""
    status = response.get("status") or 0
    try:
        return int(status)
    except ValueError as wrong:
        raise EntryError(f"its status is no number: {str(status)[:40]!r}") from wrong


def _field_value(fields: Fields, lowercase_name: str) -> str:
    return next((value for name, value in fields if name.lower() == lowercase_name), "")


def _without_coding(fields: Fields) -> Fields:
    """Return the fields without `Content-Encoding`: bodies in a HAR file are decoded."""
    return [each for each in fields if each[0].lower() != "content-encoding"]


def _split_trailers(fields: Fields) -> tuple[Fields, Fields]:
    """Return the header fields and the trailers of a gRPC response, which a HAR file may list
    behind them."""
    at = next(
        (at for at, (name, _) in enumerate(fields) if name.lower().startswith("grpc-status")),
        len(fields),
    )
    return fields[:at], fields[at:]


def _grpc_messages(body: bytes) -> list[bytes]:
    """Return the length-prefixed messages of a body; the last one may be cut."""
    found, at = [], 0
    while at < len(body):
        end = at + 5 + int.from_bytes(body[at + 1 : at + 5], "big")
        found.append(body[at:end])
        at = end
    return found
