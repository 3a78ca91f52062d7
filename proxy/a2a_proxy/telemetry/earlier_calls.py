"""Facts about a call from earlier calls: the attempts of a push notification, the stream that a
call continues."""

from typing import Any
from urllib.parse import urlsplit

from a2a_proxy.model.values import Binding, Exchange, Task
from a2a_proxy.protocol.decoded import readable_payload
from a2a_proxy.protocol.errors import header_value
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, SessionRow, make_key
from a2a_proxy.telemetry.call_facts import PushDelivery

_TOKEN_HEADER = b"x-a2a-notification-token"
_CREATE_CONFIG = "CreateTaskPushNotificationConfig"
_SEND_OPERATIONS = ("SendMessage", "SendStreamingMessage")
_MAX_EARLIER_CALLS = 64
"""Maximum number of earlier calls of the task that are read, the most recent ones."""


class EarlierCalls:
    """Reads the earlier calls of one session."""

    def __init__(self, recording: Recording, session: SessionRow) -> None:
        self._recording = recording
        self._session = session

    def push_delivery(self, exchange: Exchange, task: Task | None) -> PushDelivery | None:
        """Return the delivery of a push notification; None for other calls."""
        if exchange.binding is not Binding.WEBHOOK:
            return None
        rows = self._earlier_calls_of_task(exchange, task)
        return PushDelivery(
            self._attempt_number(exchange, rows), self._is_token_valid(exchange, rows)
        )

    def interrupted_stream(self, exchange: Exchange, task: Task | None) -> int:
        """Return the number of the task's last stream that was cut before this call resumed it; 0
        if there is none. A call with `Last-Event-ID` continues any earlier stream, also a complete
        one."""
        asks = bool(header_value(exchange.request_headers, b"last-event-id"))
        if not exchange.streaming or not (asks or exchange.operation == "SubscribeToTask"):
            return 0
        for row in self._earlier_calls_of_task(exchange, task):
            before = row.exchange
            if (
                before.streaming
                and before.binding is not Binding.WEBHOOK
                and 0 < before.closed <= exchange.started
            ):
                return before.id if asks or before.how not in ("complete", "") else 0
        return 0

    def _earlier_calls_of_task(self, exchange: Exchange, task: Task | None) -> list[ExchangeRow]:
        """Return calls of the same task that began before this exchange, the last one first."""
        numbers = (
            [each for each in task.exchanges if each < exchange.id] if task is not None else []
        )
        keys = [
            make_key(self._session.id, each) for each in reversed(numbers[-_MAX_EARLIER_CALLS:])
        ]
        return [row for row in map(self._recording.read_exchange, keys) if row is not None]

    def _attempt_number(self, exchange: Exchange, rows: list[ExchangeRow]) -> int:
        body = self._first_payload(make_key(self._session.id, exchange.id))
        attempt = 1
        for row in rows:
            before = row.exchange
            if before.binding is not Binding.WEBHOOK or (
                before.authority,
                before.target,
            ) != (exchange.authority, exchange.target):
                continue
            if self._first_payload(row.key) == body:
                if 200 <= before.status < 300:
                    break
                attempt += 1
        return attempt

    def _is_token_valid(self, exchange: Exchange, rows: list[ExchangeRow]) -> bool | None:
        """Return whether the token is the client's, or None if unknown. Recordings have equal
        labels for equal tokens."""
        sent = header_value(exchange.request_headers, _TOKEN_HEADER).decode("latin-1")
        for row in rows:
            if row.exchange.operation in (_CREATE_CONFIG, *_SEND_OPERATIONS):
                config = self._push_config(row)
                if _is_config_target(config, exchange.target):
                    given = config.get("token")
                    given = given if isinstance(given, str) else ""
                    return sent == given if sent or given else None
        return None

    def _push_config(self, row: ExchangeRow) -> dict[str, Any]:
        """Return the push configuration in a request, in 1.0 form; empty if there is none."""
        found = next(iter(self._recording.read_frames(row.key, limit=1)), None)
        value = readable_payload(found.frame, row.exchange) if found is not None else None
        for name in (
            ()
            if row.exchange.operation == _CREATE_CONFIG
            else ("configuration", "taskPushNotificationConfig")
        ):
            value = value.get(name) if isinstance(value, dict) else None
        return value if isinstance(value, dict) else {}

    def _first_payload(self, row_key: int) -> bytes:
        found = next(iter(self._recording.read_frames(row_key, limit=1)), None)
        return found.frame.payload if found is not None else b""


def _is_config_target(config: dict[str, Any], target: str) -> bool:
    """Whether the configuration has this target; its host is ignored, because a proxy may listen
    under another name."""
    url = config.get("url")
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
    except ValueError:
        return False
    return (
        parts is not None
        and ((parts.path or "/") + (f"?{parts.query}" if parts.query else "")) == target
    )
