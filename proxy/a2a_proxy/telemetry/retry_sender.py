"""Send requests to a backend, with retries while it does not answer. The recording is the queue.

A refused request is given up at once, a failing one after a while, and both are counted. An
unanswered request waits. After a refusal the next request waits too: if the credentials are wrong
it would be refused as well, and a request that has not been sent is not lost.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol

import msgspec

from a2a_proxy.follower.hook_consumer import CallTally
from a2a_proxy.follower.status import FollowerNotice, Status
from a2a_proxy.telemetry.request_outcome import RequestOutcome, RequestResult
from a2a_proxy.telemetry.values import Attributes, LogValue, SpanValue

MAX_BATCH = 512
"""Maximum number of spans or log records in one request."""
MAX_REQUEST_BYTES = 2 << 20
"""Approximate maximum bytes of text in the spans of one request: gRPC receivers refuse messages of
more than 4 MiB."""
_PAUSE_SECONDS = (0.5, 1.0, 2.0, 5.0)
"""Seconds before the next try, and after a refusal before the next request; the last value
repeats."""
_GIVE_UP_SECONDS = 120.0
"""Seconds for which a request is retried if the backend answers with a failure."""
_SLEEP_SECONDS = 0.1


class Backend(Protocol):
    """Sends requests: `sdk.SdkBackend`."""

    def send_spans(self, resource: Attributes, spans: Sequence[SpanValue]) -> RequestOutcome:
        """Send one request."""

    def send_logs(self, resource: Attributes, logs: Sequence[LogValue]) -> RequestOutcome:
        """Send one request."""


class SenderClock(msgspec.Struct, frozen=True):
    """Clock of the sender, replaceable in tests."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


class RetrySender:
    """Sends to one backend. The follower of the recording sets `is_stopping` and `report_alive`."""

    def __init__(
        self,
        backend: Backend,
        backend_name: str,
        tally: CallTally,
        notify: Callable[[Status], None],
        clock: SenderClock | None = None,
    ) -> None:
        """`backend_name` is the name for users; `tally` counts calls by the span that ends each,
        lost ones as errors."""
        self._backend = backend
        self._backend_name = backend_name
        self._tally = tally
        self._notify = notify
        self._clock = clock or SenderClock()
        self._is_failing = False
        self._refused_kinds: set[str] = set()
        self._refusals = 0
        """Consecutive requests with spans that were refused."""
        self._takes_logs = True
        self.is_stopping: Callable[[], bool] = lambda: False
        self.report_alive: Callable[[], None] = lambda: None

    def send_spans(
        self,
        resource: Attributes,
        spans: Sequence[SpanValue],
        on_done: Callable[[int], None] = lambda _: None,
    ) -> bool:
        """Send spans; return True if they are settled (sent or given up), False if the process must
        stop. `on_done` is called after each request with the number of settled spans."""
        done = 0
        for some in split_requests(spans):
            if not self._send_request(resource, some):
                return False
            on_done(done := done + len(some))
        return True

    def _send_request(self, resource: Attributes, spans: Sequence[SpanValue]) -> bool:
        """Send one request, or several if it is too large for the backend; return False if the
        process must stop."""

        def send(part: Sequence[SpanValue]) -> RequestOutcome:
            if self._refusals:
                self._wait_seconds(_PAUSE_SECONDS[min(self._refusals, len(_PAUSE_SECONDS)) - 1])
            return self._send_with_retries(partial(self._backend.send_spans, resource, part))

        for part, outcome in send_in_parts(spans, send):
            if outcome.result is RequestResult.LATER:
                return False
            self._refusals = self._refusals + 1 if outcome.result is RequestResult.REFUSED else 0
            calls = sum(not each.part for each in part)
            lost = min(outcome.rejected, calls) if outcome.result is RequestResult.SENT else calls
            self._tally.calls += calls - lost
            self._tally.errors += lost
            if lost or outcome.result is not RequestResult.SENT:
                self._report_refusal("spans", outcome)
        return True

    def send_logs(self, resource: Attributes, logs: Sequence[LogValue]) -> None:
        """Send log records, which are not counted. After one refusal no more are sent."""
        for start in range(0, len(logs), MAX_BATCH):
            if not self._takes_logs:
                return
            some = logs[start : start + MAX_BATCH]
            outcome = self._send_with_retries(partial(self._backend.send_logs, resource, some))
            if outcome.result not in (RequestResult.SENT, RequestResult.LATER):
                self._report_refusal("log records", outcome)
            self._takes_logs = outcome.result is not RequestResult.REFUSED

    def _send_with_retries(self, send: Callable[[], RequestOutcome]) -> RequestOutcome:
        """Return SENT; REFUSED, FAILED or LARGE if the request is given up; LATER if the process
        must stop."""
        began, tries = self._clock.now(), 0
        while not self.is_stopping():
            self.report_alive()
            outcome = send()
            if outcome.result is RequestResult.SENT:
                if self._is_failing:
                    self._notify(FollowerNotice(f"OTLP: {self._backend_name} accepts spans again"))
                self._is_failing = False
                return outcome
            failed = (
                outcome.result is RequestResult.FAILED
                and self._clock.now() - began >= _GIVE_UP_SECONDS
            )
            if failed or outcome.result in (RequestResult.REFUSED, RequestResult.LARGE):
                return outcome
            self.report_failure(outcome)
            self._wait_seconds(_PAUSE_SECONDS[min(tries, len(_PAUSE_SECONDS) - 1)])
            tries += 1
        return RequestOutcome(RequestResult.LATER)

    def _wait_seconds(self, seconds: float) -> None:
        until = self._clock.now() + seconds
        while not self.is_stopping() and (left := until - self._clock.now()) > 0:
            self._clock.sleep(min(left, _SLEEP_SECONDS))

    def report_failure(self, outcome: RequestOutcome) -> None:
        """Report that the backend accepts nothing, once until it accepts a request again."""
        if not self._is_failing:
            self._is_failing = True
            message = f"OTLP: {self._backend_name} accepts nothing: {outcome.why}"
            self._notify(
                FollowerNotice(
                    message, "traffic and recording continue; unsent spans wait in the recording"
                )
            )

    def _report_refusal(self, kind: str, outcome: RequestOutcome) -> None:
        if kind in self._refused_kinds:
            return
        self._refused_kinds.add(kind)
        hint = (
            "refused spans are counted and given up; check the endpoint and "
            "OTEL_EXPORTER_OTLP_HEADERS"
        )
        if kind != "spans":
            hint = "no more log records are sent to it; turn them off with OTEL_LOGS_EXPORTER=none"
        self._notify(
            FollowerNotice(f"OTLP: {self._backend_name} refuses {kind}: {outcome.why}", hint)
        )


