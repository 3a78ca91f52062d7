"""A rule in words: for a terminal, for the manual, for a program. All of it comes from the rule itself."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from a2a_proxy.model.exchange import Binding, Dialect
from a2a_proxy.rules.define.catalogue import all_rules, family_subjects, omitted_rules
from a2a_proxy.rules.define.rule import Rule
from a2a_proxy.rules.examples.script import Script

_TEXT_WIDTH = 100
_BINDING_LABELS = {
    Binding.JSONRPC: "JSON-RPC",
    Binding.REST: "REST",
    Binding.GRPC: "gRPC",
    Binding.STDIO: "stdio",
    Binding.WEBHOOK: "webhook",
    Binding.CARD: "agent card",
}


def binding_names(rule: Rule) -> list[str]:
    """How people call the bindings that it judges."""
    return [name for binding, name in _BINDING_LABELS.items() if binding in rule.bindings]


def version_names(rule: Rule) -> list[str]:
    """The protocol lines that it judges; `all` where it does not ask."""
    if set(Dialect) <= rule.dialects.value:
        return ["all"]
    return [each.value for each in Dialect if each in rule.dialects.value and each is not Dialect.UNKNOWN]


def rule_text(rule: Rule) -> Iterator[str]:
    """The page for a terminal."""
    draft = ", draft" if rule.draft else ""
    yield f"{rule.id}  {rule.title}"
    yield (
        f"{rule.severity.name.lower()}{draft}; {', '.join(binding_names(rule))}; versions "
        f"{', '.join(version_names(rule))}"
    )
    yield f"specification: {rule.section}; evidence: {rule.scope.value}"
    for paragraph in (rule.description, rule.rationale):
        yield ""
        yield from textwrap.wrap(paragraph, _TEXT_WIDTH)
    for word, script in (("flagged", rule.flagged), ("clean", rule.clean)):
        yield ""
        yield f"{word}:"
        yield from (f"  {line}" for line in script.lines())
    if rule.also_broken:
        yield ""
        yield f"the flagged example also breaks {', '.join(rule.also_broken)}"


def rule_facts(rule: Rule) -> dict[str, Any]:
    """The same as plain JSON with stable names."""
    return {
        "id": rule.id,
        "family": rule.family,
        "title": rule.title,
        "severity": rule.severity.name.lower(),
        "draft": rule.draft,
        "section": rule.section,
        "versions": version_names(rule),
        "bindings": binding_names(rule),
        "scope": rule.scope.value,
        "moments": sorted(rule.hook_points),
        "operations": sorted(rule.operations),
        "what": rule.description,
        "why": rule.rationale,
        "flagged": rule.flagged.lines(),
        "clean": rule.clean.lines(),
        "also": list(rule.also_broken),
    }


def rules_markdown(selected_rules: Sequence[Rule]) -> Iterator[str]:
    """The manual's page of these rules; with all of them also those that are left out."""
    families = {family: [rule for rule in selected_rules if rule.family == family] for family in family_subjects()}
    families = {family: found for family, found in families.items() if found}
    yield "# Rules"
    yield ""
    yield "What `a2a-proxy` and `a2a-inspect check` say about traffic, and why. Made by `a2a-inspect rules --markdown`."
    yield ""
    rule_count = f"{len(selected_rules)} rule{'s' * (len(selected_rules) != 1)}"
    family_count = f"{len(families)} famil{'y' if len(families) == 1 else 'ies'}"
    yield f"{rule_count} in {family_count}. Severity: an error breaks a MUST or the framing, a"
    yield "warning a SHOULD (or a MUST, the breach of which traffic alone cannot prove), an info is worth a look."
    yield "Confidence is low where the beginning of a task was not seen. Draft rules judge features of no released"
    yield "version, and only where the wire shows them."
    yield ""
    for family, found in families.items():
        yield f"## {family}: {family_subjects()[family]}"
        yield ""
        for rule in found:
            yield from _rule_section(rule)
    if len(selected_rules) == len(all_rules()):
        yield from _omitted_section()


def _rule_section(rule: Rule) -> Iterator[str]:
    draft = ", draft" if rule.draft else ""
    yield f"### {rule.id}: {rule.title}"
    yield ""
    yield (
        f"*{rule.severity.name.lower()}{draft}; {', '.join(binding_names(rule))}; versions "
        f"{', '.join(version_names(rule))};"
        f" {rule.scope.value}; {rule.section}*"
    )
    yield ""
    yield f"{rule.description} {rule.rationale}"
    yield ""
    yield from _example_lines("Flagged", rule.flagged)
    yield from _example_lines("Clean", rule.clean)


def _example_lines(word: str, script: Script) -> Iterator[str]:
    yield f"{word}:"
    yield ""
    yield from (f"    {line}" for line in script.lines())
    yield ""


def _omitted_section() -> Iterator[str]:
    yield "## Left out"
    yield ""
    yield "Rules of the catalogue that are not judged, each with its reason."
    yield ""
    yield "| rule | why |"
    yield "|---|---|"
    for ident, why in omitted_rules().items():
        yield f"| {ident} | {why} |"
