"""Redaction of the payload of a frame by its schema: JSON, protobuf, trailers or other bytes."""

from __future__ import annotations

from base64 import b64decode, b64encode
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote_from_bytes, unquote_to_bytes

import msgspec

from a2a_proxy.redaction import json_hiding, json_walk, protobuf_hiding, protobuf_walk
from a2a_proxy.redaction.scrubber import Scrubber

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

_PLAIN = frozenset({"", "json", "text", "bytes", "trailers", "control"})


_UNQUOTED = " !\"#$&'()*+,/:;<=>?@[\\]^`{|}"
"""Characters that gRPC does not encode in a `grpc-message`: printable ASCII except the percent
sign."""


@lru_cache(maxsize=256)
def _secret_fields(schema: str) -> frozenset[int]:
    """Return the fields of a message in which only field numbers identify secrets: push
    configurations."""
    return frozenset().union(*map(protobuf_walk.secret_fields, protobuf_walk.find_shapes(schema)))


def fields_clean(schema: str, data: bytes) -> bool:
    """Whether a payload that is not suspicious is clean. Trailers, messages with secret or unknown
    fields, and JSON that ends inside a string may not be."""
    if schema == "json" or (schema in _PLAIN and _begins_as_json(data)):
        has_whole_strings = data.count(b'"') % 2 == 0 and data.find(b'\\"') < 0
        return schema != "trailers" and (has_whole_strings or json_walk.is_valid_json(data))
    if schema in _PLAIN:
        return schema != "trailers"
    fields = _secret_fields(schema)
    return (
        not fields or fields.isdisjoint(protobuf_walk.field_numbers(data))
    ) and not _has_unknown_field(schema, data)


def _has_unknown_field(schema: str, data: bytes) -> bool:
    """Whether no descriptor of the payload has all its fields, so that another one may be the
    sender's."""
    shapes = _shapes_with_credentials(schema)
    return bool(shapes) and all(protobuf_walk.has_unknown_field(data, each) for each in shapes)


@lru_cache(maxsize=256)
def _shapes_with_credentials(schema: str) -> tuple[Descriptor, ...]:
    """Return the descriptors of a payload that may hold credentials in some version; the events of
    a stream, of which there are many, hold none in any."""
    is_event = schema.partition("@")[0].endswith(".StreamResponse")
    return () if is_event else tuple(protobuf_walk.find_shapes(schema))


def _begins_as_json(data: bytes) -> bool:
    return data.lstrip()[:1] in (b"{", b"[", b'"')


def redact_payload(
    scrub: Scrubber, schema: str, data: bytes, *, cut: bool
) -> tuple[bytes, list[str]]:
    """Return the payload without secrets, and their paths. A payload without secrets is returned
    unchanged."""
    if schema == "trailers":
        return _redact_trailers(scrub, data)
    if schema in _PLAIN:
        return _json_or_text(scrub, data, cut)
    return _redact_protobuf(scrub, schema, data, cut)


def replace_texts(schema: str, data: bytes, clean: dict[bytes, bytes]) -> tuple[bytes, list[str]]:
    """Return a message with other texts in its parts, and their paths. `clean` has the new text of
    each old one."""

    def replace(value: bytes, name: str | None, cut: bool) -> bytes | None:  # noqa: ARG001 - as `json_walk.Replace`
        return clean.get(value) if name == "text" else None

    if schema == "json":
        return json_walk.redact_json(data, replace)
    return protobuf_walk.redact_message(data, _find_shapes(schema)[0], replace)


def _json_or_text(scrub: Scrubber, data: bytes, cut: bool) -> tuple[bytes, list[str]]:
    if not _begins_as_json(data):
        new = scrub.redact_text(data, cut=cut)
        return new, ["$"] if new != data else []
    hidden: list[str] = []
    if scrub.hidden is not None:
        data, hidden = json_hiding.hide_json_values(data, scrub.hidden, scrub.hide_value)
    new, paths = json_walk.redact_json(data, scrub.redact_string, scrub.spared)
    paths = hidden + paths
    if json_walk.is_valid_json(data):
        return new, paths
    # Broken JSON: the bounds of strings are a guess, so text that looks like a secret is replaced
    # too.
    text = scrub.redact_text(new, cut=cut)
    return text, paths if text == new else [*paths, "$"]


