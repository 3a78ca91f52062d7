"""The report for programs: one JSON object a line, the last one sums up."""

from __future__ import annotations

import json
from collections.abc import Iterator

from a2a_inspect.commands.check.report import CheckedSession, CheckFinding, CheckReport
from a2a_inspect.commands.session import finding_facts
from a2a_proxy.model.finding import Severity


def lines(report: CheckReport) -> Iterator[str]:
    """`finding` for each, `session` after those of a session, `summary` at the end."""
    for one in report.checked:
        yield from (_finding(one, each) for each in one.found)
        yield json.dumps(
            {
                "event": "session",
                "recording": one.path,
                "session": one.session,
                "exchanges": one.exchanges,
                "frames": one.frames,
                "complete": not one.missing,
                "missing": one.missing,
                "quiet": one.quiet,
            }
        )
    yield json.dumps(
        {
            "event": "summary",
            "rules": [rule.id for rule in report.ran],
            **{each.name.lower(): report.count(each) for each in reversed(Severity)},
            "suppressed": report.suppressed,
            "unused_suppressions": [{"rule": each.rule, "reason": each.reason} for each in report.unused],
            "expired_suppressions": [{"rule": each.rule, "reason": each.reason} for each in report.expired],
        }
    )


def _finding(one: CheckedSession, found: CheckFinding) -> str:
    told = finding_facts(found.finding)
    more = {"operation": found.operation, "suppressed": found.suppressed or None}
    return json.dumps({"event": "finding", "recording": one.path, "session": one.session, **told, **more})
