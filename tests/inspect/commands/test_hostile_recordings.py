"""Hostile recordings: every command shows what can be shown, or one clear error.

In time, within some memory, without a traceback, and nothing that acts on a terminal comes out.
"""

from __future__ import annotations

import contextlib
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from a2a_inspect.cli.main import cli
from a2a_proxy.cli.main import run_cli
from support_cli import run_here
from support_hostile import (
    HOSTILE,
    WORD,
    Made,
    altered,
    assert_harmless,
    commands_of,
    damaged_blocks,
    evil_texts,
    large_payload,
    wrong_types,
)
from support_inspect import changes, live, request, sample, screen_text, status, writer
from support_screen import looking
from support_thin import thin

SECONDS = 120.0
"""For one command, on a machine that is busy; most take some milliseconds."""
BYTES = 1 << 30
"""That one command may ask for."""
COMMANDS = (
    "ls {}",
    "ls {} --tasks --json",
    "ls {} --filter text~zyz+y",
    "ls {} {}",
    "show {}",
    "show {} --payloads --artifacts",
    "show {} --raw",
    "show {} --json",
    "tail {}",
    "stats {}",
    "why {}",
    "why {} 1",
    "segments {}",
    "lanes {} 1",
    "check {}",
    "check {} --format sarif",
    "export har {}",
    "diff {} 1 {} 1",
    "note {}",
    "export {} -o {folder}/written.a2a.jsonl",
    "export html {} -o {folder}/written.html",
    "export otlp {} -o {folder}/written.otlp.jsonl --frames --content --segment 5m",
    "merge {folder}/merged.a2a.db {}",
    "note {} 1.1 seen",
    "prune {} --keep 0",
)
"""The last ones write."""
TEXT_COMMANDS = (
    "screen {}",
    "export {} --dry-run",
    "ls {} --explain --filter text~forged",
    "card {folder}/{word}",
    "lanes {} 1 --json",
    "segments {} --media {folder}/media{word}",
    "show {} 1 --as curl",
    "export jsonl {}",
    "export mermaid {}",
    "export parquet {} -o {folder}/p",
    "check {} --format json",
    "check {} --format junit",
    "check {} --format sarif",
    "import {folder}/{word}",
    "plugins {} --hook {word}",
    "archive put {} file://{folder}/{word}",
    "archive put {} file://{folder}",
    "archive ls file://{folder} --json",
    "archive ls file://{folder} --verbose --verify",
    "archive fetch file://{folder} --since 2000-01-01 --to {folder}/fetched{word}.db",
    "cassette trim {} 1 -o {folder}/trimmed{word}.a2a.jsonl --exact",
    "cassette fmt {folder}/trimmed{word}.a2a.jsonl",
    "cassette scan {}",
    "cassette scan {} --json",
    "merge {folder}/m.a2a.jsonl {}",
    "cassette read {folder}/trimmed{word}.a2a.jsonl {folder}/read{word}.db",
    "help {word}",
    "rules {word}",
    "keys",
    "plugins",
    "recover",
    "mcp --help",
    "completion {word}",
)
"""Those that are run only with a recording in which all texts are hostile, and `word` is hostile
too."""


class TooLong(BaseException):
    """The command did not come to an end."""


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Not longer than SECONDS, not more than BYTES."""

    def stop(*_: object) -> None:
        raise TooLong

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = signal.signal(signal.SIGALRM, stop)
    resource.setrlimit(resource.RLIMIT_AS, (now + BYTES, hard))
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("made", thin(HOSTILE, 4), ids=lambda made: made.__name__)
def test_hostile_recordings_are_shown_or_refused(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command shows what it can, or prints one error line and one hint line."""
    _run(COMMANDS, made, tmp_path, capsys, monkeypatch)


