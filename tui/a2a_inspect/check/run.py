"""The check command: run the rules, print the report, return the exit code."""

import datetime
from pathlib import Path

from a2a_inspect.check.output import ReportOptions, ReportOutput, read_card_keys
from a2a_inspect.check.report import check_recording
from a2a_inspect.commands.filters import print_no_match
from a2a_inspect.data import recording_choice
from a2a_proxy.recording.query.sql import Rows


class CheckOptions(ReportOptions, kw_only=True):
    """Options of the check command."""

    where: str = ""
    """Filter expression: only findings of exchanges that match."""
    allow_incomplete: bool = False


def run_check(paths: tuple[Path | None, ...], options: CheckOptions, today: datetime.date) -> int:
    """Check the recordings, print the report and return the exit code.

    Raises:
        UserError: a recording or the suppressions file cannot be read, no rule is selected or a
        prefix is unknown, or
            the report would overwrite an input.
    """
    recordings = [recording_choice.resolve_recording(path) for path in paths]
    output = ReportOutput(options, today)
    output.refuse_overwriting(
        Path(f"{path}{end}") for path in recordings for end in ("", "-wal", "-shm")
    )
    verifier = read_card_keys(options.card_keys)
    matching = not options.where
    for path in recordings:
        with recording_choice.open_recording(path) as recording:
            keys = (
                set(recording.get_queryable().select_ids(options.where, Rows.EXCHANGES))
                if options.where
                else None
            )
            output.report.sessions += check_recording(
                recording, path, output.rule_ids, keys, verifier
            )
            matching = matching or bool(keys)
    if not matching:
        print_no_match(options.where)
    code = output.print_report()
    incomplete = any(one.incomplete_reason for one in output.report.sessions)
    return (
        recording_choice.EXIT_INCOMPLETE
        if not code and incomplete and not options.allow_incomplete
        else code
    )
