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
from a2a_proxy.telemetry.request_outcome import Outcome, RequestResult
from a2a_proxy.telemetry.values import Attributes, LogValue, SpanValue

BATCH = 512
"""Spans, or log records, of one request."""
OCTETS = 2 << 20
"""Octets of text in the spans of one request, about: receivers of gRPC refuse messages of more than 4 MiB."""
_PAUSES = (0.5, 1.0, 2.0, 5.0)
"""Seconds before the next try, and after what was refused before the next request; the last one holds."""
_FAILING = 120.0
"""Seconds for which a request is tried again that the backend answers with a failure."""
_STEP = 0.1


class Backend(Protocol):
    """What sends: `sdk.Backend`."""

    def send_spans(self, resource: Attributes, spans: Sequence[SpanValue]) -> Outcome:
        """One request."""

    def send_logs(self, resource: Attributes, logs: Sequence[LogValue]) -> Outcome:
        """One request."""


class SenderClock(msgspec.Struct, frozen=True):
    """Time, as the courier sees it."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


class RetrySender:
    """For one backend. `stopping` and `alive` are set by whoever follows the recording."""

    def __init__(
        self,
        backend: Backend,
        where: str,
        count: CallTally,
        tell: Callable[[Status], None],
        clock: SenderClock | None = None,
    ) -> None:
        """`where` is what the backend is called; `count` has calls by the span that ends each, lost ones as errors."""
        self._backend = backend
        self._where = where
        self._count = count
        self._tell = tell
        self._clock = clock or SenderClock()
        self._troubled = False
        self._refused: set[str] = set()
        self._refusals = 0
        """Requests with spans that were refused since one was taken."""
        self._takes_logs = True
        self.stopping: Callable[[], bool] = lambda: False
        self.alive: Callable[[], None] = lambda: None

    def spans(
        self, resource: Attributes, spans: Sequence[SpanValue], settled: Callable[[int], None] = lambda _: None
    ) -> bool:
        """Bring them; True where that is settled, one way or the other, False where it was told to stop. `settled` is
        told after each request how many are."""
        done = 0
        for some in requests(spans):
            if not self._settled(resource, some):
                return False
            settled(done := done + len(some))
        return True

    def _settled(self, resource: Attributes, some: Sequence[SpanValue]) -> bool:
        """One request, or more where a backend takes less at once; False where it was told to stop."""

        def send(part: Sequence[SpanValue]) -> Outcome:
            if self._refusals:
                self._pause(_PAUSES[min(self._refusals, len(_PAUSES)) - 1])
            return self._brought(partial(self._backend.send_spans, resource, part))

        for part, outcome in in_parts(some, send):
            if outcome.answer is RequestResult.LATER:
                return False
            self._refusals = self._refusals + 1 if outcome.answer is RequestResult.REFUSED else 0
            calls = sum(not each.part for each in part)
            lost = min(outcome.rejected, calls) if outcome.answer is RequestResult.SENT else calls
            self._count.calls += calls - lost
            self._count.errors += lost
            if lost or outcome.answer is not RequestResult.SENT:
                self._given_up("spans", outcome)
        return True

    def logs(self, resource: Attributes, logs: Sequence[LogValue]) -> None:
        """The same for log records, which are not counted. A backend that refuses them once gets no more."""
        for start in range(0, len(logs), BATCH):
            if not self._takes_logs:
                return
            some = logs[start : start + BATCH]
            outcome = self._brought(partial(self._backend.send_logs, resource, some))
            if outcome.answer not in (RequestResult.SENT, RequestResult.LATER):
                self._given_up("log records", outcome)
            self._takes_logs = outcome.answer is not RequestResult.REFUSED

    def _brought(self, send: Callable[[], Outcome]) -> Outcome:
        """SENT; REFUSED, FAILED or LARGE where it is not tried again; LATER where it was told to stop before."""
        began, tries = self._clock.now(), 0
        while not self.stopping():
            self.alive()
            outcome = send()
            if outcome.answer is RequestResult.SENT:
                self._well()
                return outcome
            failed = outcome.answer is RequestResult.FAILED and self._clock.now() - began >= _FAILING
            if failed or outcome.answer in (RequestResult.REFUSED, RequestResult.LARGE):
                return outcome
            self._trouble(outcome)
            self._pause(_PAUSES[min(tries, len(_PAUSES) - 1)])
            tries += 1
        return Outcome(RequestResult.LATER)

    def _pause(self, seconds: float) -> None:
        until = self._clock.now() + seconds
        while not self.stopping() and (left := until - self._clock.now()) > 0:
            self._clock.sleep(min(left, _STEP))

    def _well(self) -> None:
        if self._troubled:
            self._tell(FollowerNotice(f"OTLP: {self._where} takes spans again"))
        self._troubled = False

    def _trouble(self, outcome: Outcome) -> None:
        if not self._troubled:
            self._troubled = True
            told = f"OTLP: {self._where} takes nothing: {outcome.why}"
            self._tell(FollowerNotice(told, "traffic and recording go on; what is not sent waits in the recording"))

    def _given_up(self, what: str, outcome: Outcome) -> None:
        if what in self._refused:
            return
        self._refused.add(what)
        hint = "what it refuses is counted and given up; check the endpoint and OTEL_EXPORTER_OTLP_HEADERS"
        if what != "spans":
            hint = "it gets no more of them; OTEL_LOGS_EXPORTER=none does not offer them"
        self._tell(FollowerNotice(f"OTLP: {self._where} refuses {what}: {outcome.why}", hint))


def requests(spans: Sequence[SpanValue]) -> Iterator[list[SpanValue]]:
    """The spans in groups that one request can have each; one that is larger goes alone."""
    some: list[SpanValue] = []
    room = OCTETS
    for span in spans:
        weight = _weight(span)
        if some and (len(some) == BATCH or weight > room):
            yield some
            some, room = [], OCTETS
        some.append(span)
        room -= weight
    if some:
        yield some


def in_parts(
    some: Sequence[SpanValue], send: Callable[[Sequence[SpanValue]], Outcome]
) -> Iterator[tuple[Sequence[SpanValue], Outcome]]:
    """Send them, where that is too much for the backend each half, and so on: what was sent at once, and how that
    went. What is not asked for is not sent."""
    outcome = send(some)
    if outcome.answer is RequestResult.LARGE and len(some) > 1:
        half = len(some) // 2
        yield from in_parts(some[:half], send)
        yield from in_parts(some[half:], send)
    else:
        yield some, outcome


def _weight(span: SpanValue) -> int:
    """Octets of its attributes and those of its events and links, about."""
    held = [span.attributes, *(each.attributes for each in span.events), *(each.attributes for each in span.links)]
    pairs = (pair for each in held for pair in each.items())
    return sum(_EACH + len(name) + len(str(value).encode("utf-8", "replace")) for name, value in pairs)


_EACH = 16
"""Octets of an attribute besides its name and value; of a number more than it has."""
