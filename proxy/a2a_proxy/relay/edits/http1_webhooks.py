"""HTTP/1.1 messages that concern push configurations: which requests are held, and what they
become."""

import msgspec

from a2a_proxy.http.h1 import CHUNKED, decode_chunked, header_field, split_chunked
from a2a_proxy.relay.edits.card_response import (
    MOST_TOKENS,
    TOO_MANY_MEMBERS,
    UNKNOWN_CODING,
    count_tokens,
)
from a2a_proxy.relay.edits.edit import WebhookUrls
from a2a_proxy.relay.edits.http1_message import replace_fields
from a2a_proxy.relay.edits.push_config import (
    HINTS,
    PushCall,
    UrlEdit,
    classify_jsonrpc,
    classify_rest,
    edit_answer,
    edit_request,
    is_failure,
)


class HeldRequest(msgspec.Struct):
    """A request whose body may have the URL of a webhook."""

    head: bytes
    """The head as it is sent if the body does not change."""
    method: bytes
    target: bytes
    framing: int
    offset: int
    """Bytes of the direction before the request's body."""
    deadline: float
    parts: list[bytes] = msgspec.field(default_factory=list)
    """The body as received, its framing included."""
    size: int = 0
    """Bytes of head and body."""

    def add(self, part: bytes) -> None:
        """Hold more bytes of the body."""
        self.parts.append(part)
        self.size += len(part)

    def count_lines(self) -> int:
        """Return the number of lines in the body."""
        return sum(part.count(b"\n") for part in self.parts)

    @property
    def raw(self) -> bytes:
        """The bytes to send if nothing changes."""
        return b"".join((self.head, *self.parts))


class RequestEdit(msgspec.Struct, frozen=True):
    """The result of examining a held request."""

    sent: bytes
    push: PushCall | None = None
    """The call, if it concerns push configurations."""
    edit: UrlEdit | None = None
    """The changed URLs; None if the request stays unchanged."""


def refuse_hold(head: bytes) -> str:
    """Return why a request with a body cannot be held, or an empty text."""
    return "its client waits for 100 Continue" if b"\r\nexpect:" in head.lower() else ""


def edit_held_request(held: HeldRequest, urls: WebhookUrls) -> RequestEdit | str:
    """Return what a complete request becomes, or why it cannot be examined."""
    raw = held.raw
    push = classify_rest(held.method, held.target)
    coding = header_field(held.head, b"content-encoding")
    body = b"".join(held.parts)
    if held.framing == CHUNKED:
        body = decode_chunked(body)
    if coding is not None and coding.lower() != b"identity":
        return UNKNOWN_CODING if push is not None else RequestEdit(raw)
    if not any(hint in body for hint in HINTS) and (push is None or push.kind == "send"):
        return RequestEdit(raw, push)
    if count_tokens(body) > MOST_TOKENS:
        return TOO_MANY_MEMBERS
    push = push or classify_jsonrpc(body)
    edit = edit_request(push, body, urls) if push is not None else None
    if edit is None:
        return RequestEdit(raw, push)
    return RequestEdit(_encode_request(held, edit.payload), push, edit)


def _encode_request(held: HeldRequest, body: bytes) -> bytes:
    if held.framing != CHUNKED:
        return replace_fields(held.head, {b"content-length": b"%d" % len(body)}) + body
    trailers = split_chunked(b"".join(held.parts))[1]
    return b"%s%x\r\n%s\r\n0\r\n%s" % (held.head, len(body), body, trailers)


def edit_held_answer(
    push: PushCall, status: int, payload: bytes, replaced: tuple[str, ...], urls: WebhookUrls
) -> UrlEdit | None:
    """Return the edit of a whole answer, or None if it stays unchanged. `replaced` are the URLs of
    the proxy that the request was sent with."""
    failed = is_failure(push, status, payload)
    if failed:
        for url in replaced:
            urls.discard_url(url)
    elif push.kind == "delete":
        urls.forget_config(push.config)
    return None if failed else edit_answer(push, payload, urls)
