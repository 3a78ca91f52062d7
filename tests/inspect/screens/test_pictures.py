"""Every screen matches its picture, in several sizes and two themes, and is readable in both.

The pictures are in `pictures/`; `tests/pictures` draws them anew. Look at what changed before you
keep it.
"""

from __future__ import annotations

import os
import time
from difflib import unified_diff
from pathlib import Path

import pytest

from a2a_inspect.app import InspectApp
from a2a_inspect.data.source import RecordingSource
from a2a_inspect.screens.themes import DAY, NIGHT, OWN_THEMES, SIXTEEN, ThemeMemory, next_theme
from support_inspect import sample
from support_picture import contrast, faint, runs_of
from support_scenes import PICTURES, THEMES, WALKS, Walk, pictures
from support_screen import SMALL, Person

IN_CI = {(0, "small", "night"), (2, "medium", "night"), (2, "wide", "night")}
"""All walks, sizes and themes by `tests/run -m "soak or not soak"
tests/inspect/screens/test_pictures.py`."""
LOOKS = [
    pytest.param(
        walk,
        size,
        theme,
        marks=() if (number, size, theme) in IN_CI else pytest.mark.soak,
        id=f"{walk.recording}-{number}-{size}-{theme}",
    )
    for number, walk in enumerate(WALKS)
    for size in walk.sizes
    for theme in THEMES
]
RENEW = "A2A_RENEW_PICTURES"
LEAST = 4.5
"""Contrast of text that WCAG 2.2, 1.4.3 asks for."""


@pytest.fixture(autouse=True)
def nobody_in_particular(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No saved views, keys and zone of the person who runs the tests, no folder of this machine."""
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path))
    monkeypatch.setenv("A2A_PROXY_CONFIG", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.chdir("/")
    time.tzset()


@pytest.mark.parametrize(("walk", "size", "theme"), LOOKS)
async def test_a_screen_looks_as_its_picture(
    walk: Walk, size: str, theme: str, tmp_path: Path
) -> None:
    """And every text of it has enough contrast."""
    changed: list[str] = []
    weak: dict[str, dict[str, float]] = {}
    async for name, drawn, app in pictures(walk, size, theme, tmp_path):
        weak |= {name: found} if (found := faint(app, LEAST)) else {}
        kept = PICTURES / name
        if os.environ.get(RENEW):
            kept.write_text(drawn, "utf-8")
        before = kept.read_text("utf-8") if kept.exists() else ""
        changed += unified_diff(
            before.splitlines(), drawn.splitlines(), str(kept), "now", lineterm="", n=0
        )
    assert not weak
    assert not changed, "\n".join(
        [*changed[:40], "... draw them anew with tests/pictures, and look at them"]
    )


def test_every_picture_has_a_scene() -> None:
    """Each belongs to a scene."""
    known = {
        f"{scene.name}-{size}-{theme}.svg"
        for walk in WALKS
        for scene in walk.scenes
        for size in walk.sizes
        for theme in THEMES
    }
    assert {path.name for path in PICTURES.glob("*.svg")} == known


def test_the_picture_in_the_manual_is_current() -> None:
    """The picture of the README."""
    shown = (
        Path(__file__).resolve().parents[3] / "proxy" / "a2a_proxy" / "manual" / "lost-event.svg"
    )
    assert shown.read_text("utf-8") == (PICTURES / "swimlane-small-night.svg").read_text("utf-8")


def test_contrast_is_computed_as_in_wcag() -> None:
    """Its ends, and a grey whose ratio is well known."""
    assert round(contrast("#000000", "#ffffff"), 2) == 21
    assert contrast("#777777", "#777777") == 1
    assert round(contrast("#767676", "#ffffff"), 2) == 4.54


async def test_sixteen_colours_and_no_more(tmp_path: Path) -> None:
    """The theme of the terminal sets only what such a terminal has; the row of the cursor is
    reversed."""
    app = InspectApp(RecordingSource(sample(tmp_path / "r.db")), theme=SIXTEEN.name)
    async with app.run_test(size=SMALL) as pilot:
        await Person(app, pilot).sees("SendStreamingMessage")
        styles = [
            segment.style for strip in app.screen._compositor.render_strips() for segment in strip
        ]
        colours = [
            each
            for style in styles
            if style
            for each in (style.color, style.bgcolor)
            if each is not None
        ]
        assert all(each.is_default or each.is_system_defined for each in colours)
        assert any(style and style.reverse and "bold" in str(style) for style in styles)


async def test_no_color(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With NO_COLOR no colour is set, in whichever theme; where the cursor is can still be seen."""
    monkeypatch.setenv("NO_COLOR", "1")
    for theme in OWN_THEMES:
        app = InspectApp(RecordingSource(sample(tmp_path / f"{theme.name}.db")), theme=theme.name)
        async with app.run_test(size=SMALL) as pilot:
            await Person(app, pilot).sees("SendStreamingMessage")
            strips = app.screen._compositor.render_strips()
            styles = [segment.style for strip in strips for segment in strip if segment.style]
            assert all(
                each is None or each.is_default
                for style in styles
                for each in (style.color, style.bgcolor)
            )
            assert any(style.reverse for style in styles)
            assert any("▸" in strip.text for strip in strips)


async def test_a_theme_is_chosen_by_a_key_and_remembered(tmp_path: Path) -> None:
    """`T` goes through ours; the next time the last one is there."""
    file = tmp_path / "theme"
    seen = []
    for name in ("a", "b"):
        app = InspectApp(RecordingSource(sample(tmp_path / f"{name}.db")), memory=ThemeMemory(file))
        async with app.run_test(size=SMALL) as pilot:
            person = Person(app, pilot)
            await person.sees("SendStreamingMessage")
            seen.append(app.theme)
            await person.types("T")
            seen.append(app.theme)
            await person.until(
                lambda app=app: file.exists() and file.read_text() == f"{app.theme}\n"
            )  # type: ignore[misc]
    assert seen == [NIGHT.name, DAY.name, DAY.name, SIXTEEN.name]


def test_an_unwritable_theme_memory_is_ignored(tmp_path: Path) -> None:
    """No folder, no text, no file: the screen opens all the same."""
    ThemeMemory(tmp_path / "no" / "theme").write("day")
    assert ThemeMemory(tmp_path / "no" / "theme").read() == ""
    (tmp_path / "theme").write_bytes(b"\xff")
    assert ThemeMemory(tmp_path / "theme").read() == ""
    assert ThemeMemory().read() == ""


def test_themes_cycle() -> None:
    """From one of Textual's to our first."""
    assert [next_theme(theme.name) for theme in OWN_THEMES] == [DAY.name, SIXTEEN.name, NIGHT.name]
    assert next_theme("dracula") == NIGHT.name


async def test_picture_lines_have_the_width_of_the_terminal(tmp_path: Path) -> None:
    """The runs of a line together are as wide as the terminal."""
    app = InspectApp(RecordingSource(sample(tmp_path / "r.db")))
    async with app.run_test(size=SMALL) as pilot:
        await Person(app, pilot).sees("SendStreamingMessage")
        assert {sum(len(text) for text, _ in line) for line in runs_of(app)} == {80}
        assert len(runs_of(app)) == 24
