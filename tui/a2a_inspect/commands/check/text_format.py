"""The report for people."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_inspect.commands.check.report import Checked, Found, Report
from a2a_inspect.commands.session import evidence_words
from a2a_proxy.cli import text
from a2a_proxy.model.finding import Severity
from a2a_proxy.protocol.text import visible
from a2a_proxy.rules.catalogue import rules


def lines(report: Report) -> Iterator[str]:
    """Sessions with their findings, the rules that ran, the counts."""
    for one in report.checked:
        yield from _session(one)
    for each in report.unused:
        yield f"note: the suppression of {each.rule} ({each.reason}) is not in force or covers nothing"
    yield f"{text.plural(len(report.ran), 'rule')} ran: {_ranges(report)}"
    told = ", ".join(text.plural(report.count(each), each.name.lower()) for each in reversed(Severity))
    yield f"found: {told}" + (f"; {report.suppressed} suppressed" if report.suppressed else "")
    first = next((each.finding.rule for _, each in report.all() if each.finding.rule in rules()), "")
    if first:
        yield f"what a rule means: a2a-inspect rules {first}"


def _session(one: Checked) -> Iterator[str]:
    name = visible(one.path) + (f" session {one.session}" if one.session > 1 else "")
    yield f"{name}: {text.plural(one.exchanges, 'exchange')}, {text.plural(one.frames, 'frame')}"
    if one.missing:
        yield f"  the capture is incomplete: {visible(one.missing)}"
    for each in one.found:
        if not each.suppressed:
            yield from _finding(each)


def _finding(found: Found) -> Iterator[str]:
    finding = found.finding
    place = f"#{finding.exchange}" + (f".{finding.seq}" if finding.seq >= 0 else "") if finding.exchange else ""
    sure = "" if finding.confidence == "high" else f" ({finding.confidence} confidence)"
    yield f"  {finding.severity.name.lower():8}{finding.rule:16}{place:9}{visible(finding.summary)}{sure}"
    rule = rules().get(finding.rule)
    facts = [rule.section] if rule is not None else []
    facts += evidence_words(finding)
    if "count" in finding.evidence:
        facts.append(f"number {finding.evidence['count']} of its kind")
    if facts:
        yield f"  {'':33}{visible('; '.join(facts))}"


def _ranges(report: Report) -> str:
    """`ART 001-008, CARD 001-012 014-019`."""
    families: dict[str, list[int]] = {}
    for rule in report.ran:
        families.setdefault(rule.family, []).append(int(rule.id.rpartition("-")[2]))
    return ", ".join(f"{family} {' '.join(_spans(numbers))}" for family, numbers in families.items())


def _spans(numbers: list[int]) -> Iterator[str]:
    begin = before = numbers[0]
    for number in [*numbers[1:], -1]:
        if number != before + 1:
            yield f"{begin:03}" if begin == before else f"{begin:03}-{before:03}"
            begin = number
        before = number
