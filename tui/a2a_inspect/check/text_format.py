"""The report as text."""

from collections.abc import Iterator

from a2a_inspect.check.report import (
    CheckedSession,
    CheckFinding,
    CheckReport,
    evidence_facts,
)
from a2a_proxy.model.values import Finding, Severity
from a2a_proxy.present import text
from a2a_proxy.protocol.finding_totals import count_occurrences, is_total, rule_totals
from a2a_proxy.protocol.text import make_visible, shell_line
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.define.other_findings import finding_title

_INDENT = " " * 10
_MAX_PLACES = 6
"""Places of a rule that are listed besides the first one."""
_UNDECODABLE = "UNDECODABLE"
_MAX_NOTES = 20
"""Suppressions without effect that are listed individually."""

_Group = list[CheckFinding]
"""Findings that are printed together, the first one in full."""


def format_lines(report: CheckReport) -> Iterator[str]:
    """Yield the sessions with their findings, the number of rules that ran, and the counts.

    The ids of the rules follow only if some rules did not run, or if all findings are listed.
    """
    has_more = False
    for one in report.sessions:
        findings = [each for each in one.findings if not each.suppressed]
        groups = [[each] for each in findings] if report.lists_all else _group_by_rule(findings)
        has_more = has_more or any(len(group) > 1 for group in groups)
        yield from _session_lines(one)
        # The groups, each followed by those that follow from it, indented.
        parents = _find_causes(groups)
        followers: dict[int, list[int]] = {}
        for index, parent in parents.items():
            followers.setdefault(parent, []).append(index)
        for index in range(len(groups)):
            if index not in parents:
                yield from _group_tree(groups, followers, index, 0)
    yield from _idle_suppression_lines(report)
    names_rules = report.lists_all or len(report.executed_rules) < len(all_rules())
    which = f": {_rule_ranges(report)}" if names_rules else ""
    yield f"{text.format_count(len(report.executed_rules), 'rule')} ran{which}"
    counts = ", ".join(
        text.format_count(report.count_findings(each), each.name.lower())
        for each in reversed(Severity)
    )
    yield f"found: {counts}" + (
        f"; {report.suppressed_findings} suppressed" if report.suppressed_findings else ""
    )
    if has_more:
        paths = dict.fromkeys(one.path for one in report.sessions)
        yield f"list each finding: {shell_line('a2a-inspect', 'check', '--all', *paths)}"
    if report.most_severe_rule:
        yield f"explain a rule: a2a-inspect rules {report.most_severe_rule}"


def _idle_suppression_lines(report: CheckReport) -> Iterator[str]:
    """Yield notes about the suppressions without effect, each with the reason; a bounded number of
    lines."""
    idle = [(each, f"expired on {each.until}") for each in report.expired_suppressions]
    idle += [(each, "matches no finding") for each in report.unused_suppressions]
    for each, why in idle[:_MAX_NOTES]:
        yield (
            f"note: the suppression of {make_visible(each.rule)} "
            f"({make_visible(each.reason)}) {why}"
        )
    if len(idle) > _MAX_NOTES:
        yield (
            f"note: {text.format_count(len(idle) - _MAX_NOTES, 'more suppression')} "
            "expired or without a matching finding"
        )


def _session_lines(session: CheckedSession) -> Iterator[str]:
    name = make_visible(session.path) + (
        f" session {session.session}" if session.session > 1 else ""
    )
    counts = (
        f"{text.format_count(session.exchanges, 'exchange')}, "
        f"{text.format_count(session.frames, 'frame')}"
    )
    yield f"{name}: {make_visible(session.contents) or counts}"
    yield from (f"  {make_visible(each)}" for each in session.notes)
    if session.incomplete_reason:
        yield f"  the capture is incomplete: {make_visible(session.incomplete_reason)}"
    if session.skipped_rules:
        yield (
            f"  {text.format_count(len(session.skipped_rules), 'rule')} not run: "
            "payloads were not recorded (metadata only)"
        )


def _group_by_rule(findings: list[CheckFinding]) -> list[_Group]:
    """Return the findings of each rule and severity: the most severe first, of these the most
    frequent."""
    groups: dict[tuple[str, Severity], _Group] = {}
    for each in findings:
        groups.setdefault((each.finding.rule, each.finding.severity), []).append(each)
    return [
        groups[total.rule, total.severity]
        for total in rule_totals(each.finding for each in findings)
    ]


