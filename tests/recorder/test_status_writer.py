"""Status lines over a pipe: whole or dropped, never blocking except the three that the keeper waits for."""

from __future__ import annotations

import contextlib
import os
import threading

from a2a_proxy.model.exchange import Binding, Exchange
from a2a_proxy.model.finding import Finding, Severity
from a2a_proxy.recorder import status
from a2a_proxy.recorder.status import (
    ExchangeStatus,
    FindingStatus,
    LinesSkipped,
    RecorderDone,
    RecorderProgress,
    RecorderReady,
    Status,
)
from a2a_proxy.recorder.status_writer import StatusWriter

DONE = RecorderDone(
    connections=1,
    frames=1,
    exchanges=1,
    ok=1,
    error=0,
    cut=0,
    refused=0,
    tasks=0,
    findings=0,
    error_findings=0,
    warning_findings=0,
    lost=0,
    clean=True,
)
READY = RecorderReady("r.a2a.db", 1)


def seen(number: int, words: str = "") -> ExchangeStatus:
    return ExchangeStatus(Exchange(number, 1, 1, Binding.GRPC, 1, error=words), "agent:8000", live=False, lag=0)


def drained(reader: int) -> list[Status]:
    os.set_blocking(reader, False)
    data = b""
    try:
        while more := os.read(reader, 1 << 20):
            data += more
    except BlockingIOError:
        pass
    assert data.endswith(b"\n") or not data
    return [status.decode_status(line) for line in data.splitlines()]


def test_lines_over_the_rate_limit_are_counted() -> None:
    """At most 200 a second, then their number."""
    reader, writer = os.pipe()
    speaker = StatusWriter(writer)
    heard: list[Status] = []
    for number in range(300):
        speaker(seen(number), 10**9 * 5)
        heard += drained(reader)
    speaker(RecorderProgress(1, 2, 3), 10**9 * 5)
    heard += drained(reader)
    assert len([each for each in heard if isinstance(each, ExchangeStatus)]) == 200
    assert heard[-2:] == [LinesSkipped(100), RecorderProgress(1, 2, 3)]
    speaker(seen(1), 10**9 * 7)
    assert len(drained(reader)) == 1


def test_a_full_pipe_drops_lines_but_breaks_none() -> None:
    """What the reader finds later are whole lines."""
    reader, writer = os.pipe()
    speaker = StatusWriter(writer)
    for number in range(400):
        speaker(FindingStatus(Finding("R", Severity.INFO, number, "x" * 3000)), number * 10**9)
    first = drained(reader)
    assert 5 < len(first) < 400
    speaker(RecorderProgress(1, 2, 3), 10**13)
    rest = drained(reader)
    assert rest[-1] == RecorderProgress(1, 2, 3)
    (skipped,) = [each for each in rest if isinstance(each, LinesSkipped)]
    assert skipped.count + len([each for each in first + rest if isinstance(each, FindingStatus)]) == 400


def test_a_message_that_does_not_fit_is_not_sent() -> None:
    """The sender can send it again."""
    reader, writer = os.pipe()
    speaker = StatusWriter(writer)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    assert not speaker(RecorderProgress(1, 2, 3), 1)
    os.read(reader, 1 << 20)
    assert speaker(RecorderProgress(1, 2, 3), 2)


def test_the_last_line_waits_for_a_full_pipe() -> None:
    """`Done` comes, after the rest of a line that was cut."""
    reader, writer = os.pipe()
    speaker = StatusWriter(writer)
    for number in range(100):
        speaker(FindingStatus(Finding("R", Severity.INFO, number, "x" * 3000)), number * 10**9)
    ending = threading.Thread(target=speaker, args=(DONE, 10**12))
    ending.start()
    heard: list[bytes] = []
    with os.fdopen(reader, "rb") as pipe:
        for line in pipe:
            heard.append(line)
            if status.decode_status(line) == DONE:
                break
    ending.join(10)
    assert not ending.is_alive()


def test_a_closed_pipe_is_ignored() -> None:
    """The relay is gone: saying is nothing."""
    reader, writer = os.pipe()
    os.close(reader)
    speaker = StatusWriter(writer)
    speaker(seen(1), 1)
    speaker(DONE, 2)
    StatusWriter(-1)(DONE, 3)


def found(severity: Severity, number: int) -> FindingStatus:
    return FindingStatus(Finding("R", severity, number, "x"))


def test_findings_have_their_own_rate_limit() -> None:
    """However many exchanges, and however many findings that are less grave: an error is said."""
    reader, writer = os.pipe()
    speaker = StatusWriter(writer)
    heard: list[Status] = []
    for number in range(300):
        for message in (seen(number), found(Severity.INFO, number)):
            speaker(message, 10**9 * 5)
            heard += drained(reader)
    for severity in (Severity.WARNING, Severity.ERROR):
        speaker(found(severity, 1), 10**9 * 5)
    heard += drained(reader)
    said = [each.finding.severity for each in heard if isinstance(each, FindingStatus)]
    assert said == [Severity.INFO] * 200 + [Severity.WARNING, Severity.ERROR]
    assert len([each for each in heard if isinstance(each, ExchangeStatus)]) == 200


def test_errors_take_precedence_over_lower_severities() -> None:
    """An error is never skipped before an info."""
    reader, writer = os.pipe()
    speaker = StatusWriter(writer)
    heard: list[Status] = []
    for severity in (Severity.ERROR, Severity.WARNING, Severity.INFO):
        for number in range(201):
            speaker(found(severity, number), 10**9 * 5)
            heard += drained(reader)
    assert heard == [found(Severity.ERROR, number) for number in range(200)]
