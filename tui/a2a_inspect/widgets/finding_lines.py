"""The Findings tab: findings about a frame and its exchange, each with its rule's text."""

from collections.abc import Iterator, Mapping, Sequence

from a2a_proxy.model.values import Finding
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow

_INDENT = "  "
_GAP_PREFIX = f"{_INDENT}≠ "


def ending_lines(recording: Recording, row: ExchangeRow) -> list[str]:
    """Return why a call did not end well, whatever its frame; nothing if it ended well."""
    from a2a_inspect.data.ending_words import ending_facts, ending_level
    from a2a_proxy.recording.read.endings import EndingReader

    ending = EndingReader(recording).read(row)
    if ending is None:
        return []
    level = ending_level(ending).replace(" ", "-")
    return [
        "WHY IT DID NOT END WELL",
        "",
        f"{level} {ending.cause} {make_visible(ending.summary)}",
        *(f"{_INDENT}{name}: {value}" for name, value in ending_facts(ending).items()),
        "",
    ]


def finding_lines(
    findings: Sequence[Finding],
    seq: int | None,
    total: int = 0,
    gaps: Mapping[tuple[str, int], str] | None = None,
) -> list[str]:
    """Return the findings about the frame with number `seq`, then those about the rest of the
    exchange, of `total`.

    `gaps` has the healing of generations that the exchange missed
    (`a2a_inspect.data.generation_gaps`).
    """
    if not findings:
        return ["(no findings about this exchange)"]
    own = [each for each in findings if seq is not None and each.seq == seq]
    rest = [each for each in findings if each not in own]
    explained: set[str] = set()
    lines: list[str] = []
    for title, some in (
        ("ABOUT THIS FRAME", own),
        ("ABOUT THE EXCHANGE" if own else "FINDINGS", rest),
    ):
        if some:
            lines.append(title)
            for each in some:
                lines += ["", *_lines_of_finding(each, explained, gaps or {})]
            lines.append("")
    if total > len(findings):
        lines.append(f"(and {total - len(findings)} more: a2a-inspect show lists all)")
    return lines


def _lines_of_finding(
    finding: Finding, explained_rules: set[str], gaps: Mapping[tuple[str, int], str]
) -> Iterator[str]:
    from a2a_inspect.data.finding_words import evidence_words, finding_section
    from a2a_proxy.recording.query.columns import GAP
    from a2a_proxy.rules.define.catalogue import all_rules

    frame = make_visible(finding.evidence.get("frame", ""))
    place = f"frame {finding.seq}{f' ({frame})' if frame else ''}: " if finding.seq >= 0 else ""
    yield f"{finding.severity.name.lower()} {finding.rule} {place}{make_visible(finding.summary)}"
    # Other rules may judge the same event, and so at the same time.
    if finding.rule == GAP and (gap := gaps.get((finding.task_id, finding.at))):
        yield _GAP_PREFIX + gap
    if words := evidence_words(finding):
        yield _INDENT + make_visible("; ".join(words))
    if finding.confidence != "high":
        yield f"{_INDENT}confidence: {make_visible(finding.confidence)}"
    rule = all_rules().get(finding.rule)
    if rule is not None and rule.id not in explained_rules:
        explained_rules.add(rule.id)
        yield f"{_INDENT}{rule.title} ({finding_section(finding)})"
        yield _INDENT + " ".join(rule.description.split())
        yield _INDENT + " ".join(rule.rationale.split())
        yield f"{_INDENT}examples: a2a-inspect rules {rule.id}"


def paint_findings(line: str) -> list[tuple[int, str]]:
    """Paint titles, and the severity and rule of each finding; the rest is dimmed."""
    if line.isupper():
        return [(0, "text--title")]
    if line.startswith(_GAP_PREFIX):
        return [(0, "text--title")]
    if line.startswith(_INDENT):
        return [(0, "text--dim")]
    rule = line.find(" ") + 1
    end = line.find(" ", rule)
    return [(0, "text--word"), (rule, "text--name"), (end, "")] if end > 0 else [(0, "")]
