"""Results of `exporting` and of an export of a large recording: rows and targets."""

from __future__ import annotations

import contextlib
import math
import statistics
import sys
import time
from pathlib import Path

import msgspec
from cost import ended
from exporting import MOODS, NONE, PROTOCOLS, RATE, Turn
from processes import free_port, start
from report import Row, Target, row
from standing import Backend


class Offline(msgspec.Struct, frozen=True):
    """One export of a recording."""

    where: str
    frames: int
    spans: int
    seconds: float
    mib: float
    """Maximum memory."""


def offline(recording: Path, frames: int, where: str) -> Offline:
    """Export the whole recording to a file (`where` is `file`), or by this protocol to a backend
    that accepts everything."""
    with contextlib.ExitStack() as stack:
        backend = None if where == "file" else Backend(where, port := free_port())
        to = ["--to", str(file := recording.with_suffix(".otlp.jsonl"))]
        if backend is not None:
            stack.callback(backend.end)
            to = ["--endpoint", f"http://127.0.0.1:{port}", "--protocol", where]
        program = str(Path(sys.executable).with_name("a2a-inspect"))
        began = time.monotonic()
        process = start(
            [program, "export", "otlp", str(recording), *to], recording.with_suffix(".stderr")
        )
        _, peak = ended(process)
        took = time.monotonic() - began
        spans = backend.count()[1] if backend is not None else file.read_bytes().count(b'"spanId":')
        file.unlink(missing_ok=True)
        return Offline(where, frames, spans, took, peak)


def offline_rows(some: list[Offline]) -> list[Row]:
    """Return spans per second and memory, by size of the recording."""
    title = "Export of a recording"
    found = []
    for each in some:
        name = f"{each.where}, {each.frames:,} frames, {each.spans:,} spans"
        found.append(row(title, f"{name}: spans/s", "see left", [each.spans / each.seconds]))
        found.append(row(title, f"{name}: MiB", "see left", [each.mib]))
    return found


def offline_targets(small: Offline, large: Offline) -> list[Target]:
    """Return the targets: memory does not grow with the recording."""
    name = (
        f"peak memory of an export ({large.where}) "
        f"of {large.frames:,} frames, times that of {small.frames:,}"
    )
    return [Target(name, 1.25, large.mib / small.mib, at_most=True)]


def live_rows(turns: list[Turn]) -> list[Row]:
    """Return the round trips by mood of the backend, and the cost of the export."""
    title = f"Live export, {RATE} calls/s on one connection"
    found = []
    for mood, some in _by_mood(turns).items():
        for word, values in (
            ("p50 of a slice", [value for each in some for value in each.p50]),
            (
                "p50 of the slices beside it, without export",
                [value for each in some for value in each.without],
            ),
            ("p99 of a slice", [value for each in some for value in each.p99]),
            ("p50 when the backend is back", [each.back for each in some]),
        ):
            found.append(row(f"{title}, {word}", _called(mood), "us", values, less_is_better=True))
    for mood, some in _by_mood(turns).items():
        for title, unit, name in (
            ("Export process, memory", "MiB", "mib"),
            ("From the backend's return until it has all", "s", "caught_up"),
        ):
            if mood != NONE:
                values = [getattr(each, name) for each in some]
                found.append(row(title, _called(mood), unit, values, less_is_better=True))
        values = [float(each.behind) for each in some]
        found.append(
            row("Recorder, most bytes behind", _called(mood), "bytes", values, less_is_better=True)
        )
    return found


def live_targets(turns: list[Turn]) -> list[Target]:
    """Return the targets: calls take no longer, the recorder catches up, and every span is
    accounted for once."""
    found = []
    for mood, some in _by_mood(turns).items():
        ratios = [ratio for each in some for ratio in each.ratios]
        low, high = interval(ratios)
        name = f"p50, {_called(mood)}, times that without export (95 %: {low:.3f} to {high:.3f})"
        found.append(Target(name, 1.05, statistics.median(ratios), at_most=True))
    left = max(each.left for each in turns)
    found.append(Target("bytes that the recorder is behind in the end", 0, left, at_most=True))
    for protocol in PROTOCOLS:
        some = [each for each in turns if each.protocol == protocol and each.exports]
        twice = sum(each.stored - each.distinct for each in some)
        found.append(
            Target(f"spans that the backend has twice, {protocol}", 0, twice, at_most=True)
        )
        lost = sum(not each.whole for each in some)
        found.append(
            Target(f"turns in which a call is not accounted for, {protocol}", 0, lost, at_most=True)
        )
    return found


def notes(turns: list[Turn]) -> list[str]:
    """Return notes on each turn: the agreement of its slices, the times at which the export worked,
    and the fate of the spans."""
    found = [
        (
            "| | protocol | slices | ratio of p50, median | 95 % "
            "| quartiles | processors in its slices | outside |"
        )
    ]
    found += ["|---|---|--:|--:|--:|--:|--:|--:|"]
    for each in turns:
        lower, middle, upper = quartiles(each.ratios)
        low, high = interval(each.ratios)
        cells = [
            _called(each.mood),
            each.protocol if each.exports else "",
            f"{len(each.ratios)}",
            f"{middle:.3f}",
        ]
        cells += [f"{low:.3f} to {high:.3f}", f"{lower:.3f} to {upper:.3f}"]
        found.append(f"| {' | '.join([*cells, f'{each.within:.2f}', f'{each.outside:.2f}'])} |")
    found += [
        "",
        (
            "| | protocol | calls | sent | given up | not sent "
            "| stored by the backend | of them different |"
        ),
    ]
    found += ["|---|---|--:|--:|--:|--:|--:|--:|"]
    for each in turns:
        if each.exports:
            counts = (each.calls, each.sent, each.given_up, each.unsent, each.stored, each.distinct)
            cells = [_called(each.mood), each.protocol, *(f"{count:,}" for count in counts)]
            found.append(f"| {' | '.join(cells)} |")
    return [*found, ""]


def quartiles(values: list[float]) -> tuple[float, float, float]:
    """Return the quartiles of the values."""
    if len(values) < 2:
        return values[0], values[0], values[0]
    lower, middle, upper = statistics.quantiles(values, n=4, method="inclusive")
    return lower, middle, upper


def interval(values: list[float]) -> tuple[float, float]:
    """Return the interval of the values that contains the true median with a probability of 95 %,
    for any distribution: each value is above or below it like the side of a coin. For fewer than
    six values: the smallest and the largest."""
    ordered, number = sorted(values), len(values)
    below, rank = 0.5**number, 0
    while below + math.comb(number, rank + 1) * 0.5**number <= 0.025:
        rank += 1
        below += math.comb(number, rank) * 0.5**number
    return ordered[rank], ordered[-1 - rank]


def _by_mood(turns: list[Turn]) -> dict[str, list[Turn]]:
    return {mood: [each for each in turns if each.mood == mood] for mood in (NONE, *MOODS)}


def _called(mood: str) -> str:
    return f"{NONE} either" if mood == NONE else f"backend {mood}"
