"""The report as JUnit XML: a suite a session, a case a rule."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_inspect.commands.check.report import CheckedSession, CheckFinding, CheckReport, facts
from a2a_proxy.present import text
from a2a_proxy.present.junit import Case, Suite, document
from a2a_proxy.rules.define.catalogue import all_rules


def lines(report: CheckReport) -> Iterator[str]:
    """The document."""
    return document("a2a-inspect check", (_suite(one, report) for one in report.checked))


def _suite(one: CheckedSession, report: CheckReport) -> Suite:
    """A case fails with findings of its rule that are grave enough; what the decoders said is a case too."""
    by_rule: dict[str, list[CheckFinding]] = {rule.id: [] for rule in report.ran}
    for each in one.found:
        by_rule.setdefault(each.finding.rule, []).append(each)
    titles = {rule.id: rule.title for rule in report.ran}
    of = f"{one.path} session {one.session}"
    where = f" ({of})" if len(report.checked) > 1 else ""  # else services take all but one of these cases for the same
    known = {"recording": one.path, "session": one.session, "exchanges": one.exchanges, "frames": one.frames}
    suite = Suite(of, began=one.started, properties=known)
    for ident, found in by_rule.items():
        name = f"{ident} {titles[ident]}" if ident in titles else ident
        _judge(suite.case(_family(ident), name + where), found, report, quiet=ident in one.quiet)
    if one.missing:
        case = suite.case("a2a.capture", f"the capture is complete{where}")
        case.failed("incomplete", one.missing, [one.missing])
    return suite


def _judge(case: Case, found: list[CheckFinding], report: CheckReport, *, quiet: bool) -> None:
    """Give a case what was found of its rule, gravest first."""
    counting = sorted(
        (each for each in found if not each.suppressed), key=lambda each: each.finding.severity, reverse=True
    )
    if counting and report.fail_on is not None and counting[0].finding.severity >= report.fail_on:
        worst = counting[0].finding
        case.failed(worst.severity.name.lower(), worst.summary, [_line(each) for each in counting])
    elif counting:
        case.said([_line(each) for each in counting])
    elif found:
        case.skipped(f"suppressed: {found[0].suppressed}")
    elif quiet:
        case.skipped("without payloads (metadata only) it can say nothing")


def _family(ident: str) -> str:
    return f"a2a.{ident.split('-')[1].lower()}" if ident.startswith("A2A-") else "a2a.capture"


def _line(found: CheckFinding) -> str:
    """`error #1.3 SendMessage: there is no member ... (A required member is missing; 5.5; at params)`."""
    finding = found.finding
    rule = all_rules().get(finding.rule)
    told = [rule.title] if rule is not None else []
    where = " ".join(filter(None, (finding.severity.name.lower(), text.place(finding), found.operation)))
    return f"{where}: {finding.summary} ({'; '.join(told + facts(finding))})"
