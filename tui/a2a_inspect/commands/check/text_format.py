"""The report for people."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_inspect.commands.check.report import CheckedSession, CheckFinding, CheckReport, facts
from a2a_proxy.model.finding import Severity
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible

_NOTES = 20
"""Suppressions without effect that are told one by one."""


def lines(report: CheckReport) -> Iterator[str]:
    """Sessions with their findings, the rules that ran, the counts."""
    for one in report.checked:
        yield from _session(one)
    yield from _idle(report)
    yield f"{text.plural(len(report.ran), 'rule')} ran: {_ranges(report)}"
    told = ", ".join(text.plural(report.count(each), each.name.lower()) for each in reversed(Severity))
    yield f"found: {told}" + (f"; {report.suppressed} suppressed" if report.suppressed else "")
    if report.gravest:
        yield f"what a rule means: a2a-inspect rules {report.gravest}"


def _idle(report: CheckReport) -> Iterator[str]:
    """The suppressions that did nothing, each with the reason; not more than one reads."""
    idle = [(each, f"is out of date, it ended on {each.until}") for each in report.expired]
    idle += [(each, "covers nothing") for each in report.unused]
    for each, why in idle[:_NOTES]:
        yield f"note: the suppression of {make_visible(each.rule)} ({make_visible(each.reason)}) {why}"
    if len(idle) > _NOTES:
        yield f"note: {text.plural(len(idle) - _NOTES, 'more suppression')} out of date or without anything to cover"


def _session(one: CheckedSession) -> Iterator[str]:
    name = make_visible(one.path) + (f" session {one.session}" if one.session > 1 else "")
    yield f"{name}: {text.plural(one.exchanges, 'exchange')}, {text.plural(one.frames, 'frame')}"
    if one.missing:
        yield f"  the capture is incomplete: {make_visible(one.missing)}"
    if one.quiet:
        yield f"  without payloads (metadata only): {text.plural(len(one.quiet), 'rule')} that need them said nothing"
    for each in one.found:
        if not each.suppressed:
            yield from _finding(each)


def _finding(found: CheckFinding) -> Iterator[str]:
    finding = found.finding
    sure = "" if finding.confidence == "high" else f" ({make_visible(finding.confidence)} confidence)"
    rule = make_visible(finding.rule)
    yield f"  {finding.severity.name.lower():8}{rule:16}{text.place(finding):9}{make_visible(finding.summary)}{sure}"
    if told := facts(finding):
        yield f"  {'':33}{make_visible('; '.join(told))}"


def _ranges(report: CheckReport) -> str:
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
