"""What a drive found, as text, JSON or JUnit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from xml.etree import ElementTree

import msgspec

from a2a_proxy.cli import text
from a2a_proxy.cli.difference.blocks import blocks
from a2a_proxy.cli.difference.layout import lines
from a2a_proxy.cli.difference.objects import objects
from a2a_proxy.drive.plan import Left, place_of
from a2a_proxy.drive.run import Remark
from a2a_proxy.protocol.text import visible
from a2a_proxy.recording.difference.runs import Match, RunDifference


class Report(msgspec.Struct, frozen=True):
    """All of it."""

    recorded: str
    """Name of the recording."""
    live: str
    """The agent as it was named."""
    found: RunDifference
    """The recording on the left, the live agent on the right."""
    remarks: tuple[Remark, ...] = ()
    left: tuple[Left, ...] = ()
    notes: tuple[str, ...] = ()
    kept: str = ""
    """Where the recording of the drive is; empty where it was not wanted."""
    incomplete: str = ""
    """What the recording of the drive lacks."""


def text_lines(report: Report, width: int = 0) -> Iterator[str]:
    """For people."""
    yield f"left   {visible(report.recorded)}, as recorded"
    yield f"right  {visible(report.live)}, now"
    for note in report.notes:
        yield f"note: {visible(note)}"
    for each in report.left:
        yield f"not driven: {each.place} {visible(text.title(each.row.exchange))}: {each.why}"
    for remark in report.remarks:
        yield f"{remark.place} {visible(remark.operation)}: {visible(remark.said)}"
    if report.incomplete:
        yield f"the recording of the drive is not complete: {visible(report.incomplete)}"
    for line in lines(blocks(report.found), width):
        yield line.text
    if report.kept:
        yield ""
        yield f"both side by side: a2a-inspect diff {visible(report.recorded)} {visible(report.kept)}"


def json_lines(report: Report, _width: int = 0) -> Iterator[str]:
    """For programs: as of `a2a-inspect diff --json`, then what was not driven, and what did not go as recorded."""
    sides = ({"recording": report.recorded, "place": ""}, {"recording": report.kept, "agent": report.live, "place": ""})
    for each in objects(*sides, report.found, everything=False):
        yield json.dumps(each)
    for note in report.notes:
        yield json.dumps({"kind": "note", "message": note})
    for skipped in report.left:
        yield json.dumps({"kind": "not driven", "place": skipped.place, "why": skipped.why})
    for remark in report.remarks:
        yield json.dumps({"kind": "remark", **msgspec.to_builtins(remark)})
    if report.incomplete:
        yield json.dumps({"kind": "incomplete", "message": report.incomplete})


def junit_lines(report: Report, _width: int = 0) -> Iterator[str]:
    """For CI: a case a call."""
    suite = ElementTree.Element("testsuite", name=_clean(f"a2a-proxy drive {report.recorded} at {report.live}"))
    failures = 0
    for match in report.found.matches:
        case = ElementTree.SubElement(suite, "testcase", classname="a2a.drive", name=_clean(_name(match)))
        if match.change is not None:
            failures += 1
            told = list(_told(match, report))
            ElementTree.SubElement(case, "failure", type=str(match.change), message=told[0]).text = "\n".join(told)
    if any(row.counts for row in report.found.tasks):
        failures += 1
        case = ElementTree.SubElement(suite, "testcase", classname="a2a.drive", name="the course of the tasks")
        words = [line.text for line in lines(blocks(RunDifference([], report.found.tasks)), 0)]
        ElementTree.SubElement(case, "failure", type="changed", message=words[-1]).text = "\n".join(words)
    for each in report.left:
        name = f"{each.place} {text.title(each.row.exchange)}"
        case = ElementTree.SubElement(suite, "testcase", classname="a2a.drive", name=_clean(name))
        ElementTree.SubElement(case, "skipped", message=_clean(each.why))
    counts = {"tests": len(suite), "failures": failures, "errors": 0, "skipped": len(report.left)}
    for name, count in counts.items():
        suite.set(name, str(count))
    root = ElementTree.Element("testsuites", name="a2a-proxy drive")
    root.append(suite)
    ElementTree.indent(root)
    yield '<?xml version="1.0" encoding="utf-8"?>'
    yield ElementTree.tostring(root, encoding="unicode")


def _name(match: Match) -> str:
    row = match.left or match.right
    assert row is not None
    side = "" if match.left is not None else " (only the live agent had it)"
    return f"{place_of(row)} {text.title(row.exchange)} {text.manner(row.exchange)}{side}"


def _told(match: Match, report: Report) -> Iterator[str]:
    """What is wrong with a call; the verdict of the whole is not repeated."""
    place = place_of(match.left) if match.left is not None else ""
    yield from (_clean(remark.said) for remark in report.remarks if remark.place == place)
    if match.change is not None and match.difference is None:
        yield f"{match.change}"
    single = RunDifference([match], [])
    yield from (_clean(line.text) for line in lines(blocks(single), 0) if line.text)


def _clean(words: str) -> str:
    """What XML cannot hold is escaped."""
    return visible(words).encode("utf-8", "replace").decode()


FORMATS: dict[str, Callable[[Report, int], Iterator[str]]] = {
    "text": text_lines,
    "json": json_lines,
    "junit": junit_lines,
}
