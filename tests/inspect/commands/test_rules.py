"""`a2a-inspect rules` and the manual's page, both generated from the rules."""

from __future__ import annotations

import json
from pathlib import Path

import a2a_proxy
from a2a_proxy.rules.define.catalogue import all_rules, omitted_rules
from support_cli import Ran, run_here

PAGE = Path(a2a_proxy.__file__).parent / "manual" / "rules.md"


def say(tmp_path: Path, *words: str) -> Ran:
    return run_here(tmp_path / "state", "rules", *words)


def test_the_catalogue(tmp_path: Path) -> None:
    """A line a rule; as JSON an object a rule, with all that is known of it."""
    done = say(tmp_path)
    assert done.code == 0
    assert all(
        f"  {rule.id:16}{rule.severity.name.lower():9}{rule.title}" in done.out
        for rule in all_rules().values()
    )
    objects = [json.loads(line) for line in say(tmp_path, "--json").lines]
    assert [each["id"] for each in objects] == list(all_rules())
    assert all(
        each["what"] and each["why"] and each["flagged"] and each["clean"] for each in objects
    )


def test_one_rule_is_explained(tmp_path: Path) -> None:
    """In full, also by its short name; a family by its name; suggestions for a wrong name."""
    page = say(tmp_path, "rpc-002").out
    family = say(tmp_path, "RPC").out
    rule = all_rules()["A2A-RPC-002"]
    assert all(
        words in page
        for words in (rule.title, rule.section, "flagged:", "clean:", *rule.flagged.format_lines())
    )
    assert "A2A-RPC-002" in family
    assert "A2A-GRPC-" not in family
    wrong = say(tmp_path, "RPC-0002")
    assert wrong.code == 2
    assert "did you mean A2A-RPC-0" in wrong.err


def test_omitted_rules_have_a_reason(tmp_path: Path) -> None:
    """No id is both judged and left out."""
    assert not set(omitted_rules()) & set(all_rules())
    assert all(why.strip() for why in omitted_rules().values())
    ident, why = next(iter(omitted_rules().items()))
    assert f"{ident} is not checked: {why}" in say(tmp_path, ident).err


def test_the_manual_page_equals_the_generated_one(tmp_path: Path) -> None:
    """After a change: `a2a-inspect rules --markdown > proxy/a2a_proxy/manual/rules.md`."""
    assert say(tmp_path, "--markdown").out == PAGE.read_text("utf-8")


def test_an_unknown_rule_is_an_error(tmp_path: Path) -> None:
    """It says so, instead of naming a rule that has nothing to do with it."""
    for ident in ("UNDECODABLE", "recorder", "RULES", "MIGRATION", "PROBE"):
        out = say(tmp_path, ident).out
        assert out.startswith(f"{ident.upper()}  ")
        assert "\nnot a rule\n" in out
    assert (
        json.loads(say(tmp_path, "undecodable", "--json").out)["title"]
        == "Bytes that cannot be decoded"
    )
    assert "UNDECODABLE is not a rule" in say(tmp_path, "undecodable", "--markdown").err


def test_one_rule_as_markdown(tmp_path: Path) -> None:
    """Only that one, counted as one; two forms at once are refused."""
    done = say(tmp_path, "RPC-002", "--markdown")
    assert [line for line in done.lines if line.startswith("### ")] == [
        f"### A2A-RPC-002: {all_rules()['A2A-RPC-002'].title}"
    ]
    assert "1 rule in 1 family." in done.out
    assert "## Left out" not in done.out
    both = say(tmp_path, "--json", "--markdown")
    assert (both.code, both.out, len(both.err.splitlines())) == (2, "", 2)


def test_a_prefix_lists_matching_rules(tmp_path: Path) -> None:
    """`A2A` lists all, the beginning of one id one."""
    assert say(tmp_path, "A2A").out == say(tmp_path, "A2A-").out == say(tmp_path).out
    only = next(
        ident
        for ident in all_rules()
        if sum(each.startswith(ident[:-1]) for each in all_rules()) == 1
    )
    assert "1 rule; explain one" in say(tmp_path, only[:-1]).out
