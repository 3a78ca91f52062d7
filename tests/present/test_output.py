"""Lines for people and JSON on stdout and stderr, and lines printed to a descriptor without
blocking."""

from __future__ import annotations

import io
import json
import os

import pytest

from a2a_proxy.present import output as module
from a2a_proxy.present.output import ColouredWord, Printer, print_json, print_line, print_note

HOSTILE = "a\x1b[31m\r\nerror: \x9b\u202e\0\u2028\ud800"
VISIBLE = "a␛[31m␍␊error: <U+009B><U+202E>␀<U+2028><U+D800>"


def test_text_stays_on_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A terminal sees symbols, a program the same value."""
    print_line(HOSTILE)
    print_note(HOSTILE)
    print_json([HOSTILE])
    lines, notes = (text.split("\n") for text in capsys.readouterr())
    assert lines == [VISIBLE, json.dumps([HOSTILE]), ""]
    assert notes == [VISIBLE, ""]


@pytest.mark.parametrize(
    ("no_colour", "shown"), [("", f"\x1b[31m{VISIBLE}\x1b[0m"), ("1", VISIBLE)]
)
def test_only_the_printer_colours(
    no_colour: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts are joined, without the empty ones; NO_COLOR is obeyed."""
    monkeypatch.setenv("NO_COLOR", no_colour)
    reader, terminal = os.openpty()
    with os.fdopen(terminal, "w", encoding="utf-8") as out:
        say = Printer(out, str)
        say(HOSTILE, "", ColouredWord(HOSTILE, "31"), ColouredWord("plain", ""))
        assert say.flush(60)
        assert os.read(reader, 1 << 16).decode() == f"{VISIBLE}  {shown}  plain\r\n"
    os.close(reader)


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
    assert os.read(reader, 1 << 16).decode() == "".join(
        f"line {number} \\xe4\n" for number in range(100)
    )


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
    output = b""
    settled = False
    while True:
        try:
            output += os.read(reader, 1 << 16)
        except BlockingIOError:
            if settled:
                return output.decode()
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
    output = b""
    while len(output) < 300_000:
        output += os.read(reader, 1 << 16)
    assert say.flush(60)
