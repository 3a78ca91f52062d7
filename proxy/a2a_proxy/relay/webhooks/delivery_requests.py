"""Deliveries of one agent on one HTTP/1.1 connection: each request gets the receiver for which its
URL stands.

A request of the forward proxy's kind (`edits.http1_forward`) whose origin comes from the
registration, and from nothing that the agent sends.
"""

from a2a_proxy.http.h1 import MAX_HEAD_BYTES
from a2a_proxy.relay.edits.http1_forward import ForwardTarget, Http1Forward
from a2a_proxy.relay.problem import Problem
from a2a_proxy.relay.webhooks.agent_urls import is_allowed_source
from a2a_proxy.relay.webhooks.registration import is_key, parse_receiver
from a2a_proxy.relay.webhooks.registry import WebhookRegistry

MAX_DELIVERY_BYTES = 16 * 1024 * 1024
"""Bytes of the body of a delivery."""

_NO_DELIVERY = Problem(
    404,
    "Not Found",
    "a2a-proxy takes only deliveries to webhooks at this port",
    "the agent must post to the URL that it was given",
)
_LEADS_OUT = Problem(
    400,
    "Bad Request",
    "a2a-proxy refuses this delivery: its path leads out of the webhook's URL",
    "the agent must post to the URL that it was given, or below it",
)
_TOO_LARGE = Problem(
    413,
    "Content Too Large",
    f"a2a-proxy refuses this delivery: it has more than {MAX_DELIVERY_BYTES >> 20} MiB",
    "the agent must send smaller notifications",
)


class DeliveryRequests(Http1Forward):
    """The deliveries and responses of one agent's connection."""

    may_repeat = False
    """False, because a registration may end between two deliveries."""

    def __init__(self, registry: WebhookRegistry, source: str) -> None:
        """Create the requests of a client at the IP address `source`."""
        super().__init__()
        self._registry = registry
        self._source = source
        self._sent_bytes = 0
        """Bytes of the current delivery that were forwarded, its head included."""
        self._found = 0
        """Deliveries whose receiver was found and that are not in `edit_count` yet."""
        self.agent = ""
        """The agent of the latest delivery, as its registration names it."""
        self.edit_count = 0
        """Deliveries that were sent to the current receiver since the owner last set this to 0."""

    def read_requests(self, data: bytes) -> tuple[bytes, int]:
        """Return the bytes to send to `origin` and the index up to which `data` was handled, as
        long as the delivery is not too long."""
        sent, position = super().read_requests(data)
        self._sent_bytes += len(sent)
        waiting = int(self.next_origin is not None)
        self.edit_count += self._found - waiting
        self._found = waiting
        if self._sent_bytes > MAX_DELIVERY_BYTES + MAX_HEAD_BYTES and self.refusal is None:
            self.refusal = _TOO_LARGE
            return b"", position
        return sent, position

    def begin_origin(self) -> bytes:
        """Make the next receiver the current one, and return the first bytes for it."""
        self.edit_count, self._found = self.edit_count + self._found, 0
        return super().begin_origin()

    def parse_target(self, method: bytes, target: bytes, framing: int) -> ForwardTarget | Problem:  # noqa: ARG002
        """Return the receiver, the value of `Host` and the target for it; or the answer to another
        request."""
        path, _, query = target.decode("latin-1").partition("?")
        segments = path.split("/")
        place = next((place for place, segment in enumerate(segments) if is_key(segment)), None)
        found = self._registry.find(segments[place]) if place is not None else None
        receiver = parse_receiver(found.url) if found is not None else None
        if place is None:
            return _NO_DELIVERY
        if found is None or receiver is None:
            return _refuse_unknown(self._source)
        if not is_allowed_source(found, self._source):
            return _refuse_source(self._source, found.agent)
        if framing > MAX_DELIVERY_BYTES:
            return _TOO_LARGE
        rest = "".join(f"/{segment}" for segment in segments[place + 1 :])
        joined = receiver.join_target(rest, query)
        if joined is None:
            return _LEADS_OUT
        self._sent_bytes = 0
        self.agent = found.agent
        self._found += 1
        return receiver.origin, receiver.authority.encode("ascii"), joined.encode("latin-1")


def _refuse_unknown(source: str) -> Problem:
    return Problem(
        404,
        "Not Found",
        f"a2a-proxy has no webhook for a delivery from {source}: it was deleted, or is older than "
        f"30 days",
        "delete the push notification configuration at that agent",
    )


def _refuse_source(source: str, agent: str) -> Problem:
    return Problem(
        403,
        "Forbidden",
        f"a2a-proxy refuses this delivery: {source} is not the address of the agent {agent}",
        "if the agent delivers from another address, allow any: --webhook-url URL",
    )
