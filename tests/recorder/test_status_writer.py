"""Status lines over a pipe: whole or counted, never blocking except the three that the supervisor
waits for."""

from __future__ import annotations

import contextlib
import os
import threading

from a2a_proxy.model.values import Binding, Exchange, Finding, Severity
from a2a_proxy.recorder import status
from a2a_proxy.recorder.status import (
    ExchangeStatus,
    FindingStatus,
    LinesEnd,
    LinesSkipped,
    RecorderDone,
    RecorderProgress,
    RecorderReady,
    Status,
)
from a2a_proxy.recorder.status_writer import BURST_LINES, StatusWriter

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
)
SECOND = 1_000_000_000
READY = RecorderReady("r.a2a.db", 1)


def seen(number: int, words: str = "") -> ExchangeStatus:
    return ExchangeStatus(
        Exchange(number, 1, 1, Binding.GRPC, 1, error=words), "agent:8000", live=False, lag=0
    )


def found(severity: Severity, number: int) -> FindingStatus:
    return FindingStatus(Finding("R", severity, number, "x"))


class Reader:
    """The reading end of a pipe."""

    def __init__(self) -> None:
        self.fd, self.writer = os.pipe()
        os.set_blocking(self.fd, False)
        self._rest = b""

    def receive(self) -> list[Status]:
        """The messages that have come to their end since the last call."""
        data = self._rest
        with contextlib.suppress(BlockingIOError):
            while more := os.read(self.fd, 1 << 20):
                data += more
        *lines, self._rest = data.split(b"\n")
        return [status.decode_status(line) for line in lines]


def sent_in_time(speaker: StatusWriter, reader: Reader, at: int) -> list[Status]:
    """All that the reader receives while the recorder commits ten times a second, until nothing
    waits."""
    heard: list[Status] = []
    for tick in range(1, 1000):
        done = speaker(RecorderProgress(1, 2), at + tick * SECOND // 10)
        heard += reader.receive()
        if done:
            return [said for said in heard if not isinstance(said, RecorderProgress)]
    raise AssertionError("messages still wait")


def test_a_burst_is_sent_as_a_whole_and_in_order() -> None:
    """Nobody reads the pipe meanwhile, which has room for a hundred lines."""
    reader = Reader()
    speaker = StatusWriter(reader.writer)
    lines = [
        each for number in range(2_000) for each in (found(Severity.INFO, number), seen(number))
    ]
    for line in lines:
        speaker(line, 5 * SECOND)
    speaker(LinesEnd(), 5 * SECOND)
    assert sent_in_time(speaker, reader, 5 * SECOND) == [*lines, LinesEnd()]


def test_lines_are_sent_in_portions() -> None:
    """At most a thousand a second, because printing them takes processor time from the relay."""
    reader = Reader()
    speaker = StatusWriter(reader.writer)
    for number in range(300):
        speaker(found(Severity.INFO, number), 5 * SECOND)
    assert len(reader.receive()) == 100
    speaker(RecorderProgress(1, 2), 5 * SECOND + SECOND // 20)
    assert len(reader.receive()) == 1 + 50
    assert not speaker(RecorderProgress(1, 2), 60 * SECOND)
    assert len(reader.receive()) == 1 + 100
    assert speaker(RecorderProgress(1, 2), 61 * SECOND)


def test_progress_does_not_wait_behind_lines() -> None:
    """It says how far the recording is, whatever is left to print."""
    reader = Reader()
    speaker = StatusWriter(reader.writer)
    for number in range(300):
        speaker(found(Severity.INFO, number), 5 * SECOND)
    reader.receive()
    assert not speaker(RecorderProgress(1, 2), 6 * SECOND)
    assert reader.receive()[0] == RecorderProgress(1, 2)


def test_lines_over_the_limit_are_counted() -> None:
    """A burst, and then 200 a second; the number of the others comes before the end of the
    commit."""
    reader = Reader()
    speaker = StatusWriter(reader.writer)
    for number in range(BURST_LINES + 100):
        speaker(seen(number), 5 * SECOND)
    speaker(LinesEnd(), 5 * SECOND)
    heard = sent_in_time(speaker, reader, 5 * SECOND)
    assert heard == [*map(seen, range(BURST_LINES)), LinesSkipped(100), LinesEnd()]
    for number in range(1_000):
        speaker(seen(number), 6 * SECOND)
    speaker(LinesEnd(), 6 * SECOND)
    assert sent_in_time(speaker, reader, 6 * SECOND)[-2:] == [LinesSkipped(800), LinesEnd()]


def test_the_lines_that_wait_for_a_reader_are_bounded() -> None:
    """What the reader finds later are whole lines, and the number of the others."""
    reader = Reader()
    speaker = StatusWriter(reader.writer)
    words = "x" * (1 << 20)
    for number in range(30):
        speaker(seen(number, words), 5 * SECOND)
    speaker(LinesEnd(), 5 * SECOND)
    rest = sent_in_time(speaker, reader, 5 * SECOND)
    speaker(LinesEnd(), 60 * SECOND)
    rest += sent_in_time(speaker, reader, 60 * SECOND)
    (skipped,) = [each for each in rest if isinstance(each, LinesSkipped)]
    sent = [each.exchange.id for each in rest if isinstance(each, ExchangeStatus)]
    assert sent == list(range(17))
    assert skipped.count == 30 - len(sent)


def test_a_message_that_does_not_fit_is_not_sent() -> None:
    """The sender can send it again."""
    reader, writer = os.pipe()
    speaker = StatusWriter(writer)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    assert not speaker(RecorderProgress(1, 2), 1)
    os.read(reader, 1 << 20)
    assert speaker(RecorderProgress(1, 2), 2)


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


def test_findings_have_their_own_limit() -> None:
    """However many exchanges, and however many findings that are less grave: an error is said."""
    reader = Reader()
    speaker = StatusWriter(reader.writer)
    for number in range(BURST_LINES + 100):
        for message in (seen(number), found(Severity.INFO, number)):
            speaker(message, 5 * SECOND)
    for severity in (Severity.WARNING, Severity.ERROR):
        speaker(found(severity, 1), 5 * SECOND)
    heard = sent_in_time(speaker, reader, 5 * SECOND)
    said = [each.finding.severity for each in heard if isinstance(each, FindingStatus)]
    assert said == [Severity.INFO] * BURST_LINES + [Severity.WARNING, Severity.ERROR]
    assert len([each for each in heard if isinstance(each, ExchangeStatus)]) == BURST_LINES


def test_errors_take_precedence_over_lower_severities() -> None:
    """An error is never skipped before an info."""
    reader = Reader()
    speaker = StatusWriter(reader.writer)
    for severity in (Severity.ERROR, Severity.WARNING, Severity.INFO):
        for number in range(BURST_LINES + 1):
            speaker(found(severity, number), 5 * SECOND)
    heard = sent_in_time(speaker, reader, 5 * SECOND)
    assert heard == [found(Severity.ERROR, number) for number in range(BURST_LINES)]