def _find_causes(groups: list[_Group]) -> dict[int, int]:
    """Return the position of the group that each group follows from, by the group's position."""
    positions: dict[tuple[str, int], int] = {}
    undecodable: dict[tuple[int, int], int] = {}
    for index, group in enumerate(groups):
        for finding in (each.finding for each in group):
            rule = all_rules().get(finding.rule)
            positions.setdefault((finding.rule, finding.exchange), index)
            if rule is not None and _UNDECODABLE in rule.also_broken:
                undecodable.setdefault((finding.exchange, finding.seq), index)
    parents: dict[int, int] = {}
    for index, group in enumerate(groups):
        finding = group[0].finding
        rule_id, _, exchange = finding.evidence.get("follows", "").partition(" #")
        parent = positions.get((rule_id, int(exchange))) if exchange.isdecimal() else None
        if finding.rule == _UNDECODABLE and finding.exchange:
            parent = undecodable.get((finding.exchange, finding.seq))
        if parent is not None and index not in _list_ancestors(parent, parents):
            parents[index] = parent
    return parents


def _list_ancestors(index: int, parents: dict[int, int]) -> list[int]:
    """Return the position and those that it follows from."""
    found = [index]
    while found[-1] in parents:
        found.append(parents[found[-1]])
    return found


def _group_tree(
    groups: list[_Group], followers: dict[int, list[int]], index: int, depth: int
) -> Iterator[str]:
    """Yield a group and, indented, those that follow from it."""
    yield from ("    " * depth + line for line in _rule_lines(groups[index]))
    for each in followers.get(index, ()):
        yield from _group_tree(groups, followers, each, depth + 1)


def _rule_lines(group: _Group) -> Iterator[str]:
    """Yield the first finding of a group in full, and the number and places of the others."""
    finding = group[0].finding
    sure = (
        "" if finding.confidence == "high" else f" ({make_visible(finding.confidence)} confidence)"
    )
    name = f"{finding.rule} {finding_title(finding.rule)}".rstrip()
    place = " ".join(filter(None, (text.finding_place(finding), group[0].operation)))
    listed = [each.finding for each in group if not is_total(each.finding)]
    actors = {each.evidence.get("actor", "") for each in listed}
    actor = f"must act: {actors.pop()}" if len(actors) == 1 and "" not in actors else ""
    count = sum(count_occurrences(each.finding) for each in group) if len(group) > 1 else 0
    head = "  ".join(
        filter(None, (name, text.format_count(count, "time") if count else place, actor))
    )
    yield f"  {finding.severity.name.lower():8}{make_visible(head)}"
    where = make_visible(f"{place}: ") if count and place else ""
    yield f"{_INDENT}{where}{make_visible(finding.summary)}{sure}"
    if facts := evidence_facts(finding, ("actor",) if actor else ()):
        yield f"{_INDENT}{make_visible('; '.join(facts))}"
    if group[0].missed:
        yield f"{_INDENT}{make_visible(group[0].missed)}"
    if count:
        yield f"{_INDENT}also {_other_places(listed[1:], count - 1)}"


def _other_places(findings: list[Finding], count: int) -> str:
    """Return the first places of `count` findings: `#2.0, #3.0 and 305 more`."""
    places = [
        text.finding_location(each) or text.finding_place(each) for each in findings[:_MAX_PLACES]
    ]
    places = list(filter(None, places))
    rest = count - len(places)
    return " and ".join(filter(None, (", ".join(places), f"{rest} more" if rest else "")))


def _rule_ranges(report: CheckReport) -> str:
    """Return the rules as ranges: `ART 001-008, CARD 001-012 014-019`."""
    families: dict[str, list[int]] = {}
    for rule in report.executed_rules:
        families.setdefault(rule.family, []).append(int(rule.id.rpartition("-")[2]))
    return ", ".join(
        f"{family} {' '.join(_number_ranges(numbers))}" for family, numbers in families.items()
    )


def _number_ranges(numbers: list[int]) -> Iterator[str]:
    begin = before = numbers[0]
    for number in [*numbers[1:], -1]:
        if number != before + 1:
            yield f"{begin:03}" if begin == before else f"{begin:03}-{before:03}"
            begin = number
        before = number
