"""The report as SARIF 2.1.0, the format of code-scanning services."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from a2a_inspect.check.report import (
    CheckedSession,
    CheckFinding,
    CheckReport,
    evidence_facts,
)
from a2a_proxy import __version__
from a2a_proxy.model.values import Severity
from a2a_proxy.present.text import finding_object
from a2a_proxy.protocol.finding_totals import follows_ending
from a2a_proxy.protocol.text import strict_json
from a2a_proxy.rules.run.engine import BROKEN_RULE_ID

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_PROBLEM_SEVERITIES = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "recommendation",
}
MAX_RESULTS = 25_000
"""Results of a run; code-scanning services reject a document with more."""
_REGION = {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 1}
"""A recording has no meaningful lines, and code-scanning services show only results that have a
region."""


def format_lines(report: CheckReport) -> Iterator[str]:
    """Return the lines of the document."""
    rules: list[dict[str, Any]] = [
        {
            "id": each.id,
            "name": each.title,
            "shortDescription": {"text": each.title},
            "fullDescription": {"text": f"{each.description} {each.rationale}"},
            "help": {
                "text": f"{each.description}\n\n{each.rationale}\n\nSpecification: {each.section}",
                "markdown": (
                    f"{each.description}\n\n**Why it matters:** {each.rationale}\n\n"
                    f"**Specification:** {each.section}\n"
                ),
            },
            "defaultConfiguration": {"level": _LEVELS[each.severity]},
            "properties": {
                "section": each.section,
                "scope": each.scope.value,
                "draft": each.draft,
                "tags": ["a2a", each.family.lower()],  # code scanning filters by these two
                "problem.severity": _PROBLEM_SEVERITIES[each.severity],
            },
        }
        for each in report.executed_rules
    ]
    others = {**report.other_findings, BROKEN_RULE_ID: "A rule cannot judge something"}
    rules += [_builtin_descriptor(ident, text) for ident, text in others.items()]
    positions = {rule["id"]: index for index, rule in enumerate(rules)}
    included, omitted = _most_severe_findings(
        [
            (one, each)
            for one in report.sessions
            for each in one.findings
            if not follows_ending(each.finding)
        ]
    )
    driver = {"name": "a2a-inspect", "version": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": _make_notifications(report, omitted),
            }
        ],
        "results": [_result_object(one, each, positions) for one, each in included],
    }
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    yield strict_json(document, indent=2)


def _most_severe_findings(
    findings: list[tuple[CheckedSession, CheckFinding]],
) -> tuple[list[tuple[CheckedSession, CheckFinding]], int]:
    """Return the findings that fit in one document, in their order, and the number of omitted
    findings.

    Suppressed findings are omitted first, then the least severe, then the latest.
    """
    if len(findings) <= MAX_RESULTS:
        return findings, 0
    by_weight = sorted(
        findings, key=lambda each: (bool(each[1].suppressed), -each[1].finding.severity)
    )
    included = {id(each) for each in by_weight[:MAX_RESULTS]}
    return [each for each in findings if id(each) in included], len(findings) - MAX_RESULTS


def _builtin_descriptor(ident: str, description: str) -> dict[str, Any]:
    message = {"text": description}
    return {"id": ident, "shortDescription": message, "fullDescription": message, "help": message}


def _result_object(
    session: CheckedSession, check_finding: CheckFinding, positions: dict[str, int]
) -> dict[str, Any]:
    finding = check_finding.finding
    place = f"session {session.session}" + (
        f", exchange {finding.exchange}" if finding.exchange else ""
    )
    place += f".{finding.seq}" if finding.seq >= 0 else ""
    location = {
        "physicalLocation": {"artifactLocation": {"uri": _uri_of(session.path)}, "region": _REGION},
        "logicalLocations": [{"fullyQualifiedName": place, "kind": "member"}],
    }
    same = make_fingerprint(check_finding)
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": "; ".join([finding.summary, *evidence_facts(finding)])},
        "locations": [location],
        # GitHub compares only the second one; without it every run would open its alerts again.
        "partialFingerprints": {
            "ruleOperationPath/v1": same,
            "primaryLocationLineHash": f"{same}:1",
        },
        "properties": {
            "exchange": finding.exchange,
            "seq": finding.seq,
            "operation": check_finding.operation,
            "taskId": finding.task_id,
            "confidence": finding.confidence,
            **finding_object(finding)["evidence"],
        },
    }
    if finding.rule in positions:
        result["ruleIndex"] = positions[finding.rule]
    if check_finding.suppressed:
        result["suppressions"] = [{"kind": "external", "justification": check_finding.suppressed}]
    return result


def _uri_of(path: str) -> str:
    """Return the URI of a file, or of a card's URL."""
    return (
        quote(path, safe=":/?[]%") if "://" in path else quote(os.fsencode(Path(path).as_posix()))
    )


def make_fingerprint(check_finding: CheckFinding) -> str:
    """Return an id that stays the same in other runs: a hash of the rule, the operation and the
    path in the payload."""
    finding = check_finding.finding
    words = (finding.rule, check_finding.operation, finding.evidence.get("path", ""))
    return hashlib.sha256("\0".join(words).encode("utf-8", "replace")).hexdigest()[:32]


def _make_notifications(report: CheckReport, omitted: int) -> list[dict[str, Any]]:
    messages = [
        f"{one.path}: the capture is incomplete: {one.incomplete_reason}"
        for one in report.sessions
        if one.incomplete_reason
    ]
    if omitted:
        messages.append(
            f"{omitted:,} findings, the least severe ones, are omitted: a run has at most "
            f"{MAX_RESULTS:,} results"
        )
    warnings = [{"level": "warning", "message": {"text": each}} for each in messages]
    return warnings + [
        {"level": "note", "message": {"text": each}}
        for one in report.sessions
        for each in one.notes
    ]
