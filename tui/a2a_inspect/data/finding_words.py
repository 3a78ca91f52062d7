"""Findings in words and as JSON objects, with what their rules say."""

import textwrap
from collections.abc import Collection

from a2a_proxy.model.values import Finding
from a2a_proxy.present.text import finding_object
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.rules.define.catalogue import all_rules


def finding_words(finding: Finding, width: int = 0, gap: int = 2) -> str:
    """Return `warning  UNDECODABLE not HTTP/2`, with the severity right-aligned in `width`
    cells."""
    return (
        f"{finding.severity.name.lower():>{width}}{' ' * gap}{make_visible(finding.rule)} "
        f"{make_visible(finding.summary)}"
    )


def finding_facts(finding: Finding) -> dict[str, object]:
    """Return a finding as JSON with stable names, with its rule's title if a rule reported it."""
    rule = all_rules().get(finding.rule)
    about = {"section": finding_section(finding), "title": rule.title} if rule is not None else {}
    return {**finding_object(finding), **about}


def finding_section(finding: Finding) -> str:
    """Return the section that the finding cites, which is of the version of its traffic; empty
    without a rule."""
    rule = all_rules().get(finding.rule)
    return finding.evidence.get("section", rule.section) if rule is not None else ""


_EVIDENCE_FORMS = {
    "actor": "must act: {}",
    "path": "at {}",
    "value": "found: {}",
    "expected": "expected: {}",
    "count": "number {} of its kind",
    "follows": "follows from {}",
}


def evidence_words(finding: Finding, omitted: Collection[str] = ()) -> list[str]:
    """Return the known evidence in words: who must act, the path in the payload, the value there,
    and so on, except the `omitted` names.
    """
    evidence = finding.evidence
    if "value" in evidence and "expected" in evidence:
        evidence = {**evidence, "value": f"{evidence['value']}, expected: {evidence['expected']}"}
        omitted = {*omitted, "expected"}
    forms = ((name, form) for name, form in _EVIDENCE_FORMS.items() if name not in omitted)
    return [form.format(evidence[name]) for name, form in forms if name in evidence]


class RuleMeanings:
    """The meanings of rules in one output: each is printed only below the first finding of its
    rule."""

    def __init__(self) -> None:
        self._explained_rules: set[str] = set()

    def explain_finding(self, finding: Finding) -> str:
        """Return the rule's description and section; empty if it was returned before or the finding
        has no rule."""
        rule = all_rules().get(finding.rule)
        if rule is None or rule.id in self._explained_rules:
            return ""
        self._explained_rules.add(rule.id)
        return f"{rule.description} ({finding_section(finding)})"

    def evidence_lines(self, finding: Finding) -> list[str]:
        """Return the evidence of a finding, then the meaning of its rule, wrapped."""
        evidence = make_visible("; ".join(evidence_words(finding)))
        return [
            *([evidence] if evidence else []),
            *textwrap.wrap(self.explain_finding(finding), 100),
        ]
