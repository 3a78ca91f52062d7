"""What the turns of `exporting` come to, and what an export of a large recording takes: rows and targets."""

from __future__ import annotations

import contextlib
import statistics
import sys
import time
from pathlib import Path

import load
import msgspec
from cost import ended
from exporting import MOODS, NONE, PROTOCOLS, RATE, Backend, Turn
from processes import free_port, start
from report import Row, Target, row


class Offline(msgspec.Struct, frozen=True):
    """One export of a recording."""

    where: str
    frames: int
    spans: int
    seconds: float
    mib: float
    """Most memory that it took."""


def offline(recording: Path, frames: int, where: str) -> Offline:
    """All of it to a file (`where` is `file`), or by this protocol to a backend that takes everything."""
    with contextlib.ExitStack() as stack:
        backend = None if where == "file" else Backend(where, port := free_port())
        to = ["--to", str(file := recording.with_suffix(".otlp.jsonl"))]
        if backend is not None:
            stack.callback(backend.end)
            to = ["--endpoint", f"http://127.0.0.1:{port}", "--protocol", where]
        program = str(Path(sys.executable).with_name("a2a-inspect"))
        began = time.monotonic()
        process = start([program, "export", "otlp", str(recording), *to], recording.with_suffix(".stderr"))
        _, peak = ended(process)
        took = time.monotonic() - began
        spans = backend.count()[1] if backend is not None else file.read_bytes().count(b'"spanId":')
        file.unlink(missing_ok=True)
        return Offline(where, frames, spans, took, peak)


def offline_rows(some: list[Offline]) -> list[Row]:
    """Spans a second and memory, by size."""
    title = "Export of a recording"
    found = []
    for each in some:
        name = f"{each.where}, {each.frames:,} frames, {each.spans:,} spans"
        found.append(row(title, f"{name}: spans/s", "see left", [each.spans / each.seconds]))
        found.append(row(title, f"{name}: MiB", "see left", [each.mib]))
    return found


def offline_targets(small: Offline, large: Offline) -> list[Target]:
    """Memory does not grow with the recording."""
    name = f"peak memory of an export ({large.where}) of {large.frames:,} frames, times that of {small.frames:,}"
    return [Target(name, 1.25, large.mib / small.mib, at_most=True)]


def live_rows(turns: list[Turn]) -> list[Row]:
    """Round trips by how the backend was, and what the export took."""
    title = f"Live export, {RATE} calls/s on one connection"
    found = []
    for mood, some in _by_mood(turns).items():
        for word, at in (("p50", 0), ("p99", 1)):
            values = [load.percentiles(each.took)[at] for each in some]
            found.append(row(f"{title}, {word}", _called(mood), "us", values, less_is_better=True))
    for mood, some in _by_mood(turns).items():
        values = [load.percentiles(each.back)[0] for each in some]
        found.append(row(f"{title}, p50 when the backend is back", _called(mood), "us", values, less_is_better=True))
    for title, unit, name in (
        ("Export process, processors in use", "processors", "cpu"),
        ("Export process, memory", "MiB", "mib"),
        ("From the backend's return until it has all", "s", "caught_up"),
    ):
        for mood, some in _by_mood(turns).items():
            if mood != NONE:
                values = [getattr(each, name) for each in some]
                found.append(row(title, _called(mood), unit, values, less_is_better=True))
    for mood, some in _by_mood(turns).items():
        values = [float(each.behind) for each in some]
        found.append(row("Recorder, most octets behind", _called(mood), "octets", values, less_is_better=True))
    return found


def live_targets(turns: list[Turn]) -> list[Target]:
    """A call takes no longer, the recorder comes to the end, and every span is accounted for once."""
    by_mood = _by_mood(turns)
    without = _p50(by_mood[NONE])
    found = []
    for mood in MOODS:
        name = f"p50, backend {mood}, times that without export"
        found.append(Target(name, 1.05, _p50(by_mood[mood]) / without, at_most=True))
    left = max(each.left for each in turns)
    found.append(Target("octets that the recorder is behind in the end", 0, left, at_most=True))
    for protocol in PROTOCOLS:
        some = [each for each in turns if each.protocol == protocol]
        twice = sum(each.stored - each.distinct for each in some)
        found.append(Target(f"spans that the backend has twice, {protocol}", 0, twice, at_most=True))
        lost = sum(not each.whole for each in some)
        found.append(Target(f"turns in which a call is not accounted for, {protocol}", 0, lost, at_most=True))
    return found


def notes(turns: list[Turn]) -> list[str]:
    """What became of the spans of each turn."""
    found = ["| backend | protocol | calls | sent | given up | not sent | stored by the backend | of them different |"]
    found += ["|---|---|--:|--:|--:|--:|--:|--:|"]
    for each in turns:
        if each.mood != NONE:
            counts = (each.calls, each.sent, each.given_up, each.unsent, each.stored, each.distinct)
            found.append(f"| {each.mood} | {each.protocol} | {' | '.join(f'{count:,}' for count in counts)} |")
    return [*found, ""]


def _by_mood(turns: list[Turn]) -> dict[str, list[Turn]]:
    return {mood: [each for each in turns if each.mood == mood] for mood in (NONE, *MOODS)}


def _called(mood: str) -> str:
    return mood if mood == NONE else f"backend {mood}"


def _p50(turns: list[Turn]) -> float:
    return statistics.median(load.percentiles(each.took)[0] for each in turns)
