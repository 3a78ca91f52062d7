"""Options and output of a report: the choice of rules, suppressions, formats, the file, and the
exit code."""

import contextlib
import datetime
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from a2a_inspect.check import json_format, junit, sarif, text_format
from a2a_inspect.check.report import DECODER_FINDINGS, CheckReport, select_rules
from a2a_inspect.check.suppressions import Suppression, read_suppressions
from a2a_inspect.data import recording_choice
from a2a_proxy.cards.verify import CardVerifier
from a2a_proxy.model.errors import UserError
from a2a_proxy.model.values import Severity
from a2a_proxy.present.output import print_document, print_line, print_note
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.define.rule import Rule

EXIT_FINDINGS = 1
"""Exit code if findings are severe enough."""
FORMATS: dict[str, Callable[[CheckReport], Iterator[str]]] = {
    "text": text_format.format_lines,
    "json": json_format.format_lines,
    "junit": junit.format_lines,
    "sarif": sarif.format_lines,
}


class ReportOptions(msgspec.Struct, kw_only=True):
    """Options of every command that prints a report."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: str = "error"
    """Name of a severity, or `never`."""
    output_format: str = "text"
    output: Path | None = None
    suppressions: Path | None = None
    card_keys: Path | None = None
    lists_all: bool = False
    """Whether the text lists each finding instead of grouping them by rule."""


def read_card_keys(path: Path | None) -> CardVerifier | None:
    """Return the verifier of `--card-keys`, or None without the option; what the user should know
    about the file goes to stderr.

    Raises:
        UserError: the extra is not installed, or the file cannot be read or has no keys.
    """
    if path is None:
        return None
    from a2a_proxy.cli.card_keys import load_card_verifier

    verifier, note = load_card_verifier(path)
    if note:
        print_note(f"a2a-inspect: warning: {note}")
    return verifier


class ReportOutput:
    """One report from the choice of its rules to its output."""

    def __init__(
        self,
        options: ReportOptions,
        today: datetime.date,
        rules: dict[str, Rule] | None = None,
        other_findings: dict[str, str] = DECODER_FINDINGS,
    ) -> None:
        """Choose from `rules`, or from all rules, and read the suppressions.

        Raises:
            UserError: the suppressions file cannot be read, no rule is selected or a prefix is
            unknown.
        """
        self._options = options
        rules = all_rules() if rules is None else rules
        rule_ids = select_rules(options.select, options.ignore, other_findings)
        self.rule_ids = rule_ids & {*rules, *other_findings}
        """Ids of the selected rules, and of the selected findings that no rule reports."""
        if not self.rule_ids:
            raise UserError("no rule is chosen", "list them: a2a-inspect rules")
        self._suppressions, expired = (
            read_suppressions(options.suppressions, today) if options.suppressions else ([], [])
        )
        fail_on = None if options.fail_on == "never" else Severity[options.fail_on.upper()]
        self.report = CheckReport(
            [rule for ident, rule in rules.items() if ident in rule_ids], fail_on
        )
        self.report.other_findings = other_findings
        self.report.lists_all = options.lists_all
        self.report.expired_suppressions = expired

    def refuse_overwriting(self, inputs: Iterable[Path]) -> None:
        """Raise UserError if the report would overwrite one of the inputs, or the suppressions."""
        if self._options.output is None:
            return
        for read_too in (
            *inputs,
            *filter(None, (self._options.suppressions, self._options.card_keys)),
        ):
            with contextlib.suppress(OSError):  # one of the two does not exist or is not accessible
                if self._options.output.samefile(read_too):
                    raise UserError(
                        f"{self._options.output} is an input of this check",
                        "choose another file: --output FILE",
                    )

    def print_report(self) -> int:
        """Apply the suppressions, write the report and return the exit code. Raises UserError."""
        report = self.report
        report.unused_suppressions = _apply_suppressions(report, self._suppressions)
        _write_report(report, self._options)
        worst = report.highest_severity
        failed = report.fail_on is not None and worst is not None and worst >= report.fail_on
        return EXIT_FINDINGS if failed else 0


def _apply_suppressions(report: CheckReport, entries: list[Suppression]) -> list[Suppression]:
    """Mark suppressed findings and return the entries that matched nothing."""
    used: set[int] = set()
    for one in report.sessions:
        for found in one.findings:
            entry = next(
                (
                    n
                    for n, each in enumerate(entries)
                    if each.is_match(found.finding, found.operation)
                ),
                None,
            )
            if entry is not None:
                used.add(entry)
                found.suppressed = entries[entry].reason
    return [each for number, each in enumerate(entries) if number not in used]


def _write_report(report: CheckReport, options: ReportOptions) -> None:
    lines = FORMATS[options.output_format]
    print_text = print_line if options.output_format == "text" else print_document
    if options.output is None or options.output == recording_choice.STDOUT:
        for line in lines(report):
            print_text(line)
        return
    try:
        with options.output.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines(report))
    except OSError as wrong:
        reason = (wrong.strerror or str(wrong)).lower()
        raise UserError(
            f"cannot write {options.output}: {reason}", "choose another file: --output FILE"
        ) from wrong
    for line in text_format.format_lines(report):
        print_line(line)
