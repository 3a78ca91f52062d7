"""A backend that is down, slow, refusing or failing: what waits, what is dropped, what is
reported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest
from msgspec.structs import replace

from a2a_proxy.follower.hook_consumer import CallTally
from a2a_proxy.follower.status import FollowerNotice, Status
from a2a_proxy.telemetry import sdk
from a2a_proxy.telemetry.errors import TelemetryError
from a2a_proxy.telemetry.offline import BackendSink
from a2a_proxy.telemetry.request_outcome import SENT, RequestOutcome, RequestResult
from a2a_proxy.telemetry.retry_sender import (
    MAX_BATCH,
    MAX_REQUEST_BYTES,
    RetrySender,
    SenderClock,
    split_requests,
)
from a2a_proxy.telemetry.target import OtlpTarget
from a2a_proxy.telemetry.values import (
    Attributes,
    LogLevel,
    LogValue,
    SpanContextIds,
    SpanKind,
    SpanValue,
)

DOWN = RequestOutcome(RequestResult.LATER, "connection refused")
FAILS = RequestOutcome(RequestResult.FAILED, "HTTP 500")
LARGE = RequestOutcome(RequestResult.LARGE, "HTTP 413")
REFUSES = RequestOutcome(RequestResult.REFUSED, "HTTP 401")
CONTEXT = SpanContextIds("1" * 32, "2" * 16)
SPAN = SpanValue(
    name="x",
    kind=SpanKind.INTERNAL,
    context=CONTEXT,
    parent=None,
    started=1,
    ended=2,
    attributes={},
)
LOG = LogValue(name="x", at=1, level=LogLevel.INFO, context=CONTEXT)


class Desk:
    """A courier with a backend that answers so, and a clock that only waiting moves on."""

    def __init__(self, *answers: RequestOutcome) -> None:
        self.answers = list(answers)
        self.taken: list[int] = []
        self.asked = 0
        self.now = 0.0
        self.messages: list[str] = []
        self.target = OtlpTarget("http/protobuf", shown="c:4318")
        self.count = CallTally()
        clock = SenderClock(lambda: self.now, self.sleep)
        self.courier = RetrySender(self, "c:4318", self.count, self.tell, clock)

    def tell(self, status: Status) -> None:
        assert isinstance(status, FollowerNotice)
        self.messages.append(status.message)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def send_spans(self, resource: Attributes, spans: Sequence[Any]) -> RequestOutcome:
        self.asked += 1
        outcome = self.answers.pop(0) if self.answers else SENT
        self.taken += [len(spans)] if outcome is SENT else []
        return outcome

    send_logs = send_spans


def test_requests_are_retried_while_the_backend_is_down() -> None:
    desk = Desk(*[DOWN] * 100)
    assert desk.courier.send_spans({}, [SPAN] * 3)
    assert (desk.taken, desk.count) == ([3], CallTally(3, 0))
    assert desk.now > 400
    assert desk.messages == [
        "OTLP: c:4318 accepts nothing: connection refused",
        "OTLP: c:4318 accepts spans again",
    ]


def test_refused_requests_are_counted_and_later_ones_wait() -> None:
    desk = Desk(REFUSES, REFUSES)
    assert desk.courier.send_spans({}, [SPAN] * 1100)
    assert (desk.taken, desk.count) == ([76], CallTally(76, 1024))
    assert 1.5 <= desk.now < 1.7, "half a second after the first, a second after the next one"
    assert desk.messages == ["OTLP: c:4318 refuses spans: HTTP 401"]
    assert desk.courier.send_spans({}, [SPAN])
    assert desk.now < 1.7, "one was taken"


def test_a_refusing_backend_is_retried_every_few_seconds() -> None:
    desk = Desk(*[REFUSES] * 100)
    desk.courier.is_stopping = lambda: desk.now >= 60
    settled: list[int] = []
    assert not desk.courier.send_spans({}, [SPAN] * 100 * MAX_BATCH, settled.append)
    assert desk.asked < 20
    assert desk.count == CallTally(0, desk.asked * MAX_BATCH)
    assert settled[-1] == desk.count.errors, (
        "the rest was not given up: it goes out when somebody takes it"
    )


def test_partially_rejected_spans_are_counted() -> None:
    desk = Desk(RequestOutcome(RequestResult.SENT, "too old", rejected=2))
    assert desk.courier.send_spans({}, [SPAN] * 5)
    assert (desk.asked, desk.count) == (1, CallTally(3, 2))
    assert desk.messages == ["OTLP: c:4318 refuses spans: too old"]


def test_oversized_batches_are_halved_and_a_single_oversized_span_is_dropped() -> None:
    desk = Desk(LARGE, LARGE, SENT, LARGE, SENT)
    assert desk.courier.send_spans({}, [SPAN] * 4)
    assert (desk.taken, desk.count) == ([1, 2], CallTally(3, 1))
    assert desk.messages == ["OTLP: c:4318 refuses spans: HTTP 413"]


def test_an_offline_export_halves_batches_alike() -> None:
    """It ends where a single span is too much."""
    desk = Desk(LARGE, LARGE, SENT, SENT, LARGE, SENT, LARGE)
    with pytest.raises(
        TelemetryError, match="the OTLP backend c:4318 refused the request: HTTP 413"
    ):
        BackendSink(cast(sdk.SdkBackend, desk)).write_spans({}, [SPAN] * 4)
    assert (desk.taken, desk.asked) == ([1, 1, 1], 7)


def test_repeated_failures_are_given_up_after_a_time() -> None:
    desk = Desk(*[FAILS] * 100)
    assert desk.courier.send_spans({}, [SPAN])
    assert desk.count == CallTally(0, 1)
    assert 120 <= desk.now < 130


def test_stopping_leaves_the_batch_unsettled() -> None:
    desk = Desk(*[DOWN] * 100)
    desk.courier.is_stopping = lambda: desk.now > 3
    assert not desk.courier.send_spans({}, [SPAN])
    assert (desk.taken, desk.count) == ([], CallTally())
    assert desk.now < 4


def test_a_backend_without_logs_gets_one_request() -> None:
    desk = Desk(REFUSES)
    desk.courier.send_logs({}, [LOG] * 2000)
    desk.courier.send_logs({}, [LOG])
    assert (desk.asked, desk.count) == (1, CallTally())
    assert desk.courier.send_spans({}, [SPAN])


def test_requests_are_bounded_by_size_and_a_large_span_is_sent_alone() -> None:
    def span(data: int) -> SpanValue:
        return replace(SPAN, attributes={"gen_ai.input.messages": "x" * data})

    third = MAX_REQUEST_BYTES // 3
    spans = [span(third), span(third), span(third), span(2 * MAX_REQUEST_BYTES), span(1)]
    assert [len(each) for each in split_requests(spans)] == [2, 1, 1, 1]
    assert [len(each) for each in split_requests([SPAN] * (MAX_BATCH + 1))] == [MAX_BATCH, 1]
    assert list(split_requests([])) == []


def test_partial_spans_are_not_counted_as_calls() -> None:
    desk = Desk()
    assert desk.courier.send_spans({}, [replace(SPAN, part=True), SPAN])
    assert (desk.taken, desk.count.calls) == ([2], 1)
    refused = Desk(REFUSES)
    assert refused.courier.send_spans({}, [replace(SPAN, part=True)])
    assert (refused.count.errors, len(refused.messages)) == (0, 1)
