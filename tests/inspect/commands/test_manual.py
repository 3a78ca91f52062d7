"""`a2a-inspect help`: the manual without a network."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_inspect.commands.manual import show_manual
from a2a_proxy.cli.errors import UserError

MANUAL = Path(__file__).parents[3] / "proxy/a2a_proxy/manual"


def test_all_pages_are_listed_with_their_titles(capsys: pytest.CaptureFixture[str]) -> None:
    show_manual("")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:-2]] == sorted(each.stem for each in MANUAL.glob("*.md"))
    assert "filters           Filters" in lines


@pytest.mark.parametrize("topic", ["replay", "replay.md", "Replay"])
def test_a_page_is_printed_as_it_is_to_a_pipe(topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    show_manual(topic)
    assert capsys.readouterr().out == (MANUAL / "replay.md").read_text() + "\n"


@pytest.mark.parametrize(
    ("topic", "hint"),
    [
        ("filter", "did you mean filters? list the pages: a2a-inspect help"),
        ("swimlane", "did you mean lanes? list the pages: a2a-inspect help"),
        ("learn", "did you mean learn-lost-event or learn-record or learn-test? list the pages: a2a-inspect help"),
        ("zzz", "list the pages: a2a-inspect help"),
        ("show", "the options of the command: a2a-inspect show --help; list the pages: a2a-inspect help"),
        ("GEN-001", "a rule: a2a-inspect rules GEN-001; list the pages: a2a-inspect help"),
    ],
)
def test_an_unknown_topic_is_refused_with_the_nearest_page(topic: str, hint: str) -> None:
    with pytest.raises(UserError, match=f"no page {topic}") as refused:
        show_manual(topic, ("show", "ls"))
    assert refused.value.hint == hint
