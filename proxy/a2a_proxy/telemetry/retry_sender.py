"""Brings requests to a backend, again and again where it does not answer. The recording is the queue.

What a backend refuses is given up at once, what it fails with after a while, both counted. What nobody answers waits,
and so does what comes after something refused: where credentials are wrong the next request is refused too, and what is
not offered yet is neither lost nor made in vain.
"""

from __future__ import annotations

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
"""Spans, or log records, of one request."""
MAX_REQUEST_BYTES = 2 << 20
"""Bytes of text in the spans of one request, about: receivers of gRPC refuse messages of more than 4 MiB."""
_PAUSE_SECONDS = (0.5, 1.0, 2.0, 5.0)
"""Seconds before the next try, and after what was refused before the next request; the last one holds."""
_GIVE_UP_SECONDS = 120.0
"""Seconds for which a request is tried again that the backend answers with a failure."""
_SLEEP_SECONDS = 0.1


class Backend(Protocol):
    """What sends: `sdk.Backend`."""

    def send_spans(self, resource: Attributes, spans: Sequence[SpanValue]) -> RequestOutcome:
        """One request."""

    def send_logs(self, resource: Attributes, logs: Sequence[LogValue]) -> RequestOutcome:
        """One request."""


class SenderClock(msgspec.Struct, frozen=True):
    """Time, as the sender; told to stop -> stopped sees it."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


class RetrySender:
    """For one backend. `stopping` and `alive` are set by whoever follows the recording."""

    def __init__(
        self,
        backend: Backend,
        backend_name: str,
        tally: CallTally,
        notify: Callable[[Status], None],
        clock: SenderClock | None = None,
    ) -> None:
        """`backend_name` is what the backend is called; `tally` has calls by the span that ends each, lost ones as
        errors."""
        self._backend = backend
        self._backend_name = backend_name
        self._tally = tally
        self._notify = notify
        self._clock = clock or SenderClock()
        self._is_failing = False
        self._refused_kinds: set[str] = set()
        self._refusals = 0
        """Requests with spans that were refused since one was taken."""
        self._takes_logs = True
        self.is_stopping: Callable[[], bool] = lambda: False
        self.report_alive: Callable[[], None] = lambda: None

    def send_spans(
        self, resource: Attributes, spans: Sequence[SpanValue], on_done: Callable[[int], None] = lambda _: None
    ) -> bool:
        """Bring them; True where that is settled, one way or the other, False where it was told to stop. `on_done` is
        told after each request how many are."""
        done = 0
        for some in split_requests(spans):
            if not self._send_request(resource, some):
                return False
            on_done(done := done + len(some))
        return True

    def _send_request(self, resource: Attributes, spans: Sequence[SpanValue]) -> bool:
        """One request, or more where a backend takes less at once; False where it was told to stop."""

        def send(part: Sequence[SpanValue]) -> RequestOutcome:
            if self._refusals:
                self._pause(_PAUSE_SECONDS[min(self._refusals, len(_PAUSE_SECONDS)) - 1])
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
        """The same for log records, which are not counted. A backend that refuses them once gets no more."""
        for start in range(0, len(logs), MAX_BATCH):
            if not self._takes_logs:
                return
            some = logs[start : start + MAX_BATCH]
            outcome = self._send_with_retries(partial(self._backend.send_logs, resource, some))
            if outcome.result not in (RequestResult.SENT, RequestResult.LATER):
                self._report_refusal("log records", outcome)
            self._takes_logs = outcome.result is not RequestResult.REFUSED

    def _send_with_retries(self, send: Callable[[], RequestOutcome]) -> RequestOutcome:
        """SENT; REFUSED, FAILED or LARGE where it is not tried again; LATER where it was told to stop before."""
        began, tries = self._clock.now(), 0
        while not self.is_stopping():
            self.report_alive()
            outcome = send()
            if outcome.result is RequestResult.SENT:
                self._report_recovery()
                return outcome
            failed = outcome.result is RequestResult.FAILED and self._clock.now() - began >= _GIVE_UP_SECONDS
            if failed or outcome.result in (RequestResult.REFUSED, RequestResult.LARGE):
                return outcome
            self._report_failure(outcome)
            self._pause(_PAUSE_SECONDS[min(tries, len(_PAUSE_SECONDS) - 1)])
            tries += 1
        return RequestOutcome(RequestResult.LATER)

    def _pause(self, seconds: float) -> None:
        until = self._clock.now() + seconds
        while not self.is_stopping() and (left := until - self._clock.now()) > 0:
            self._clock.sleep(min(left, _SLEEP_SECONDS))

    def _report_recovery(self) -> None:
        if self._is_failing:
            self._notify(FollowerNotice(f"OTLP: {self._backend_name} takes spans again"))
        self._is_failing = False

    def _report_failure(self, outcome: RequestOutcome) -> None:
        if not self._is_failing:
            self._is_failing = True
            message = f"OTLP: {self._backend_name} takes nothing: {outcome.why}"
            self._notify(
                FollowerNotice(message, "traffic and recording go on; what is not sent waits in the recording")
            )

    def _report_refusal(self, kind: str, outcome: RequestOutcome) -> None:
        if kind in self._refused_kinds:
            return
        self._refused_kinds.add(kind)
        hint = "what it refuses is counted and given up; check the endpoint and OTEL_EXPORTER_OTLP_HEADERS"
        if kind != "spans":
            hint = "it gets no more of them; OTEL_LOGS_EXPORTER=none does not offer them"
        self._notify(FollowerNotice(f"OTLP: {self._backend_name} refuses {kind}: {outcome.why}", hint))


def split_requests(spans: Sequence[SpanValue]) -> Iterator[list[SpanValue]]:
    """The spans in groups that one request can have each; one that is larger goes alone."""
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
    """Send them, where that is too much for the backend each half, and so on: what was sent at once, and how that
    went. What is not asked for is not sent."""
    outcome = send(spans)
    if outcome.result is RequestResult.LARGE and len(spans) > 1:
        half = len(spans) // 2
        yield from send_in_parts(spans[:half], send)
        yield from send_in_parts(spans[half:], send)
    else:
        yield spans, outcome


def _estimated_size(span: SpanValue) -> int:
    """Bytes of its attributes and those of its events and links, about."""
    held = [span.attributes, *(each.attributes for each in span.events), *(each.attributes for each in span.links)]
    pairs = (pair for each in held for pair in each.items())
    return sum(_ATTRIBUTE_OVERHEAD + len(name) + len(str(value).encode("utf-8", "replace")) for name, value in pairs)


_ATTRIBUTE_OVERHEAD = 16
"""Bytes of an attribute besides its name and value; of a number more than it has."""
