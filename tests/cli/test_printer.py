"""Lines printed to a descriptor without blocking."""

from __future__ import annotations

import io
import os

from a2a_proxy.cli import printer as module
from a2a_proxy.cli.printer import Printer


def piped() -> tuple[int, io.TextIOWrapper]:
    reader, writer = os.pipe()
    return reader, os.fdopen(writer, "w", encoding="ascii")


def test_lines_are_printed_in_order() -> None:
    """What the encoding cannot say is escaped."""
    reader, out = piped()
    say = Printer(out, str)
    for number in range(100):
        say(f"line {number} ä")
    assert say.flush(60)
    assert os.read(reader, 1 << 16).decode() == "".join(f"line {number} \\xe4\n" for number in range(100))


def test_a_stalled_reader_gets_the_number_of_dropped_lines(monkeypatch: object) -> None:
    """Saying never waits, memory is bounded, and later it hears how many lines there were."""
    reader, out = piped()
    say = Printer(out, lambda count: f"{count} missed")
    for _ in range(module.MAX_LINES * 3):
        say("x" * 100)
    assert not say.flush(0.05)
    lines = all_that_comes(reader, say).splitlines()
    missed = [int(line.split()[0]) for line in lines if line.endswith(" missed")]
    assert sum(missed) + len(lines) - len(missed) == module.MAX_LINES * 3
    assert sum(missed) >= module.MAX_LINES - 1000  # the pipe and the thread took some


def all_that_comes(reader: int, say: Printer) -> str:
    """Read until everything is printed."""
    os.set_blocking(reader, False)
    said = b""
    settled = False
    while True:
        try:
            said += os.read(reader, 1 << 16)
        except BlockingIOError:
            if settled:
                return said.decode()
            settled = say.flush(0.05)


def test_a_closed_reader_is_no_error() -> None:
    """Nor is a program without stdout."""
    reader, out = piped()
    os.close(reader)
    say = Printer(out, str)
    say("x")
    assert say.flush(60)
    say("y")
    assert say.flush(60)
    nowhere = Printer(None, str)
    nowhere("z")
    assert nowhere.flush(60)


def test_a_non_blocking_descriptor_loses_no_line() -> None:
    """A terminal shared with a program that set O_NONBLOCK loses nothing."""
    reader, out = piped()
    os.set_blocking(out.fileno(), False)
    say = Printer(out, str)
    for _ in range(3000):
        say("y" * 99)
    said = b""
    while len(said) < 300_000:
        said += os.read(reader, 1 << 16)
    assert say.flush(60)