def test_a_payload_of_100_mb(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that look at payloads take their time over it."""
    commands = ("ls {} --filter text~zyz+y", "show {}", "show {} --payloads", "tail {}")
    _run(commands, large_payload, tmp_path, capsys, monkeypatch)


def test_every_command_makes_text_visible(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts of a recording, file names and words of the command line; a new command must be named
    above."""
    commands = (*TEXT_COMMANDS, *COMMANDS)
    assert not {
        each
        for each in commands_of(cli)
        if not any(f"{line} ".startswith(f"{each} ") for line in commands)
    }
    _run(commands, evil_texts, tmp_path, capsys, monkeypatch)


# Not of `mcp`, which serves its protocol whatever the words.
@pytest.mark.parametrize("command", sorted({*commands_of(cli)} - {"mcp"}))
def test_every_command_makes_its_words_visible(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in ([WORD], [WORD, WORD], [f"--{WORD}"]):
        monkeypatch.setattr(sys, "argv", ["a2a-inspect", *command.split(), *words])
        run_cli("a2a-inspect", cli)
    output = capsys.readouterr()
    assert_harmless(output.out + output.err, command)
    assert "forged" in output.err


@pytest.mark.parametrize("column", ["frame SET at", "session SET started", "exchange SET closed"])
@pytest.mark.parametrize("at", [(1 << 63) - 1, -(1 << 62)])
def test_times_before_1970_or_after_2262_are_errors_of_the_file(
    column: str, at: int, tmp_path: Path
) -> None:
    """Also for commands that read times with their own SQL."""
    path = altered(tmp_path, f"UPDATE {column} = {at}")
    for words in (
        ("check",),
        ("lanes",),
        ("export", "html"),
        ("export", "mermaid"),
        ("stats", "--histogram"),
    ):
        ran = run_here(tmp_path / "state", *words, path)
        assert ran.code in (0, 2, 3), words
        if ran.code == 2 or words == ("check",):
            error, hint = ran.err.splitlines()
            assert error.startswith("a2a-inspect: error: row ")
            assert error.endswith("is not valid")
            assert "the file is damaged" in hint


async def test_the_screen_shows_hostile_texts_as_symbols(tmp_path: Path) -> None:
    """Wherever one goes."""
    async with looking(evil_texts(tmp_path)) as person:
        await person.sees("evil.db", "5 frames")
        for keys in (("enter",), ("home", "enter"), ("]",), ("2",), ("5",)):
            await person.types(*keys)
            await person.until(lambda: "\u241b" in screen_text(person.app))
            assert_harmless(screen_text(person.app), keys)


@pytest.mark.parametrize(
    ("made", "words"),
    [(wrong_types, "is not valid"), (damaged_blocks, "cannot be read")],
    ids=["rows", "blocks"],
)
async def test_the_screen_reports_unreadable_data(made: Made, words: str, tmp_path: Path) -> None:
    """In its first line, for as long as it is so."""
    async with looking(made(tmp_path)) as person:
        await person.sees(words)


async def test_the_screen_shows_a_recreated_recording(tmp_path: Path) -> None:
    """A recording that is deleted and created again while it is shown."""
    path = sample(tmp_path / "r.db")
    async with looking(path) as person:
        await person.sees("3 exchanges", "Question 3")
        path.unlink()
        made = writer(path)
        made.write([request(1, "Anew")], changes=changes(live(1, events=0)))
        await person.sees("1 exchange ", "recording", "Anew")
        made.write([status(1, 1, "Halfway")], changes=changes(live(1, events=1)))
        await person.sees("Halfway")
        made.close()


def _run(
    commands: tuple[str, ...],
    made: Made,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path / "state"))
    (tmp_path / "place").mkdir()
    path = made(tmp_path / "place")
    for command in commands:
        words = [
            word.replace("{folder}", str(tmp_path)).replace("{}", str(path)).replace("{word}", WORD)
            for word in command.split()
        ]
        monkeypatch.setattr(sys, "argv", ["a2a-inspect", *words])
        with limited():
            code = run_cli("a2a-inspect", cli)
        output = capsys.readouterr()
        assert_harmless(output.out + output.err, command)
        assert code in (0, 1, 2, 3), command
        if code == 2:
            lines = output.err.splitlines()
            assert [line.split(" ")[1] for line in lines[:2]] == ["error:", "hint:"], (
                command,
                output,
            )
