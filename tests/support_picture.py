"""Pictures (SVG) of the terminal that a person can look at and `diff` can compare, and the
legibility of their text.

Each line of the terminal is one line of the file, drawn from the cells: another version of Textual
that draws the same cells gives the same picture.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import groupby
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.color import Color as RichColor
from rich.style import Style
from rich.terminal_theme import DEFAULT_TERMINAL_THEME
from textual.app import App
from textual.color import Color

_WIDE, _HIGH, _UP = 8.4, 18, 13
"""Pixels: width and height of a cell, and the baseline of its text."""
_DRAWN = range(0x2500, 0x2600)
"""Characters for lines, blocks and shapes, which are not text."""


class Look(NamedTuple):
    """The appearance of cells."""

    text: str
    """Colour, as `#rrggbb`."""
    ground: str
    marks: str
    """`b`, `i`, `u`: bold, italic, underlined."""


Run = tuple[str, Look]


def runs_of(app: App[Any]) -> list[list[Run]]:
    """Return the cells of every line of the terminal, joined where they look the same."""
    strips = (
        app.screen._compositor.render_strips()
    )  # Textual has no public method that returns the shown cells
    return [
        list(_joined((each.text, _look(each.style)) for each in strip))
        for strip in strips[: app.size.height]
    ]


def _joined(runs: Iterator[Run]) -> Iterator[Run]:
    for look, same in groupby(runs, key=lambda run: run[1]):
        yield "".join(text for text, _ in same), look


def _look(style: Style | None) -> Look:
    style = style or Style()
    text, ground = _hex(style.color, foreground=True), _hex(style.bgcolor, foreground=False)
    if style.reverse:
        text, ground = ground, text
    if style.dim:
        text = Color.parse(ground).blend(Color.parse(text), 0.66).hex6.lower()
    return Look(
        text,
        ground,
        "b" * bool(style.bold) + "i" * bool(style.italic) + "u" * bool(style.underline),
    )


def _hex(colour: RichColor | None, *, foreground: bool) -> str:
    return (
        (colour or RichColor.default())
        .get_truecolor(DEFAULT_TERMINAL_THEME, foreground=foreground)
        .hex
    )


def picture(app: App[Any]) -> str:
    """Return the whole terminal as SVG."""
    lines = runs_of(app)
    looks = sorted({look for line in lines for _, look in line})
    names = {look: f"c{number}" for number, look in enumerate(looks)}
    width, height = round(app.size.width * _WIDE, 1), app.size.height * _HIGH
    ground = max(
        looks,
        key=lambda look: sum(len(text) for line in lines for text, own in line if own == look),
    ).ground
    return "\n".join(
        [
            (
                '<svg xmlns="http://www.w3.org/2000/svg" '
                f'viewBox="0 0 {width} {height}" font-size="14">'
            ),
            (
                "<style>text { font-family: 'DejaVu Sans Mono', "
                "Menlo, Consolas, monospace; white-space: pre }"
            ),
            *(f".{names[look]} {{ {_css(look)} }}" for look in looks),
            "</style>",
            f'<rect width="100%" height="100%" fill="{ground}"/>',
            *(_drawn(line, number, ground, names) for number, line in enumerate(lines)),
            "</svg>\n",
        ]
    )


def _css(look: Look) -> str:
    words = {"b": "font-weight: bold", "i": "font-style: italic", "u": "text-decoration: underline"}
    return "; ".join([f"fill: {look.text}", *(words[mark] for mark in look.marks)])


def _drawn(line: list[Run], number: int, ground: str, names: dict[Look, str]) -> str:
    """Return one line: the backgrounds, then the texts."""
    drawn, column = [], 0
    for own, same in groupby(line, key=lambda run: run[1].ground):
        cells = sum(cell_len(text) for text, _ in same)
        if own != ground:
            where = (
                f'x="{_pixels(column)}" y="{number * _HIGH}" '
                f'width="{_pixels(cells)}" height="{_HIGH}"'
            )
            drawn.append(f'<rect {where} fill="{own}"/>')
        column += cells
    column = 0
    for text, look in line:
        if stripped := text.strip():
            begin = column + cell_len(text[: len(text) - len(text.lstrip())])
            where = (
                f'x="{_pixels(begin)}" y="{number * _HIGH + _UP}" '
                f'textLength="{_pixels(cell_len(stripped))}"'
            )
            drawn.append(
                f'<text class="{names[look]}" {where}>{escape(stripped, quote=False)}</text>'
            )
        column += cell_len(text)
    return "".join(drawn)


def _pixels(cells: int) -> str:
    return f"{cells * _WIDE:.1f}".removesuffix(".0")


def faint(app: App[Any], least: float) -> dict[str, float]:
    """Return the texts whose contrast to their background is less than `least`, with the contrast.
    Drawings are ignored.

    The screen behind a modal screen is dimmed on purpose.
    """
    found: dict[str, float] = {}
    for y, line in enumerate(runs_of(app)):
        x = 0
        for text, look in line:
            legible = any(not letter.isspace() and ord(letter) not in _DRAWN for letter in text)
            ratio = contrast(look.text, look.ground)
            if legible and ratio < least and _in_front(app, range(x, x + cell_len(text)), y):
                found[f"{text.strip()!r} {look.text} on {look.ground}"] = round(ratio, 2)
            x += cell_len(text)
    return found


def _in_front(app: App[Any], columns: range, y: int) -> bool:
    if not app.screen.is_modal:
        return True
    regions = [child.region for child in app.screen.children if child.display]
    return any(
        region.y <= y < region.bottom and region.x <= x < region.right
        for region in regions
        for x in columns
    )


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of WCAG 2.2, 1 to 21."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = [part / 255 for part in Color.parse(colour).rgb]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
