"""The report of a drive, as text, JSON or JUnit."""

import json
from collections.abc import Callable, Iterator

import msgspec

from a2a_proxy.drive.plan import SkippedCall, exchange_place
from a2a_proxy.drive.run import DriveRemark
from a2a_proxy.present import text
from a2a_proxy.present.difference.blocks import difference_blocks
from a2a_proxy.present.difference.layout import layout_rows
from a2a_proxy.present.difference.objects import difference_objects
from a2a_proxy.present.junit import JunitSuite, junit_document
from a2a_proxy.protocol.text import make_visible, shell_line
from a2a_proxy.recording.difference.runs import CallPair, RunDifference


class DriveReport(msgspec.Struct, frozen=True):
    """The results of a drive."""

    recorded: str
    """Name of the recording."""
    live: str
    """The agent as named by the user."""
    difference: RunDifference
    """The recording on the left, the live agent on the right."""
    remarks: tuple[DriveRemark, ...] = ()
    left: tuple[SkippedCall, ...] = ()
    notes: tuple[str, ...] = ()
    kept: str = ""
    """Path of the recording of the drive; empty if it is not kept."""
    incomplete: str = ""
    """What is missing in the recording of the drive; empty if nothing is."""


def text_lines(report: DriveReport, width: int = 0) -> Iterator[str]:
    """Yield the report as text."""
    yield f"left   {make_visible(report.recorded)}, as recorded"
    yield f"right  {make_visible(report.live)}, now"
    for note in report.notes:
        yield f"note: {make_visible(note)}"
    for each in report.left:
        yield (
            f"not driven: {each.place} {make_visible(text.exchange_title(each.row.exchange))}: "
            f"{each.reason}"
        )
    for remark in report.remarks:
        yield f"{remark.place} {make_visible(remark.operation)}: {make_visible(remark.text)}"
    if report.incomplete:
        yield f"the recording of the drive is not complete: {make_visible(report.incomplete)}"
    for line in layout_rows(difference_blocks(report.difference), width):
        yield line.text
    if report.kept:
        yield ""
        yield (
            f"show both side by side: "
            f"{shell_line('a2a-inspect', 'diff', report.recorded, report.kept)}"
        )


def json_lines(report: DriveReport, _width: int = 0) -> Iterator[str]:
    """Yield JSON lines: as `a2a-inspect diff --json`, then the calls not driven and the remarks."""
    sides = (
        {"recording": report.recorded, "place": ""},
        {"recording": report.kept, "agent": report.live, "place": ""},
    )
    for each in difference_objects(*sides, report.difference, everything=False):
        yield json.dumps(each)
    for note in report.notes:
        yield json.dumps({"kind": "note", "message": note})
    for skipped in report.left:
        yield json.dumps({"kind": "not driven", "place": skipped.place, "why": skipped.reason})
    for remark in report.remarks:
        yield json.dumps({"kind": "remark", **msgspec.to_builtins(remark)})
    if report.incomplete:
        yield json.dumps({"kind": "incomplete", "message": report.incomplete})


def junit_lines(report: DriveReport, _width: int = 0) -> Iterator[str]:
    """Yield the report as JUnit XML, with one case per call."""
    suite = JunitSuite(f"a2a-proxy drive {report.recorded} at {report.live}")
    for match in report.difference.matches:
        # The time that the live agent took for a call, in ns, or None if it did not end the call.
        call = match.right.exchange if match.right is not None else None
        case = suite.add_case(
            "a2a.drive",
            _case_name(match),
            took=call.closed - call.started if call is not None and call.closed else None,
        )
        if match.change is not None:
            lines = list(_failure_lines(match, report))
            case.add_failure(str(match.change), lines[0], lines)
    if any(row.counts for row in report.difference.tasks):
        words = [
            line.text
            for line in layout_rows(
                difference_blocks(RunDifference([], report.difference.tasks)), 0
            )
        ]
        suite.add_case("a2a.drive", "the course of the tasks").add_failure(
            "changed", words[-1], words
        )
    for each in report.left:
        suite.add_case(
            "a2a.drive", f"{each.place} {text.exchange_title(each.row.exchange)}"
        ).add_skipped(each.reason)
    return junit_document("a2a-proxy drive", [suite])


def _case_name(match: CallPair) -> str:
    row = match.left or match.right
    assert row is not None
    side = "" if match.left is not None else " (only the live agent had it)"
    return (
        f"{exchange_place(row)} {text.exchange_title(row.exchange)} "
        f"{text.binding_and_dialect(row.exchange)}{side}"
    )


def _failure_lines(match: CallPair, report: DriveReport) -> Iterator[str]:
    """Yield what is wrong with a call; the verdict of the whole run is not repeated."""
    place = exchange_place(match.left) if match.left is not None else ""
    yield from (remark.text for remark in report.remarks if remark.place == place)
    if match.change is not None and match.difference is None:
        yield f"{match.change}"
    single = RunDifference([match], [])
    yield from (line.text for line in layout_rows(difference_blocks(single), 0) if line.text)


FORMATS: dict[str, Callable[[DriveReport, int], Iterator[str]]] = {
    "text": text_lines,
    "json": json_lines,
    "junit": junit_lines,
}
