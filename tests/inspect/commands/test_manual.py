"""`a2a-inspect help`: the manual without a network."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_inspect.commands.manual import list_files, show_manual
from a2a_proxy.model.errors import UserError

MANUAL = Path(__file__).parents[3] / "proxy/a2a_proxy/manual"


def test_all_pages_are_listed_with_their_titles(capsys: pytest.CaptureFixture[str]) -> None:
    show_manual("")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:-2]] == sorted(
        each.stem for each in MANUAL.glob("*.md")
    )
    assert "filters           Filters" in lines


@pytest.mark.parametrize("topic", ["replay", "replay.md", "Replay"])
def test_a_page_is_printed_as_it_is_to_a_pipe(
    topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show_manual(topic)
    assert capsys.readouterr().out == (MANUAL / "replay.md").read_text() + "\n"


def test_files_that_pages_refer_to_are_printed_as_they_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All of the wheel, so that nobody has to look for the folder of the installation."""
    found = {each.relative_to(MANUAL).as_posix() for each in MANUAL.rglob("*") if each.is_file()}
    pages = {name for name in found if name.endswith((".md", ".png", ".svg"))}
    built = {name for name in found if name.startswith(("man/", "site/"))}
    assert sorted(list_files()) == sorted(found - pages - built)
    for name in list_files():
        show_manual(name)
        assert capsys.readouterr().out == (MANUAL / name).read_text()


@pytest.mark.parametrize(
    ("topic", "hint"),
    [
        ("filter", "did you mean filters? list the pages: a2a-inspect help"),
        ("swimlane", "did you mean lanes? list the pages: a2a-inspect help"),
        (
            "learn",
            (
                "did you mean learn-lost-event or learn-record "
                "or learn-test? list the pages: a2a-inspect help"
            ),
        ),
        ("zzz", "list the pages: a2a-inspect help"),
        (
            "show",
            "the options of the command: a2a-inspect show --help; list the pages: a2a-inspect help",
        ),
        ("GEN-001", "a rule: a2a-inspect rules GEN-001; list the pages: a2a-inspect help"),
    ],
)
def test_an_unknown_topic_is_refused_with_the_nearest_page(topic: str, hint: str) -> None:
    with pytest.raises(UserError, match=f"no page {topic}") as refused:
        show_manual(topic, ("show", "ls"))
    assert refused.value.hint == hint
