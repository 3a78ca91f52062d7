"""`a2a-inspect rules`: the catalogue, or one page of it."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator

from a2a_inspect.commands.check.report import full_id
from a2a_proxy.cli.errors import UserError
from a2a_proxy.rules import page
from a2a_proxy.rules.catalogue import left_out, rules, subjects
from a2a_proxy.rules.rule import Rule


def show_rules(word: str, *, as_json: bool, as_markdown: bool) -> None:
    """Print one rule, those that begin with `word`, or all.

    Raises:
        UserError: there is no such rule.
    """
    for line in page.markdown() if as_markdown else _lines(word, as_json=as_json):
        print(line)


def _lines(word: str, *, as_json: bool) -> Iterator[str]:
    ident = full_id(word) if word else ""
    found = [rule for rule in rules().values() if rule.id.startswith(ident)]
    if not found:
        raise _unknown(ident)
    if as_json:
        yield from (json.dumps(page.facts(rule)) for rule in found)
    elif found[0].id == ident:
        yield from page.text(found[0])
    else:
        yield from _list(found)


def _list(found: list[Rule]) -> Iterator[str]:
    family = ""
    for rule in found:
        if rule.family != family:
            if family:
                yield ""
            family = rule.family
            yield f"{family}: {subjects().get(family, '')}"
        draft = " (draft)" if rule.draft else ""
        yield f"  {rule.id:16}{rule.severity.name.lower():9}{rule.title}{draft}"
    yield ""
    yield f"{len(found)} rules; one of them with its reason and examples: a2a-inspect rules {found[0].id}"


def _unknown(ident: str) -> UserError:
    if ident in left_out():
        return UserError(f"{ident} is not judged: {left_out()[ident]}", "see which are: a2a-inspect rules")
    near = difflib.get_close_matches(ident, rules(), 1)
    return UserError(f"there is no rule {ident}", f"did you mean {near[0]}?" if near else "see all: a2a-inspect rules")
