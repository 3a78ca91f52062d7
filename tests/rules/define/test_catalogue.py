"""Every rule has its required parts, and its examples demonstrate it."""

from __future__ import annotations

import re
import unicodedata

import pytest

from a2a_proxy.model.values import Actor
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.define.conditions import HookPoint
from a2a_proxy.rules.define.rule import Rule
from support_rules import endings, findings, told

_FAILED_CALLS = {
    "A2A-AUTH-003": {"no-credentials"},
    "A2A-VER-004": {"version-refused"},
}
"""Clean examples in which a call fails nevertheless, because the rule is about the failure."""
RULES = pytest.mark.parametrize("rule", all_rules().values(), ids=list(all_rules()))


@RULES
def test_rules_are_documented(rule: Rule) -> None:
    """Id, title, what, why, section; nothing of it empty or cut off."""
    assert re.fullmatch(r"A2A-[A-Z]+-\d{3}", rule.id)
    assert rule.title
    assert not rule.title.endswith(".")
    assert rule.description.endswith(".")
    assert rule.rationale.endswith("."), "a docstring has two paragraphs: what, and why"
    assert all((rule.section, rule.bindings, rule.dialects.value, rule.hook_points))
    assert rule.module.startswith(f"a2a_proxy.rules.families.{rule.family.lower()}."), (
        "a family has a folder"
    )


@RULES
def test_flagged_examples_are_flagged(rule: Rule) -> None:
    """By this rule, and by the others that it declares."""
    found = {each.rule for each in findings(rule.flagged)}
    if rule.hook_points == {HookPoint.ENDING}:
        ended = endings(rule.flagged)
        assert rule.id in {each.rule for each in ended.values()}, ended
        assert found == {*rule.also_broken}, told(rule.flagged)
        return
    assert found == {rule.id, *rule.also_broken}, told(rule.flagged)


@RULES
def test_clean_examples_are_clean(rule: Rule) -> None:
    """No rule at all has anything to say."""
    assert not told(rule.clean)
    failed = {each.cause: each.summary for each in endings(rule.clean).values() if each.severity}
    assert set(failed) <= _FAILED_CALLS.get(rule.id, set()), failed
    assert rule.clean.format_lines()
    assert rule.flagged.format_lines()


@RULES
def test_examples_are_readable(rule: Rule) -> None:
    """What makes the difference is shown, and nothing in it is a control character or an object of
    our own."""
    flagged, clean = rule.flagged.format_lines(), rule.clean.format_lines()
    assert flagged != clean
    for line in flagged + clean:
        assert not any(unicodedata.category(each) == "Cc" for each in line), repr(line)
        assert not re.search(r"\b(Raw|Joined|Filled)\(|\bb'", line), line


@RULES
def test_findings_name_who_must_act(rule: Rule) -> None:
    """Derived from the rule or the sender of the frame; a rule that judges no frame declares it or
    names the sender."""
    found = [each for each in findings(rule.flagged) if each.rule == rule.id]
    ended = [each for each in endings(rule.flagged).values() if each.rule == rule.id]
    assert all(each.actor is not None for each in ended)
    assert {each.evidence["actor"] for each in found} <= {each.value for each in Actor}


@pytest.mark.parametrize(
    ("ident", "actor"),
    [
        ("GEN-001", "agent"),
        ("GEN-018", "client"),
        ("SCH-001", "client"),
        ("STATE-005", "client"),
        ("VER-001", "client"),
        ("HTTP-016", "agent"),
        ("GRPC-002", "something between"),
        ("CARD-009", "client or agent"),
    ],
)
def test_who_must_act(ident: str, actor: str) -> None:
    rule = all_rules()[f"A2A-{ident}"]
    assert {each.evidence["actor"] for each in findings(rule.flagged) if each.rule == rule.id} == {
        actor
    }
