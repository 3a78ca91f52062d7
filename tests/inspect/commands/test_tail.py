"""`tail`: frames in order with their findings, including those that arrive while it runs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from a2a_inspect.commands.tail import TailOptions, print_tail
from a2a_proxy.model.values import Finding, Severity
from a2a_proxy.recording.tools.prune import remove_sessions
from support_cli import SECONDS, environment, program, run_here, until
from support_inspect import changes, exchange, request, sample, status, writer
from support_recording import STARTED


def lines_of(tmp_path: Path, *words: object) -> list[str]:
    done = run_here(tmp_path / "state", "tail", *words, TZ="UTC")
    assert (done.code, done.err) == (0, "")
    return done.lines


def test_the_last_frames(tmp_path: Path) -> None:
    """The requested number of frames, over all exchanges."""
    path = sample(tmp_path / "a.db")

    assert [line.split()[1] for line in lines_of(tmp_path, path, "-n", 4)] == [
        "#2.2",
        "#3.0",
        "#3.1",
        "#3.2",
    ]
    assert len(lines_of(tmp_path, path, "-n", 1000)) == 9
    assert lines_of(tmp_path, path, "-n", 0) == []
    assert '--> message user "Question 3"' in lines_of(tmp_path, path)[-3]


def test_findings_are_printed_under_their_frames(tmp_path: Path) -> None:
    """Those of frames that are not shown are not; those of a whole exchange come last."""
    made = writer(tmp_path / "a.db")
    found = [
        Finding("A2A-X-001", Severity.ERROR, STARTED + 1_000_000_000, "the first", 1, 1, 0),
        Finding("A2A-X-002", Severity.ERROR, STARTED + 2_100_000_000, "about a frame", 1, 2, 1),
        Finding("A2A-X-003", Severity.INFO, STARTED + 2_900_000_000, "about all of it", 1, 2),
    ]
    for number in (1, 2):
        frames = [request(number), status(number, 1, "one"), status(number, 2, "two")]
        made.write(
            frames, [each for each in found if each.exchange == number], changes(exchange(number))
        )
    made.finish(STARTED + 10_000_000_000)

    shown = [
        (line.split()[1], "A2A-" in line) for line in lines_of(tmp_path, tmp_path / "a.db", "-n", 3)
    ]

    assert shown == [
        ("#2.0", False),
        ("#2.1", False),
        ("#2.1", True),
        ("#2.2", False),
        ("#2", True),
    ]


def test_json(tmp_path: Path) -> None:
    """A frame as in `show --json`, with what tells where it belongs."""
    (last,) = lines_of(tmp_path, sample(tmp_path / "a.db"), "-n", 1, "--json")
    newest = json.loads(last)

    assert (newest["session"], newest["exchange"], newest["seq"], newest["operation"]) == (
        1,
        3,
        2,
        "SendStreamingMessage",
    )
    assert (newest["kind"], newest["state"]) == ("event", "working")


def test_new_frames_are_followed(tmp_path: Path) -> None:
    """Started before there is a recording; each frame comes once, and payload text cannot act on a
    terminal."""
    path = tmp_path / "later.db"
    output_file = tmp_path / "said"
    with output_file.open("wb") as out, (tmp_path / "err").open("wb") as err:
        words = [program("a2a-inspect"), "tail", "-f", str(path)]
        process = subprocess.Popen(
            words, stdout=out, stderr=err, env=environment(tmp_path / "state")
        )
    try:
        until(lambda: "does not exist yet" in (tmp_path / "err").read_text())
        made = writer(path)
        for number in (1, 2, 3):
            made.write([request(number, "\x1b[31mred")], changes=changes(exchange(number)))
            until(lambda number=number: f"#{number}.0" in output_file.read_text())
        made.finish(STARTED + 10_000_000_000)
    finally:
        process.terminate()
        process.wait(SECONDS)

    assert [line.split()[1] for line in output_file.read_text().splitlines()] == [
        "#1.0",
        "#2.0",
        "#3.0",
    ]
    assert "\x1b" not in output_file.read_text()


def test_following_ends_with_its_reader(tmp_path: Path) -> None:
    """`tail -f later.db | head` ends with `head`, also where no proxy ever makes the recording."""
    words = [program("a2a-inspect"), "tail", "-f", str(tmp_path / "later.db")]
    with (tmp_path / "err").open("wb") as err:
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=err, env=environment(tmp_path / "state")
        )
    try:
        until(lambda: "does not exist yet" in (tmp_path / "err").read_text())
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(SECONDS) == 0
    finally:
        process.kill()
        process.wait()


def said_while(
    path: Path,
    wanted: TailOptions,
    capsys: pytest.CaptureFixture[str],
    *steps: Callable[[], object],
) -> list[str]:
    """What is said about a recording to which something is done before each look; it ends after the
    last one."""
    waiting = iter(steps)

    def sleep(_: float) -> None:
        step = next(waiting, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    with pytest.raises(KeyboardInterrupt):
        print_tail([path], wanted, sleep)
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("how_many", [1, 20])
def test_reused_row_numbers_after_pruning_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], how_many: int
) -> None:
    """A session that had the newest frames goes: what others store under their numbers is new, be
    it less or more."""
    path = tmp_path / "a.db"
    one, two = writer(path), writer(path, 2)
    one.write([request(1)], changes=changes(exchange(1)))
    found = [
        Finding("A2A-X-001", Severity.INFO, STARTED, "the old", 1, number) for number in range(1, 9)
    ]
    two.write([request(number) for number in range(1, 9)], found, changes(exchange(1)))
    two.finish(STARTED + 10_000_000_000)

    def prune_and_write() -> None:
        remove_sessions(path, [2])
        new = [
            Finding("A2A-X-002", Severity.INFO, STARTED, "the new", 1, number)
            for number in range(2, 2 + how_many)
        ]
        one.write([request(number) for number in range(2, 2 + how_many)], new, changes(exchange(2)))

    lines = said_while(
        path,
        TailOptions(count=0, follow=True, as_json=False),
        capsys,
        prune_and_write,
        lambda: None,
    )

    assert sum("-->" in line for line in lines) == how_many
    assert sum("the new" in line for line in lines) == how_many


def test_a_filter(tmp_path: Path) -> None:
    """The last matching frames, however old; findings of other frames are left out."""
    path = tmp_path / "a.db"
    made = writer(path)
    for number in range(1, 1500):
        text = "needle" if number in (3, 700, 1400) else "hay"
        found = [
            Finding(
                "A2A-X-001",
                Severity.ERROR,
                STARTED + number * 1_000_000_000,
                f"of {text}",
                1,
                number,
                0,
            )
        ]
        made.write([request(number, text)], found, changes(exchange(number)))
    made.finish(STARTED + 10_000_000_000)

    assert [
        line.split()[1] for line in lines_of(tmp_path, path, "-n", 2, "--filter", "needle")
    ] == [
        *("#700.0", "#700.0", "#1400.0", "#1400.0"),
    ]
    assert len(lines_of(tmp_path, path, "--filter", "text:needle sev:error")) == 6
    assert lines_of(tmp_path, path, "--filter", "nowhere") == []


def test_a_filter_applies_to_new_frames(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Matching frames are printed, others are skipped for good."""
    path = sample(tmp_path / "a.db")
    made = writer(path, 2)
    steps = [
        partial(made.write, [request(number, words)], changes=changes(exchange(number)))
        for number, words in ((1, "needle"), (2, "hay"), (3, "needle again"))
    ]

    lines = said_while(
        path,
        TailOptions(count=0, follow=True, as_json=False, where="needle"),
        capsys,
        *steps,
        lambda: None,
    )

    assert [line.split()[1] for line in lines] == ["#1.0", "#3.0"]


def test_a_wrong_filter(tmp_path: Path) -> None:
    done = run_here(
        tmp_path / "state", "tail", sample(tmp_path / "a.db"), "--filter", "stat:x", "-n", 0
    )

    assert (done.code, done.out) == (2, "")
    assert "state" in done.err