def _redact_protobuf(
    scrub: Scrubber, schema: str, data: bytes, cut: bool
) -> tuple[bytes, list[str]]:
    suspicious = cut or scrub.may_hold_secret(data) or _has_unknown_field(schema, data)
    paths: dict[str, None] = {}
    new = data
    for shape in _find_shapes(schema):
        if shape is not None and not suspicious and not protobuf_walk.names_secret(shape):
            continue
        try:
            if scrub.hidden is not None:
                new, found = protobuf_hiding.hide_protobuf_values(
                    new, shape, scrub.hidden, scrub.hide_value, cut=cut
                )
                paths.update(dict.fromkeys(found))
            if scrub.spared is not None:
                new, found = protobuf_hiding.walk_sparing(
                    new, shape, scrub.redact_string, scrub.spared, cut=cut
                )
            else:
                new, found = protobuf_walk.redact_message(
                    new, shape, scrub.redact_string, named_only=not suspicious, cut=cut
                )
            paths.update(dict.fromkeys(found))
        except protobuf_walk.Malformed:
            text = scrub.redact_text(new, cut=cut)
            paths.update({"$": None} if text != new else {})
            new = text
    return new, list(paths)


def _find_shapes(schema: str) -> list[Descriptor | None]:
    """Return the possible descriptors of the payload; `[None]` for a message without a
    descriptor."""
    return [*protobuf_walk.find_shapes(schema)] or [None]


def _redact_trailers(scrub: Scrubber, data: bytes) -> tuple[bytes, list[str]]:
    """Redact trailers, a JSON list of name and value. `grpc-message` is percent-encoded, `-bin`
    values are base64."""
    try:
        pairs = msgspec.json.decode(data, type=list[tuple[str, str]])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _json_or_text(scrub, data, False)
    paths: list[str] = []
    new: list[tuple[str, str]] = []
    for name, value in pairs:
        clean = redact_header(scrub, name.encode(), value.encode()).decode("utf-8", "replace")
        new.append((name, clean))
        if clean != value:
            paths.append(f"trailer:{name.lower()}")
    return (msgspec.json.encode(new), paths) if paths else (data, paths)


def redact_header(scrub: Scrubber, name: bytes, value: bytes) -> bytes:
    """Return a header or trailer value without secrets; decodes `grpc-message` and base64 or raw
    `-bin` values."""
    low = name.lower()
    if not scrub.holds_secret(name):
        if low == b"grpc-message":
            plain = unquote_to_bytes(value)
            clean = scrub.redact_text(plain)
            return value if clean == plain else quote_from_bytes(clean, safe=_UNQUOTED).encode()
        if low.endswith(b"-bin"):
            return _redact_binary(scrub, low, value)
    return scrub.redact_header(name, value)


def _redact_binary(scrub: Scrubber, low: bytes, value: bytes) -> bytes:
    """Redact a `-bin` value: base64 with or without padding, or (gRPC C-core) a NUL and the
    bytes."""
    schema = "google.rpc.Status" if low == b"grpc-status-details-bin" else "google.rpc.Unknown"
    if value[:1] == b"\0":
        clean = _redact_protobuf(scrub, schema, value[1:], False)[0]
        return value if clean == value[1:] else b"\0" + clean
    try:
        data = b64decode(value.rstrip(b"=") + b"=" * (-len(value.rstrip(b"=")) % 4), validate=True)
    except ValueError:
        return scrub.redact_text(value)
    clean = _redact_protobuf(scrub, schema, data, False)[0]
    if clean == data:
        return value
    encoded = b64encode(clean)
    return encoded if value.endswith(b"=") else encoded.rstrip(b"=")
