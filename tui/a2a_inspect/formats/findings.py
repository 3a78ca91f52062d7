"""JUnit XML and SARIF of today's rules about the selected exchanges, as written by
`a2a-inspect check`."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from a2a_inspect.check import junit, sarif
from a2a_inspect.check.report import CheckReport, check_recording, select_rules
from a2a_inspect.formats.chosen import ExportSelection
from a2a_proxy.model.values import Severity
from a2a_proxy.rules.define.catalogue import all_rules


def write_junit(selection: ExportSelection, stream: BinaryIO) -> None:
    """Write JUnit XML: one suite per session, one case per rule, which fails for an error. Raises
    RecordingError."""
    _write_report(selection, stream, junit.format_lines)


def write_sarif(selection: ExportSelection, stream: BinaryIO) -> None:
    """Write SARIF 2.1.0. Raises RecordingError."""
    _write_report(selection, stream, sarif.format_lines)


def _write_report(
    selection: ExportSelection, stream: BinaryIO, lines: Callable[[CheckReport], Iterator[str]]
) -> None:
    report = CheckReport(list(all_rules().values()), Severity.ERROR)
    path = Path(selection.recording.path)
    report.sessions += check_recording(
        selection.recording, path, select_rules((), ()), selection.keys
    )
    for line in lines(report):
        stream.write(f"{line}\n".encode())
