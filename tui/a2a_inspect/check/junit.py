"""The report as JUnit XML: one suite per session, one case per rule."""

from collections.abc import Iterator

from a2a_inspect.check.report import (
    CARD_FINDINGS,
    CheckedSession,
    CheckFinding,
    CheckReport,
    evidence_facts,
)
from a2a_proxy.present import text
from a2a_proxy.present.junit import JunitCase, JunitSuite, junit_document
from a2a_proxy.rules.define.catalogue import all_rules


def format_lines(report: CheckReport) -> Iterator[str]:
    """Return the lines of the document."""
    return junit_document(
        "a2a-inspect check", (_session_suite(one, report) for one in report.sessions)
    )


def _session_suite(session: CheckedSession, report: CheckReport) -> JunitSuite:
    """Return the suite of a session.

    A case fails if its rule has a finding that is severe enough; decoder findings are cases too.
    """
    by_rule: dict[str, list[CheckFinding]] = {rule.id: [] for rule in report.executed_rules}
    for each in session.findings:
        by_rule.setdefault(each.finding.rule, []).append(each)
    titles = {rule.id: rule.title for rule in report.executed_rules}
    of = f"{session.path} session {session.session}"
    where = (
        f" ({of})" if len(report.sessions) > 1 else ""
    )  # otherwise services keep only one of several cases with the same name
    properties = {
        "recording": session.path,
        "session": session.session,
        "exchanges": session.exchanges,
        "frames": session.frames,
    }
    suite = JunitSuite(of, began=session.started, properties=properties)
    for ident, found in by_rule.items():
        name = f"{ident} {titles[ident]}" if ident in titles else ident
        _set_case_result(
            suite.add_case(_suite_class_name(ident), name + where),
            found,
            report,
            skipped=ident in session.skipped_rules,
        )
    if session.incomplete_reason:
        case = suite.add_case("a2a.capture", f"the capture is complete{where}")
        case.add_failure("incomplete", session.incomplete_reason, [session.incomplete_reason])
    return suite


def _set_case_result(
    case: JunitCase, findings: list[CheckFinding], report: CheckReport, *, skipped: bool
) -> None:
    """Set the result of a case from its rule's findings, the most severe first."""
    counting = sorted(
        (each for each in findings if each.counts),
        key=lambda each: each.finding.severity,
        reverse=True,
    )
    if counting and report.fail_on is not None and counting[0].finding.severity >= report.fail_on:
        worst = counting[0].finding
        message = ": ".join(filter(None, (_place_words(counting[0]), worst.summary)))
        case.add_failure(
            worst.severity.name.lower(), message, [_finding_line(each) for each in counting]
        )
    elif counting:
        case.add_output([_finding_line(each) for each in counting])
    elif any(each.suppressed for each in findings):
        reason = next(each.suppressed for each in findings if each.suppressed)
        case.add_skipped(f"suppressed: {reason}")
    elif findings:
        case.add_output([_finding_line(each) for each in findings])
    elif skipped:
        case.add_skipped("not run: payloads were not recorded (metadata only)")


def _suite_class_name(ident: str) -> str:
    if ident in CARD_FINDINGS:
        return "a2a.card"
    return f"a2a.{ident.split('-')[1].lower()}" if ident.startswith("A2A-") else "a2a.capture"


def _finding_line(check_finding: CheckFinding) -> str:
    """Return `error #1.3 SendMessage: there is no member ... (A required member is missing; 5.5; at
    params)`."""
    finding = check_finding.finding
    rule = all_rules().get(finding.rule)
    parts = [rule.title] if rule is not None else []
    where = " ".join(filter(None, (finding.severity.name.lower(), _place_words(check_finding))))
    return f"{where}: {finding.summary} ({'; '.join(parts + evidence_facts(finding))})"


def _place_words(check_finding: CheckFinding) -> str:
    """Return `#1.3 SendMessage`."""
    return " ".join(
        filter(None, (text.finding_location(check_finding.finding), check_finding.operation))
    )
