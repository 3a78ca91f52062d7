"""Runs: matched calls, the differences of each pair, over different bindings and dialects."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from a2a_proxy.model.values import EventKind, Frame
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.difference.exchanges import Difference, compare_exchanges, compare_frames
from a2a_proxy.recording.difference.fields import ExchangePart, Ignored, ValueChange, format_path
from a2a_proxy.recording.difference.runs import (
    ComparisonStopped,
    RunDifference,
    compare_runs,
    take_run,
)
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, make_key
from support_inspect import MS, TASK, changes, exchange, frame, request, status, writer
from support_recording import STARTED

SAMPLES = Path(__file__).parents[3] / "recordings"


@pytest.fixture(scope="module")
def sample() -> Iterator[Callable[[str], Recording]]:
    opened: dict[str, Recording] = {}

    def open_once(name: str) -> Recording:
        if name not in opened:
            opened[name] = open_recording_or_cassette(SAMPLES / f"{name}.a2a.jsonl")
        return opened[name]

    yield open_once
    for recording in opened.values():
        recording.close()


def runs(left: Recording, right: Recording, **more: Any) -> RunDifference:
    return compare_runs(
        take_run(left, left.read_exchanges()), take_run(right, right.read_exchanges()), **more
    )


def pair(left: Recording, number: int, right: Recording, other: int) -> Difference:
    rows = left.read_exchange(make_key(1, number)), right.read_exchange(make_key(1, other))
    assert rows[0] is not None
    assert rows[1] is not None
    return compare_exchanges((left, rows[0]), (right, rows[1]))


def described(found: Difference) -> list[tuple[str, str, str]]:
    return [
        (str(row.part), str(row.change), format_path(row.left or row.right or ()))
        for row in found.rows
        if row.counts
    ]


def test_a_missing_frame_is_an_error_with_the_command_that_lists_the_frames(
    sample: Callable[[str], Recording],
) -> None:
    recording = sample("demo")
    row = recording.read_exchange(make_key(1, 2))
    assert row is not None
    with pytest.raises(RecordingError, match="exchange #2 has no frame 99") as wrong:
        compare_frames((recording, row), (recording, row), (1, 99))
    assert wrong.value.hint == f"list its frames: a2a-inspect show {SAMPLES / 'demo.a2a.jsonl'} 2"


@pytest.mark.parametrize("name", ["demo", "sdk-0.3-rest", "live-bidi", "stdio", "generations"])
def test_a_run_does_not_differ_from_itself(sample: Callable[[str], Recording], name: str) -> None:
    found = runs(sample(name), sample(name))

    assert (found.count, found.ignored, found.cut) == (0, 0, ())
    assert all(match.change is None for match in found.matches)


def test_runs_over_different_bindings_and_dialects_are_compared(
    sample: Callable[[str], Recording],
) -> None:
    """One client program of two SDK generations over two bindings: half of all calls are the
    same."""
    found = runs(sample("sdk-0.3-jsonrpc"), sample("sdk-1.x-grpc"))
    changes_of = [match.change for match in found.matches]

    assert changes_of.count(None) > 15
    assert (changes_of.count(ValueChange.LEFT), changes_of.count(ValueChange.RIGHT)) == (1, 4)
    assert {
        row.ignored for match in found.matches if match.difference for row in match.difference.rows
    } >= {
        *(
            Ignored.ID,
            Ignored.TIME,
            Ignored.DIALECT,
            Ignored.BINDING,
            Ignored.DEFAULT,
            Ignored.ADDRESS,
        )
    }
    assert all(
        a.left is None or a.right is None or a.left.exchange.operation == a.right.exchange.operation
        for a in found.matches
    )


@pytest.mark.parametrize(
    ("left", "right"),
    [("sdk-0.3-rest", "sdk-1.x-grpc"), ("dialect-0.2", "stdio"), ("live-bidi", "live-1975")],
)
def test_comparing_runs_is_symmetric(
    sample: Callable[[str], Recording], left: str, right: str
) -> None:
    """The same calls are matched, and as much differs, whichever is called left."""
    there, back = runs(sample(left), sample(right)), runs(sample(right), sample(left))

    assert {(number(m.left), number(m.right), m.inside, m.ignored) for m in there.matches} == {
        (number(m.right), number(m.left), m.inside, m.ignored) for m in back.matches
    }


def number(row: ExchangeRow | None) -> int:
    return 0 if row is None else row.exchange.id


def test_rest_paths_are_compared_with_bodies_of_other_bindings(
    sample: Callable[[str], Recording],
) -> None:
    found = runs(sample("sdk-1.x-rest"), sample("sdk-1.x-grpc"))
    rows = [
        row
        for match in found.matches
        if match.difference
        for row in match.difference.rows
        if row.counts
    ]

    assert not [row for row in rows if row.part is ExchangePart.REQUEST]


def test_a_repeated_difference_is_reported_once(sample: Callable[[str], Recording]) -> None:
    """The demo asks for two cities over two bindings."""
    assert described(pair(sample("demo"), 2, sample("demo"), 6)) == [
        ("request", "changed", "$.message.parts[0].text")
    ]


def artifact(number: int, seq: int, text: str, *, append: bool) -> Frame:
    """A chunk of the artifact `plan`."""
    chunk = {"artifactId": "plan", "name": "plan", "parts": [{"text": text}]}
    update = {"taskId": TASK, "contextId": "c", "artifact": chunk, "append": append}
    payload = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"artifactUpdate": update}}).encode()
    return frame(
        number,
        seq,
        payload,
        event=EventKind.ARTIFACT,
        task_id=TASK,
        artifact_id="plan",
        append=append,
    )


def made(
    path: Path, texts: list[list[str]], chunks: list[str] | None = None, **more: Any
) -> Recording:
    """A recording of one call for each list of what the agent says, the last one with an artifact
    in chunks; one with a star replaces those before it."""
    recorded = writer(path)
    frames: list[Frame] = []
    for number, text in enumerate(texts, 1):
        frames += [
            request(number, text[0]),
            *(status(number, seq, words) for seq, words in enumerate(text[1:], 1)),
        ]
    for seq, words in enumerate(chunks or (), 100):
        frames.append(
            artifact(len(texts), seq, words.lstrip("*"), append=seq > 100 and words[0] != "*")
        )
    recorded.write(
        frames, changes=changes(*(exchange(number, **more) for number in range(1, len(texts) + 1)))
    )
    recorded.finish(STARTED + 100_000 * MS)
    return Recording(path)


def test_calls_are_matched_by_request(tmp_path: Path) -> None:
    """An additional call does not shift the others; a call made earlier is reported as moved."""
    with (
        made(tmp_path / "a.db", [["one", "x"], ["two", "y"], ["three", "z"]]) as left,
        made(
            tmp_path / "b.db", [["three", "z"], ["one", "x"], ["new", "n"], ["two", "y!"]]
        ) as right,
    ):
        found = runs(left, right)

    numbers = [
        (
            match.left and match.left.exchange.id,
            match.right and match.right.exchange.id,
            match.change,
        )
        for match in found.matches
    ]
    assert sorted(map(str, numbers)) == sorted(
        map(
            str,
            [
                (1, 2, None),
                (None, 3, ValueChange.RIGHT),
                (2, 4, ValueChange.CHANGED),
                (3, 1, ValueChange.MOVED),
            ],
        )
    )


def test_the_order_of_concurrent_calls_does_not_count(tmp_path: Path) -> None:
    long = {"closed": STARTED + 90_000 * MS}
    with (
        made(tmp_path / "a.db", [["one", "x"], ["two", "y"]], **long) as left,
        made(tmp_path / "b.db", [["two", "y"], ["one", "x"]], **long) as right,
    ):
        found = runs(left, right)

    assert found.count == 0
    assert any(match.moved for match in found.matches)


def test_an_additional_event_is_one_difference(tmp_path: Path) -> None:
    with (
        made(tmp_path / "a.db", [["go", "one", "two", "three"]]) as left,
        made(tmp_path / "b.db", [["go", "one", "between", "two", "three"]]) as right,
    ):
        found = pair(left, 1, right, 1)

    (row,) = [row for row in found.rows if row.counts]
    assert (row.part, row.change, row.frames) == (ExchangePart.EVENTS, ValueChange.RIGHT, (-1, 2))


def test_artifact_texts_are_compared_whatever_the_chunks(tmp_path: Path) -> None:
    """Other chunks do not count; other words do, once."""
    with (
        made(tmp_path / "a.db", [["go", "x"]], ["the old ", "town on foot"]) as left,
        made(tmp_path / "b.db", [["go", "x"]], ["the ", "old town", " on foot"]) as right,
        made(tmp_path / "c.db", [["go", "x"]], ["the old ", "town by tram"]) as other,
    ):
        cut, changed = pair(left, 1, right, 1), pair(left, 1, other, 1)

    assert described(cut) == []
    assert ("artifacts", "changed", Ignored.ARTIFACT) in [
        (r.part, r.change, r.ignored) for r in cut.rows
    ]
    assert described(changed) == [("artifacts", "changed", "$.plan.text")]
    assert changed.texts[0].left.frame_at(9) == 101


def test_a_chunk_that_replaces_the_others_is_an_event(tmp_path: Path) -> None:
    """Even if the final artifact is equal. An artifact of one side only is reported once."""
    with (
        made(tmp_path / "a.db", [["go", "x"]], ["the town"]) as left,
        made(tmp_path / "b.db", [["go", "x"]], ["a draft", "*the town"]) as right,
        made(tmp_path / "c.db", [["go", "x"]]) as none,
    ):
        replaced, alone = pair(left, 1, right, 1), pair(left, 1, none, 1)

    assert described(replaced) == [("events", "only right", "$")]
    assert described(alone) == [("artifacts", "only left", "$.plan")]


def test_a_comparison_can_be_cancelled(sample: Callable[[str], Recording]) -> None:
    """Also while calls are read; otherwise it gets progress and the end."""
    seen: list[tuple[int, int]] = []
    runs(sample("demo"), sample("demo"), watch=lambda *progress: not seen.append(progress))
    assert seen == [(step, 21) for step in range(21)]

    for enough in (2, 15):
        with pytest.raises(ComparisonStopped):
            runs(sample("demo"), sample("demo"), watch=lambda done, _, enough=enough: done < enough)
