"""gRPC calls that concern push configurations, as messages that are edited."""

from collections.abc import Callable

from a2a_proxy.relay.edits.edit import WebhookUrls
from a2a_proxy.relay.edits.http2_messages import ChangedUrls, EditKind
from a2a_proxy.relay.edits.push_config import PushCall, edit_answer, edit_request, read_deleted

MAX_GRPC_PUSH_BYTES = 64 << 10
"""Bytes of a message that is held."""


class PushRequestEdit:
    """A `MessageEdit` of a request: the proxy's URLs in place of the client's."""

    kind: EditKind = "webhook"
    max_bytes = MAX_GRPC_PUSH_BYTES

    def __init__(self, call: PushCall, urls: WebhookUrls) -> None:
        self.call = call
        self.on_replaced: Callable[[], None] | None = None
        """Called after a URL was replaced."""
        self.replaced_urls: tuple[str, ...] = ()
        self._urls = urls

    def rewrite(self, payload: bytes) -> tuple[bytes, ChangedUrls] | None:
        """Return the new message and its changed URLs, or None if it stays unchanged."""
        if self.call.kind == "delete":
            self.call = PushCall("delete", self.call.form, read_deleted(self.call, payload))
            return None
        edit = edit_request(self.call, payload, self._urls)
        if edit is None:
            return None
        self.replaced_urls = tuple(after for _, after in edit.urls)
        if self.on_replaced is not None:
            self.on_replaced()
        return edit.payload, edit.urls

    def withdraw(self) -> None:
        """Forget the proxy's URLs: the agent did not get them, or refused the call."""
        for url in self.replaced_urls:
            self._urls.discard_url(url)

    def fail(self) -> None:
        """Do nothing: the client sent no message."""


class PushAnswerEdit:
    """A `MessageEdit` of the answer: the client's URLs in place of the proxy's."""

    kind: EditKind = "webhook"
    max_bytes = MAX_GRPC_PUSH_BYTES

    def __init__(self, request: PushRequestEdit, urls: WebhookUrls) -> None:
        self._request, self._urls = request, urls

    def rewrite(self, payload: bytes) -> tuple[bytes, ChangedUrls] | None:
        """Return the new message and its changed URLs, or None if it stays unchanged. An agent that
        deleted the configuration sends an empty message."""
        call = self._request.call
        if call.kind == "delete":
            self._urls.forget_config(call.config)
            return None
        edit = edit_answer(call, payload, self._urls)
        return None if edit is None else (edit.payload, edit.urls)

    def withdraw(self) -> None:
        """Do nothing: the client gets the URL that the agent has."""

    def fail(self) -> None:
        """Forget the URLs of a configuration that the agent refused."""
        self._request.withdraw()
