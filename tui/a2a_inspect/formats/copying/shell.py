"""A call as a shell command: `curl` for HTTP, `grpcurl` for gRPC. ASCII only, so that it cannot
control a terminal."""

import json
import re
import shlex
from pathlib import Path

import a2a_proto
from a2a_inspect.formats.copying.call import CopiedCall, NotOffered
from a2a_proxy.model.values import Binding
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.protocol.schema import JSON, is_protobuf, split_schema

_PRINTABLE_ASCII = re.compile(r"[\t\n\r -~]*")
_DESCRIPTOR_FOLDERS = {
    "0.3": "v0_3",
    "1.0": "v1",
    "live-1975": "live1975",
    "live-2153": "live2153",
}
"""Protocol line -> folder of its descriptors."""


def curl_command(call: CopiedCall) -> str:
    """Return the command that sends the same request to the agent itself; `-N` prints stream events
    immediately."""
    if call.exchange.binding is Binding.GRPC:
        raise NotOffered("it was gRPC: copy it as grpcurl")
    words = ["curl", "-sS", *(["-N"] if call.exchange.streaming else [])]
    method = _http_method(call)
    body = _text_body(call)
    if body or method != "GET":
        words += ["-X", method]
    for name, value in call.list_headers():
        words += ["-H", _require_ascii(f"{name}: {value}")]
    if body:
        words += ["--data-raw", body]
    return shlex.join([*words, _require_ascii(call.url + call.exchange.target)])


def _http_method(call: CopiedCall) -> str:
    """Return the HTTP method; `exchange.method` has the JSON-RPC method if there is one."""
    return "POST" if call.exchange.binding is Binding.JSONRPC else call.exchange.method


def _text_body(call: CopiedCall) -> str:
    frame = call.first_request()
    try:
        text = frame.payload.decode()
    except UnicodeDecodeError:
        raise NotOffered("its body is not text") from None
    if frame.schema == JSON:  # JSON is ASCII outside of strings; in strings an escape is equivalent
        text = re.sub(r"[^\t\n\r -~]", lambda found: _json_escape(found[0]), text)
    if not _PRINTABLE_ASCII.fullmatch(text):
        raise NotOffered("its body has characters that are unsafe in a shell")
    return text


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))


def _require_ascii(text: str) -> str:
    if not _PRINTABLE_ASCII.fullmatch(text):
        raise NotOffered("its headers have characters that are unsafe in a shell")
    return text


def grpcurl_command(call: CopiedCall) -> str:
    """Return the command that sends the same messages to the agent itself.

    It uses this package's descriptors, so the agent needs no reflection.
    """
    if call.exchange.binding is not Binding.GRPC:
        raise NotOffered("it was not gRPC: copy it as curl")
    schema = call.first_request().schema
    if not is_protobuf(schema):
        raise NotOffered("its request is not a known message")
    folder = Path(a2a_proto.__file__).parent / _DESCRIPTOR_FOLDERS[split_schema(schema)[0]]
    words = [
        "grpcurl",
        *([] if call.is_tls else ["-plaintext"]),
        "-protoset",
        str(folder / "a2a.binpb"),
    ]
    for name, value in call.list_headers():
        if name.lower() not in ("content-type", "grpc-timeout"):
            words += ["-H", _require_ascii(f"{name}: {value}")]
    words += [
        "-d",
        "\n".join(_request_messages(call)),
        call.authority,
        _require_ascii(call.exchange.target.lstrip("/")),
    ]
    return shlex.join(words)


def _request_messages(call: CopiedCall) -> list[str]:
    """Return each request as JSON in one line. A live stream has several; all of them must be
    available."""
    if not call.is_complete:
        raise NotOffered("it has too many messages")
    found = []
    for frame in call.requests:
        value = None if frame.truncated else decode_payload(frame.payload, frame.schema)
        if value is None:
            raise NotOffered("one of its messages cannot be read")
        found.append(json.dumps(value))
    return found
