"""The check command: run the rules, print the report, return the exit code."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from a2a_inspect.commands.check import json_format, junit, sarif, text_format
from a2a_inspect.commands.check.report import CheckReport, check_recording, select_rules
from a2a_inspect.commands.check.suppressions import Suppression, read_suppressions
from a2a_inspect.commands.filters import print_no_match
from a2a_inspect.data import recording_choice
from a2a_proxy.cli.errors import UserError
from a2a_proxy.model.finding import Severity
from a2a_proxy.recording.query.sql import Rows
from a2a_proxy.rules.define.catalogue import all_rules

EXIT_FINDINGS, EXIT_INCOMPLETE = 1, 3
"""Exit codes: findings that are severe enough; an incomplete capture."""
FORMATS: dict[str, Callable[[CheckReport], Iterator[str]]] = {
    "text": text_format.lines,
    "json": json_format.lines,
    "junit": junit.lines,
    "sarif": sarif.lines,
}


class CheckOptions(msgspec.Struct, kw_only=True):
    """Options of the check command."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    where: str = ""
    """Filter expression: only findings of exchanges that match."""
    fail_on: str = "error"
    """Name of a severity, or `never`."""
    output_format: str = "text"
    output: Path | None = None
    suppressions: Path | None = None
    allow_incomplete: bool = False


def run_check(paths: tuple[Path | None, ...], options: CheckOptions, today: datetime.date) -> int:
    """Check the recordings, print the report and return the exit code.

    Raises:
        UserError: a recording or the suppressions file cannot be read, no rule is selected or a prefix is unknown, or
            the report would overwrite an input.
    """
    recordings = [recording_choice.resolve_recording(path) for path in paths]
    _refuse_overwriting(recordings, options)
    wanted = select_rules(options.select, options.ignore)
    if not wanted:
        raise UserError("no rule is chosen", "list them: a2a-inspect rules")
    entries, expired = read_suppressions(options.suppressions, today) if options.suppressions else ([], [])
    ran = [rule for ident, rule in all_rules().items() if ident in wanted]
    report = CheckReport(ran, None if options.fail_on == "never" else Severity[options.fail_on.upper()])
    matching = not options.where
    for path in recordings:
        with recording_choice.open_recording(path) as recording:
            keys = set(recording.queryable().ids(options.where, Rows.EXCHANGES)) if options.where else None
            report.sessions += check_recording(recording, path, wanted, keys)
            matching = matching or bool(keys)
    if not matching:
        print_no_match(options.where)
    report.unused_suppressions, report.expired_suppressions = _apply_suppressions(report, entries), expired
    _write_report(report, options)
    return _exit_code(report, options)


def _refuse_overwriting(recordings: list[Path], options: CheckOptions) -> None:
    """Raise UserError if the report would overwrite a file that the check reads."""
    if options.output is None:
        return
    beside = [Path(f"{path}{end}") for path in recordings for end in ("-wal", "-shm")]
    for read_too in (*recordings, *beside, *filter(None, (options.suppressions,))):
        with contextlib.suppress(OSError):  # one of the two does not exist or is not accessible
            if options.output.samefile(read_too):
                raise UserError(f"{options.output} is an input of this check", "choose another file: --output FILE")


def _apply_suppressions(report: CheckReport, entries: list[Suppression]) -> list[Suppression]:
    """Mark suppressed findings and return the entries that matched nothing."""
    used: set[int] = set()
    for one in report.sessions:
        for found in one.findings:
            entry = next((n for n, each in enumerate(entries) if each.is_match(found.finding, found.operation)), None)
            if entry is not None:
                used.add(entry)
                found.suppressed = entries[entry].reason
    return [each for number, each in enumerate(entries) if number not in used]


def _write_report(report: CheckReport, options: CheckOptions) -> None:
    lines = FORMATS[options.output_format]
    if options.output is None or options.output == recording_choice.STDOUT:
        for line in lines(report):
            print(line)
        return
    try:
        with options.output.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines(report))
    except OSError as wrong:
        reason = (wrong.strerror or str(wrong)).lower()
        raise UserError(f"cannot write {options.output}: {reason}", "choose another file: --output FILE") from wrong
    for line in text_format.lines(report):
        print(line)


def _exit_code(report: CheckReport, options: CheckOptions) -> int:
    worst = report.highest_severity
    if report.fail_on is not None and worst is not None and worst >= report.fail_on:
        return EXIT_FINDINGS
    if not options.allow_incomplete and any(one.incomplete_reason for one in report.sessions):
        return EXIT_INCOMPLETE
    return 0