def split_requests(spans: Sequence[SpanValue]) -> Iterator[list[SpanValue]]:
    """Yield the spans in groups that fit one request; a span above the limit is alone in its
    group."""
    some: list[SpanValue] = []
    room = MAX_REQUEST_BYTES
    for span in spans:
        weight = _estimated_size(span)
        if some and (len(some) == MAX_BATCH or weight > room):
            yield some
            some, room = [], MAX_REQUEST_BYTES
        some.append(span)
        room -= weight
    if some:
        yield some


def send_in_parts(
    spans: Sequence[SpanValue], send: Callable[[Sequence[SpanValue]], RequestOutcome]
) -> Iterator[tuple[Sequence[SpanValue], RequestOutcome]]:
    """Send the spans, in halves (recursively) if they are too large for the backend. Yield each
    part with its outcome; parts are sent only as the iterator advances."""
    outcome = send(spans)
    if outcome.result is RequestResult.LARGE and len(spans) > 1:
        half = len(spans) // 2
        yield from send_in_parts(spans[:half], send)
        yield from send_in_parts(spans[half:], send)
    else:
        yield spans, outcome


def _estimated_size(span: SpanValue) -> int:
    """Return the approximate bytes of a span's attributes, with those of its events and links."""
    held = [
        span.attributes,
        *(each.attributes for each in span.events),
        *(each.attributes for each in span.links),
    ]
    pairs = (pair for each in held for pair in each.items())
    return sum(
        _ATTRIBUTE_OVERHEAD + len(name) + len(str(value).encode("utf-8", "replace"))
        for name, value in pairs
    )


_ATTRIBUTE_OVERHEAD = 16
"""Bytes of an attribute besides its name and value; for a number this is an overestimate."""
