"""The options that choose what is compared, for `replay` and `drive`."""

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

from a2a_proxy.model.errors import UserError
from a2a_proxy.replay.core.match_rules import Matcher, MatchName, MatchRuleError, parse_match_name

_Parsed = TypeVar("_Parsed")

_RULE_HINTS = {
    "--match-on": "for example: --match-on text,task, or --match-on my_matchers:same_city",
    "--ignore": (
        "for example: --ignore '$.message.metadata', --ignore text, --ignore headers.x-team"
    ),
    "--normalize": "for example: --normalize 'order-[0-9]+'",
}


def parse_match_rule(
    option: str, parse: Callable[[Sequence[str]], _Parsed], words: Sequence[str]
) -> _Parsed:
    """Return what `parse` makes of the values of an option. Raises UserError."""
    try:
        return parse(words)
    except MatchRuleError as wrong:
        raise UserError(f"{option}: {wrong}", _RULE_HINTS[option]) from wrong


def parse_match_on(words: Sequence[str]) -> tuple[MatchName | Matcher, ...]:
    """Return the names and functions of `--match-on`. Raises UserError."""
    each = [one for word in words for one in word.split(",")]
    return parse_match_rule("--match-on", lambda ones: tuple(map(_parse_matcher, ones)), each)


def _parse_matcher(word: str) -> MatchName | Matcher:
    """Return a name, or the function that `module:name` names, whose module may be in the current
    folder."""
    module, colon, name = word.partition(":")
    if not colon:
        return parse_match_name(word)
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # last, so that it shadows no other module
    try:
        found = getattr(importlib.import_module(module), name)
    except Exception as wrong:  # the module is code of the user
        raise MatchRuleError(
            f"{word} cannot be imported: {type(wrong).__name__}: {wrong}"
        ) from wrong
    if not callable(found):
        raise MatchRuleError(f"{word} is not a function of two requests")
    matcher: Matcher = found
    return matcher
