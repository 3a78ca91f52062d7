"""The report as JSON lines; the last object is the summary."""

import json
from collections.abc import Iterator

from a2a_inspect.check.report import CheckedSession, CheckFinding, CheckReport
from a2a_inspect.data.finding_words import finding_facts
from a2a_proxy.model.values import Severity


def format_lines(report: CheckReport) -> Iterator[str]:
    """Yield a `finding` per finding, a `session` after each session's findings, and a `summary` at
    the end."""
    for one in report.sessions:
        yield from (_finding_line(one, each) for each in one.findings)
        yield json.dumps(
            {
                "event": "session",
                "recording": one.path,
                "session": one.session,
                "exchanges": one.exchanges,
                "frames": one.frames,
                "complete": not one.incomplete_reason,
                "missing": one.incomplete_reason,
                "quiet": one.skipped_rules,
                "notes": one.notes,
            }
        )
    yield json.dumps(
        {
            "event": "summary",
            "rules": [rule.id for rule in report.executed_rules],
            **{each.name.lower(): report.count_findings(each) for each in reversed(Severity)},
            "suppressed": report.suppressed_findings,
            "unused_suppressions": [
                {"rule": each.rule, "reason": each.reason} for each in report.unused_suppressions
            ],
            "expired_suppressions": [
                {"rule": each.rule, "reason": each.reason} for each in report.expired_suppressions
            ],
        }
    )


def _finding_line(session: CheckedSession, check_finding: CheckFinding) -> str:
    facts = finding_facts(check_finding.finding)
    more = {"operation": check_finding.operation, "suppressed": check_finding.suppressed or None}
    return json.dumps(
        {"event": "finding", "recording": session.path, "session": session.session, **facts, **more}
    )
