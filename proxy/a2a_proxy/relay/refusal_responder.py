"""The interface between a relayed connection and the responder that answers its client if there is
no upstream."""

from typing import Protocol


class RefusalResponder(Protocol):
    """Answers a client whose upstream cannot be reached (`refusal`)."""

    is_done: bool
    """Whether the responder sends nothing more."""

    def feed(self, data: bytes) -> bytes:
        """Return the bytes to send in answer to these bytes of the client."""

    def finish(self) -> bytes:
        """Return the bytes to send if the client's request is not waited for any longer."""
