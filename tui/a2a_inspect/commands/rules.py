"""`a2a-inspect rules`: print the catalogue, or one rule of it."""

import difflib
import json
from collections.abc import Iterator

from a2a_inspect.check.report import expand_rule_id
from a2a_proxy.model.errors import UserError
from a2a_proxy.present import text
from a2a_proxy.present.output import print_line
from a2a_proxy.rules.define import manual_page
from a2a_proxy.rules.define.catalogue import all_rules, family_subjects, omitted_rules
from a2a_proxy.rules.define.other_findings import OTHER_FINDINGS
from a2a_proxy.rules.define.rule import Rule


def show_rules(word: str, *, as_json: bool, as_markdown: bool) -> None:
    """Print one rule, the rules that begin with `word`, or all; or explain findings that no rule
    reports.

    Raises:
        UserError: no rule matches, or both output formats are requested.
    """
    if as_json and as_markdown:
        raise UserError("--json and --markdown cannot be combined", "leave one of them out")
    if word.upper() in OTHER_FINDINGS and not as_markdown:
        other = OTHER_FINDINGS[word.upper()]
        for line in [json.dumps(other.list_facts())] if as_json else other.format_lines():
            print_line(line)
        return
    ident = expand_rule_id(word) if word else ""
    found = [rule for rule in all_rules().values() if rule.id.startswith(ident)]
    if not found:
        raise _unknown_rule_error(word.upper(), ident)
    for line in (
        manual_page.rules_markdown(found)
        if as_markdown
        else _rule_lines(found, ident, as_json=as_json)
    ):
        print_line(line)


def _rule_lines(selected: list[Rule], ident: str, *, as_json: bool) -> Iterator[str]:
    if as_json:
        yield from (json.dumps(manual_page.rule_facts(rule)) for rule in selected)
    elif selected[0].id == ident:
        yield from manual_page.rule_text(selected[0])
    else:
        yield from _rule_list_lines(selected)


def _rule_list_lines(selected: list[Rule]) -> Iterator[str]:
    family = ""
    for rule in selected:
        if rule.family != family:
            if family:
                yield ""
            family = rule.family
            yield f"{family}: {family_subjects().get(family, '')}"
        draft = " (draft)" if rule.draft else ""
        yield f"  {rule.id:16}{rule.severity.name.lower():9}{rule.title}{draft}"
    yield ""
    count = text.format_count(len(selected), "rule")
    yield f"{count}; explain one with its reason and examples: a2a-inspect rules {selected[0].id}"


def _unknown_rule_error(word: str, ident: str) -> UserError:
    hint = "list the rules: a2a-inspect rules"
    if ident in omitted_rules():
        return UserError(f"{ident} is not checked: {omitted_rules()[ident]}", hint)
    if word in OTHER_FINDINGS:
        return UserError(
            f"{word} is not a rule", f"explain it without --markdown: a2a-inspect rules {word}"
        )
    near = difflib.get_close_matches(ident, all_rules(), 1)
    return UserError(
        f"there is no rule {ident}",
        f"did you mean {near[0]}?" if near else "list the rules: a2a-inspect rules",
    )
