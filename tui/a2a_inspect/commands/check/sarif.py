"""The report as SARIF 2.1.0, the format of code-scanning services."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from a2a_inspect.commands.check.report import OWN, Checked, Found, Report, facts
from a2a_proxy import __version__
from a2a_proxy.cli.console import finding_object
from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.engine import BROKEN
from a2a_proxy.rules.rule import Rule

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_BESIDE = {**OWN, BROKEN: "A rule cannot judge something"}
"""What is found without a rule."""


def lines(report: Report) -> Iterator[str]:
    """The document."""
    rules = [_rule(each) for each in report.ran]
    rules += [{"id": ident, "shortDescription": {"text": text}} for ident, text in _BESIDE.items()]
    positions = {rule["id"]: index for index, rule in enumerate(rules)}
    driver = {"name": "a2a-inspect", "version": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": _notifications(report)}],
        "results": [_result(one, each, positions) for one in report.checked for each in one.found],
    }
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    yield json.dumps(document, indent=2)


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": rule.title,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": f"{rule.what} {rule.why}"},
        "help": {"text": f"{rule.what}\n\n{rule.why}\n\nSpecification: {rule.section}"},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"section": rule.section, "scope": rule.scope.value, "draft": rule.draft},
    }


def _result(one: Checked, found: Found, positions: dict[str, int]) -> dict[str, Any]:
    finding = found.finding
    place = f"session {one.session}, exchange {finding.exchange}" + (f".{finding.seq}" if finding.seq >= 0 else "")
    location = {
        "physicalLocation": {"artifactLocation": {"uri": quote(Path(one.path).as_posix())}},
        "logicalLocations": [{"fullyQualifiedName": place, "kind": "member"}],
    }
    made: dict[str, Any] = {
        "ruleId": finding.rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": "; ".join([finding.summary, *facts(finding)])},
        "locations": [location],
        "partialFingerprints": {"ruleOperationPath/v1": fingerprint(found)},
        "properties": {
            "exchange": finding.exchange,
            "seq": finding.seq,
            "operation": found.operation,
            "taskId": finding.task_id,
            "confidence": finding.confidence,
            **finding_object(finding)["evidence"],
        },
    }
    if finding.rule in positions:
        made["ruleIndex"] = positions[finding.rule]
    if found.suppressed:
        made["suppressions"] = [{"kind": "external", "justification": found.suppressed}]
    return made


def fingerprint(found: Found) -> str:
    """The same for the same fault of another run: rule, operation and path in the payload."""
    finding = found.finding
    words = (finding.rule, found.operation, finding.evidence.get("path", ""))
    return hashlib.sha256("\0".join(words).encode("utf-8", "replace")).hexdigest()[:32]


def _notifications(report: Report) -> list[dict[str, Any]]:
    return [
        {"level": "warning", "message": {"text": f"{one.path}: the capture is incomplete: {one.missing}"}}
        for one in report.checked
        if one.missing
    ]
