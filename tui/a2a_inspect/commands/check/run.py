"""The command: check, print, exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec

from a2a_inspect.commands.check.report import Checked, Report, check, chosen
from a2a_inspect.place import opened
from a2a_proxy.cli import text
from a2a_proxy.model.finding import Finding, Severity
from a2a_proxy.protocol.text import visible


def run(paths: tuple[Path | None, ...], select: tuple[str, ...], ignore: tuple[str, ...], output: str) -> int:
    """Check the recordings and print what was found."""
    wanted = chosen(select, ignore)
    report = Report(list(wanted.values()), [])
    for path in paths:
        with opened(path) as recording:
            report.checked += check(recording, Path(recording.path), wanted)
    for line in _text(report) if output == "text" else _json(report):
        print(line)
    return 0


def _text(report: Report) -> Iterator[str]:
    for one in report.checked:
        yield f"{one.path} session {one.session}: {text.plural(one.exchanges, 'exchange')}, {one.frames} frames"
        for finding in one.findings:
            yield f"  {_line(finding)}"
    told = ", ".join(f"{report.count(each)} {each.name.lower()}" for each in reversed(Severity))
    yield f"{text.plural(len(report.ran), 'rule')} ran: {told}"


def _line(finding: Finding) -> str:
    place = f"#{finding.exchange}" + (f".{finding.seq}" if finding.seq >= 0 else "") if finding.exchange else ""
    sure = "" if finding.confidence == "high" else f" ({finding.confidence} confidence)"
    return f"{finding.severity.name.lower():8}{finding.rule:16}{place:8}{visible(finding.summary)}{sure}"


def _json(report: Report) -> Iterator[str]:
    for one in report.checked:
        yield from (_finding(one, each) for each in one.findings)


def _finding(one: Checked, finding: Finding) -> str:
    told = msgspec.to_builtins(finding) | {"severity": finding.severity.name.lower()}
    return json.dumps({"recording": one.path, "session": one.session, **told})
