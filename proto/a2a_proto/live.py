"""Detects which of three payload families a SendLiveMessage stream carries, from field keys alone,
without protobuf.

The signs are listed in manual/protocol.md "Live payload detection".

BIDI sends SendMessageRequest and receives StreamResponse. `1975` wraps both and adds media frames.
`2153` sends StreamRequest and receives a StreamResponse with one more kind of event. All three use
the same `:path`.
"""

from typing import Final, Literal

LivePayload = Literal["bidi", "1975", "2153", ""]
"""The payload family, or an empty string if the bytes do not determine it."""

_VARINT: Final = 0
_LENGTH_DELIMITED: Final = 2

_Fields = dict[int, tuple[int, int, bytes]]
"""Field number to (wire type, varint value or 0, content of a LEN field or empty). The last
occurrence wins."""


def detect_live(
    first_client_message: bytes | None, first_server_message: bytes | None
) -> LivePayload:
    """Return the family of a live stream from the first message of each side (None if it has not
    arrived yet).

    Much of BIDI also parses as 2153 and is reported as `bidi` until the agent's messages contradict
    that: call again with a later message if the difference matters. Never raises.
    """
    client = (
        _family_of_client_message(_parse_fields(first_client_message))
        if first_client_message
        else ""
    )
    if client in ("1975", "2153"):
        return client
    server = (
        _family_of_server_message(_parse_fields(first_server_message))
        if first_server_message
        else ""
    )
    return server or client


def proves_bidi(client_message: bytes) -> bool:
    """Whether the message has a configuration, which only a SendMessageRequest has. Never
    raises."""
    fields = _parse_fields(client_message)
    return bool(fields) and _family_of_client_message(fields) == "bidi" and 3 in (fields or {})


def _family_of_client_message(fields: _Fields | None) -> LivePayload:
    if not fields:
        return ""
    if _is_send_request(_inner_fields(fields, 1)):
        return "1975"
    kind = _message_or_media(_inner_fields(fields, 2))
    if kind == "media":
        return "1975"
    if 3 in fields:
        return _family_by_field_3(_inner_fields(fields, 3))
    return "bidi" if kind == "message" else ""


def _is_send_request(fields: _Fields | None) -> bool:
    """Whether field 1 holds a SendMessageRequest of 1.0; in the other families it holds the name of
    the tenant."""
    message = _inner_fields(fields, 2) if fields else None
    if not message:
        return False
    return _readable_text(message, 1) != "" and message.get(4, (_LENGTH_DELIMITED, 0, b""))[:2] in (
        (_VARINT, 1),
        (_VARINT, 2),
    )


def _message_or_media(fields: _Fields | None) -> Literal["message", "media", ""]:
    """Classify field 2: a Message (inner 1 is its id) or a MediaFrame (inner 1 is a Part).

    Inner 4 is a number in both.
    """
    if not fields:
        return ""
    kinds = {number: kind for number, (kind, _, _) in fields.items()}
    if kinds.get(2) == _VARINT or kinds.get(3) == _VARINT:
        return "media"
    if _readable_text(fields, 1):
        return "message"
    if 1 in fields and _is_part(_inner_fields(fields, 1)):
        return "media"
    # A role is 1 or 2; the markers of a media flow have values up to 5.
    return "media" if fields.get(4, (_LENGTH_DELIMITED, 0, b""))[1] > 2 else "message"


def _is_part(fields: _Fields | None) -> bool:
    return bool(fields) and all(
        1 <= number <= 7 and kind == _LENGTH_DELIMITED
        for number, (kind, _, _) in (fields or {}).items()
    )


def _family_by_field_3(fields: _Fields | None) -> LivePayload:
    """Classify by field 3: the configuration in BIDI, an artifact of the client in 2153."""
    if fields is None:
        return ""
    third = fields.get(3)
    if third is not None:
        return "bidi" if third[0] == _VARINT else "2153"
    # Without an inner field 3, field 1 is a media type, which contains a slash, or a task id.
    return "2153" if 1 in fields and b"/" not in fields[1][2] else "bidi"


def _family_of_server_message(fields: _Fields | None) -> LivePayload:
    if not fields:
        return ""
    if 5 in fields:
        return "2153"
    if 1 in fields:
        return _family_by_field_1(_inner_fields(fields, 1))
    kind = _message_or_media(_inner_fields(fields, 2))
    if kind:
        return "1975" if kind == "media" else "bidi"
    return "bidi" if 3 in fields or 4 in fields else ""


def _family_by_field_1(fields: _Fields | None) -> LivePayload:
    """Classify by field 1 of the agent: a StreamResponse (one field of 1 to 4, a message) or a Task
    (inner 1 is its id)."""
    if not fields:
        return ""
    if 9 in fields:  # the elicitations of a task; only 2153 uses this number
        return "2153"
    if _readable_text(fields, 1):
        return "bidi"
    return (
        "1975"
        if len(fields) == 1
        and fields.keys() <= {1, 2, 3, 4}
        and _inner_fields(fields, next(iter(fields)))
        else ""
    )


def _readable_text(fields: _Fields, number: int) -> str:
    """Return the field as text if all of it is printable, else "". A message starts with control
    characters."""
    try:
        text = fields[number][2].decode("utf-8")
    except (KeyError, UnicodeDecodeError):
        return ""
    return text if text.isprintable() else ""


def _inner_fields(fields: _Fields, number: int) -> _Fields | None:
    """Return the content of a LEN field parsed as a message, or None if it is absent or not a
    message."""
    found = fields.get(number)
    return _parse_fields(found[2]) if found is not None and found[0] == _LENGTH_DELIMITED else None


def _parse_fields(data: bytes) -> _Fields | None:
    """Return the top-level fields of a message, or None if the bytes are not a message. proto3 has
    no groups."""
    fields: _Fields = {}
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        kind, number = key & 7, key >> 3
        if at < 0 or not number or kind not in (_VARINT, 1, _LENGTH_DELIMITED, 5):
            return None
        value, content = 0, b""
        if kind == _VARINT:
            value, at = read_varint(data, at)
        elif kind == _LENGTH_DELIMITED:
            size, at = read_varint(data, at)
            content, at = data[at : at + size], at + size if at >= 0 else at
        else:
            at += 8 if kind == 1 else 4
        if not 0 <= at <= len(data):
            return None
        fields[number] = (kind, value, content)
    return fields


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a base-128 number and the offset after it, or the offset -1 if it does not end within
    ten bytes."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    return 0, -1
