"""A small S3 server in this process with configurable responses, limited to the requests of
obstore."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET = "bucket"
CUT = -1
"""A result for which the request is carried out and the connection is closed without a response."""
_CODES = {403: "AccessDenied", 404: "NoSuchKey", 412: "PreconditionFailed", 503: "SlowDown"}


class Bucket:
    """The content of the only bucket, the received requests, and the results of the next
    requests."""

    def __init__(self, page: int) -> None:
        self.objects: dict[str, bytes] = {}
        self.asked: list[str] = []
        """Method and key of each request; of a listing `LIST` and the prefix."""
        self.answers: dict[str, list[int]] = {}
        """By method, `LIST` among them: HTTP statuses of the next ones, 0 for what is right, or
        CUT."""
        self.page = page
        """Keys of a listing's page."""
        self.endpoint = ""
        self.lock = threading.Lock()

    def answer(self, method: str, key: str) -> int:
        """Return the result of this request."""
        with self.lock:
            self.asked.append(f"{method} {key}")
            told = self.answers.get(method)
            return told.pop(0) if told else 0


@contextmanager
def s3_server(page: int = 1000) -> Iterator[Bucket]:
    """Serve a bucket on loopback."""
    bucket = Bucket(page)

    class Handler(_Handler):
        of = bucket

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    bucket.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield bucket
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    of: Bucket

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        told = self._told("PUT")
        if told > 0:
            return
        with self.of.lock:
            there = self._key in self.of.objects
            if not (there and self.headers["If-None-Match"] == "*"):
                self.of.objects[self._key] = data
                there = False
        if told == CUT:
            self.close_connection = True
        elif there:
            self._refuse(412)
        else:
            self._send(200, b"", ETag=_tag(data))

    def do_GET(self) -> None:
        asked = parse_qs(urlsplit(self.path).query)
        if "list-type" in asked:
            prefix = asked.get("prefix", [""])[0]
            if not self._told("LIST", prefix):
                self._list(
                    prefix,
                    asked.get("delimiter", [""])[0],
                    asked.get("continuation-token", [""])[0],
                )
            return
        if self._told("GET"):
            return
        data = self.of.objects.get(self._key)
        if data is None:
            self._refuse(404)
            return
        words = self.headers["Range"]
        if not words:
            self._send(200, data, ETag=_tag(data))
            return
        first, last = words.removeprefix("bytes=").split("-")
        part = data[int(first) : int(last) + 1]
        told = f"bytes {first}-{int(first) + len(part) - 1}/{len(data)}"
        self._send(206, part, ETag=_tag(data), **{"Content-Range": told})

    @property
    def _key(self) -> str:
        return unquote(urlsplit(self.path).path).removeprefix(f"/{BUCKET}/")

    def _told(self, method: str, key: str | None = None) -> int:
        """Return the result of the request. An error response has then already been sent."""
        told = self.of.answer(method, self._key if key is None else key)
        if told > 0:
            self._refuse(told)
        return told

    def _list(self, prefix: str, delimiter: str, after: str) -> None:
        found: dict[str, str] = {}
        for key, data in sorted(self.of.objects.items()):
            head, cut, _ = (
                key.removeprefix(prefix).partition(delimiter) if delimiter else (key, "", "")
            )
            if key.startswith(prefix) and cut:
                name = f"{prefix}{head}{cut}"
                found[name] = f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
            elif key.startswith(prefix):
                found[key] = (
                    f"<Contents><Key>{escape(key)}</Key><Size>{len(data)}</Size><ETag>{escape(_tag(data))}</ETag>"
                    "<LastModified>2026-11-22T00:00:00.000Z</LastModified></Contents>"
                )
        left = [name for name in found if name > after]
        page = left[: self.of.page]
        more = len(left) > len(page)
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        text = "".join(found[name] for name in page)
        body = (
            f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>"
            f"{token}{text}</ListBucketResult>"
        )
        self._send(200, body.encode(), **{"Content-Type": "application/xml"})

    def _refuse(self, status: int) -> None:
        code = _CODES[status]
        body = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>"
        self._send(status, body.encode(), **{"Content-Type": "application/xml"})

    def _send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Last-Modified": "Sun, 22 Nov 2026 00:00:00 GMT", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def _tag(data: bytes) -> str:
    return f'"{hashlib.sha256(data).hexdigest()[:32]}"'
