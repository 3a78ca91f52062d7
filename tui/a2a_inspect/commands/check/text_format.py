"""The report as text."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_inspect.commands.check.report import CheckedSession, CheckFinding, CheckReport, evidence_facts
from a2a_proxy.model.finding import Severity
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.define.other_findings import finding_title

_INDENT = " " * 10
_UNDECODABLE = "UNDECODABLE"
_MAX_NOTES = 20
"""Suppressions without effect that are listed individually."""


def lines(report: CheckReport) -> Iterator[str]:
    """Yield the sessions with their findings, the rules that ran, and the counts."""
    for one in report.sessions:
        yield from _session_lines(one)
    yield from _idle_suppression_lines(report)
    yield f"{text.format_count(len(report.executed_rules), 'rule')} ran: {_rule_ranges(report)}"
    told = ", ".join(text.format_count(report.count_findings(each), each.name.lower()) for each in reversed(Severity))
    yield f"found: {told}" + (f"; {report.suppressed_findings} suppressed" if report.suppressed_findings else "")
    if report.most_severe_rule:
        yield f"explain a rule: a2a-inspect rules {report.most_severe_rule}"


def _idle_suppression_lines(report: CheckReport) -> Iterator[str]:
    """Yield notes about the suppressions without effect, each with the reason; a bounded number of lines."""
    idle = [(each, f"expired on {each.until}") for each in report.expired_suppressions]
    idle += [(each, "matches no finding") for each in report.unused_suppressions]
    for each, why in idle[:_MAX_NOTES]:
        yield f"note: the suppression of {make_visible(each.rule)} ({make_visible(each.reason)}) {why}"
    if len(idle) > _MAX_NOTES:
        yield (
            f"note: {text.format_count(len(idle) - _MAX_NOTES, 'more suppression')} expired or without "
            "a matching finding"
        )


def _session_lines(session: CheckedSession) -> Iterator[str]:
    name = make_visible(session.path) + (f" session {session.session}" if session.session > 1 else "")
    counts = f"{text.format_count(session.exchanges, 'exchange')}, {text.format_count(session.frames, 'frame')}"
    yield f"{name}: {make_visible(session.contents) or counts}"
    yield from (f"  {make_visible(each)}" for each in session.notes)
    if session.incomplete_reason:
        yield f"  the capture is incomplete: {make_visible(session.incomplete_reason)}"
    if session.skipped_rules:
        yield (
            f"  {text.format_count(len(session.skipped_rules), 'rule')} not run: payloads were not recorded "
            "(metadata only)"
        )
    findings = [each for each in session.findings if not each.suppressed]
    children = _consequences(findings)
    followers = {index for some in children.values() for index in some}
    for index in range(len(findings)):
        if index not in followers:
            yield from _finding_tree(findings, children, index, 0)


def _consequences(findings: list[CheckFinding]) -> dict[int, list[int]]:
    """Return the findings that follow from another one, by the position of that one."""
    positions: dict[tuple[str, int], int] = {}
    undecodable: dict[tuple[int, int], int] = {}
    for index, each in enumerate(findings):
        finding, rule = each.finding, all_rules().get(each.finding.rule)
        positions.setdefault((finding.rule, finding.exchange), index)
        if rule is not None and _UNDECODABLE in rule.also_broken:
            undecodable.setdefault((finding.exchange, finding.seq), index)
    found: dict[int, list[int]] = {}
    for index, each in enumerate(findings):
        finding = each.finding
        rule_id, _, exchange = finding.evidence.get("follows", "").partition(" #")
        parent = positions.get((rule_id, int(exchange))) if exchange.isdecimal() else None
        if finding.rule == _UNDECODABLE and finding.exchange:
            parent = undecodable.get((finding.exchange, finding.seq))
        if parent is not None:
            found.setdefault(parent, []).append(index)
    return found


def _finding_tree(
    findings: list[CheckFinding], children: dict[int, list[int]], index: int, depth: int
) -> Iterator[str]:
    """Yield a finding and, indented, those that follow from it."""
    yield from ("    " * depth + line for line in _finding_lines(findings[index]))
    for each in children.get(index, ()):
        yield from _finding_tree(findings, children, each, depth + 1)


def _finding_lines(check_finding: CheckFinding) -> Iterator[str]:
    finding = check_finding.finding
    sure = "" if finding.confidence == "high" else f" ({make_visible(finding.confidence)} confidence)"
    name = f"{finding.rule} {finding_title(finding.rule)}".rstrip()
    place = " ".join(filter(None, (text.finding_place(finding), check_finding.operation)))
    actor = finding.evidence.get("actor", "")
    head = "  ".join(filter(None, (name, place, f"must act: {actor}" if actor else "")))
    yield f"  {finding.severity.name.lower():8}{make_visible(head)}"
    yield f"{_INDENT}{make_visible(finding.summary)}{sure}"
    if told := evidence_facts(finding, ("actor",)):
        yield f"{_INDENT}{make_visible('; '.join(told))}"
    if check_finding.missed:
        yield f"{_INDENT}{make_visible(check_finding.missed)}"


def _rule_ranges(report: CheckReport) -> str:
    """Return the rules as ranges: `ART 001-008, CARD 001-012 014-019`."""
    families: dict[str, list[int]] = {}
    for rule in report.executed_rules:
        families.setdefault(rule.family, []).append(int(rule.id.rpartition("-")[2]))
    return ", ".join(f"{family} {' '.join(_number_ranges(numbers))}" for family, numbers in families.items())


def _number_ranges(numbers: list[int]) -> Iterator[str]:
    begin = before = numbers[0]
    for number in [*numbers[1:], -1]:
        if number != before + 1:
            yield f"{begin:03}" if begin == before else f"{begin:03}-{before:03}"
            begin = number
        before = number
