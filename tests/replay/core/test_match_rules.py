"""Rules of the user: names of parts, ignored paths, normalized texts, matchers."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.recording.difference.paths import parse_path, without_paths
from a2a_proxy.replay.core.match_rules import (
    MatchedRequest,
    MatchName,
    MatchRuleError,
    check_expressions,
    parse_ignored,
    parse_match_name,
)
from support_replay import TASK, Stage, call, message, script, task

PARTS = [{"text": "book"}, {"data": {"n": 1}}, {"url": "https://example.com/a"}]
ASKED = {
    "message": {
        "messageId": "m",
        "taskId": TASK,
        "contextId": "ctx-00000001",
        "parts": PARTS,
        "metadata": {"a": 1},
    },
    "configuration": {"historyLength": 1},
}
RECORDED = call(
    1, "SendMessage", ASKED, ("s", 1, task()), ("s", 1, "end"), headers=((b"x-team", b"red"),)
)


def changed(**members: Any) -> dict[str, Any]:
    """Return the request with other members of its message."""
    return {**ASKED, "message": {**ASKED["message"], **members}}


CASES: list[tuple[str, dict[str, Any], dict[str, Any], bool]] = [
    ("text is named", {"match_on": ("text",)}, changed(parts=[{"text": "other"}]), False),
    (
        "data is not named",
        {"match_on": ("text",)},
        changed(parts=[{"text": "book"}, {"data": {"n": 2}}]),
        True,
    ),
    (
        "data is named",
        {"match_on": ("data",)},
        changed(parts=[{"text": "x"}, {"data": {"n": 2}}]),
        False,
    ),
    (
        "files are named",
        {"match_on": ("files",)},
        changed(parts=[{"url": "https://example.com/b"}]),
        False,
    ),
    ("all parts", {"match_on": ("parts",)}, changed(parts=PARTS[:2]), False),
    ("task is not named", {"match_on": ("text",)}, changed(taskId="other-task"), True),
    ("metadata is named", {"match_on": ("metadata",)}, changed(metadata={"a": 2}), False),
    (
        "configuration is not named",
        {"match_on": ("text",)},
        {**ASKED, "configuration": {"historyLength": 2}},
        True,
    ),
    ("configuration counts", {}, {**ASKED, "configuration": {"historyLength": 2}}, False),
    (
        "ignored",
        {"ignore": ("$.configuration",)},
        {**ASKED, "configuration": {"historyLength": 2}},
        True,
    ),
    (
        "ignored anywhere",
        {"ignore": ("data.n",)},
        changed(parts=[PARTS[0], {"data": {"n": 2}}, PARTS[2]]),
        True,
    ),
    (
        "ignored item",
        {"ignore": ("request.message.parts[1]",)},
        changed(parts=[PARTS[0], {"text": "x"}, PARTS[2]]),
        True,
    ),
    (
        "other path",
        {"ignore": ("$.tenant",)},
        {**ASKED, "configuration": {"historyLength": 2}},
        False,
    ),
    (
        "normalized",
        {"normalize": ("b[a-z]+k",)},
        changed(parts=[{"text": "back"}, *PARTS[1:]]),
        True,
    ),
    (
        "not normalized",
        {"normalize": ("b[a-z]+k",)},
        changed(parts=[{"text": "x"}, *PARTS[1:]]),
        False,
    ),
]


@pytest.mark.parametrize(
    ("options", "asked", "matches"), [each[1:] for each in CASES], ids=[each[0] for each in CASES]
)
def test_the_rules_select_what_counts(
    options: dict[str, Any], asked: dict[str, Any], matches: bool
) -> None:
    made = dict(options)
    if "match_on" in options:
        made["match_on"] = tuple(map(parse_match_name, options["match_on"]))
    if "ignore" in options:
        made["ignore"] = parse_ignored(options["ignore"])
    stage = Stage(script(RECORDED), **made)
    if matches:
        assert stage.ask("SendMessage", asked).call is RECORDED
    else:
        assert stage.miss("SendMessage", asked).nearest == "#1"


def test_headers_can_be_named_and_ignored() -> None:
    named = (MatchName.TEXT, MatchName.HEADERS)
    blue = ((b"x-team", b"blue"),)
    assert Stage(script(RECORDED), match_on=named).miss("SendMessage", ASKED, headers=blue)
    ignoring = Stage(script(RECORDED), match_on=named, ignore=parse_ignored(["headers.x-team"]))
    assert ignoring.ask("SendMessage", ASKED, headers=blue).call is RECORDED


def same_city(recorded: MatchedRequest, requested: MatchedRequest) -> bool:
    """Compare the first words."""
    first, second = (
        each.value["message"]["parts"][0]["text"].split()[0] for each in (recorded, requested)
    )
    return bool(first == second)


def test_a_function_decides() -> None:
    lisbon, porto = (
        call(1, "SendMessage", message("Lisbon today")),
        call(2, "SendMessage", message("Porto today")),
    )
    stage = Stage(script(lisbon, porto), match_on=(same_city,))
    assert stage.ask("SendMessage", message("Porto tomorrow")).call is porto
    miss = stage.miss("SendMessage", message("Faro today"))
    assert "    matcher same_city: it returned False" in miss.full_text().splitlines()


def test_an_assertion_of_a_function_is_the_reason() -> None:
    def never(_recorded: MatchedRequest, _requested: MatchedRequest) -> None:
        raise AssertionError("not on Mondays")

    def broken(_recorded: MatchedRequest, _requested: MatchedRequest) -> None:
        raise KeyError("x")

    miss = Stage(script(RECORDED), match_on=(never, broken)).miss("SendMessage", ASKED)
    assert "not on Mondays" in miss.full_text()
    assert "KeyError: 'x'" in miss.full_text()


def test_a_function_and_names_must_both_match() -> None:
    lisbon = call(1, "SendMessage", message("Lisbon today"))
    stage = Stage(script(lisbon), match_on=(MatchName.TEXT, same_city))
    assert stage.miss("SendMessage", message("Lisbon tomorrow")).rows[0].right == (
        "message",
        "parts",
        0,
        "text",
    )


def test_invalid_rules_are_refused() -> None:
    for wrong in (
        lambda: parse_match_name("texts"),
        lambda: parse_ignored(["$."]),
        lambda: check_expressions(["("]),
    ):
        with pytest.raises(MatchRuleError):
            wrong()


def test_paths_are_removed() -> None:
    value = {"a": [{"b": 1, "c": 2}, 3], "b": 4}
    assert without_paths(value, [parse_path("b")]) == {"a": [{"c": 2}, 3]}
    assert without_paths(value, [parse_path("$.a[*].b")]) == {"a": [{"c": 2}, 3], "b": 4}
    assert without_paths(value, [parse_path("a[1]")]) == {"a": [{"b": 1, "c": 2}, None], "b": 4}
