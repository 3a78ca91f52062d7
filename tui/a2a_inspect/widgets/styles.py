"""Styles of component classes, also where the terminal's own colours are used."""

from __future__ import annotations

from rich.style import Style
from textual.widget import Widget


def component_style(widget: Widget, *names: str) -> Style:
    """The style of these component classes together.

    Textual's own answer leaves `reverse` out, which is all that the sixteen colours have for a bar: in one, nothing
    has a colour of its own, for that could be the bar's.
    """
    style = widget.get_visual_style(*names).rich_style
    if widget.app.native_ansi_color and any(widget.get_component_styles(name).text_style.reverse for name in names):
        return Style(reverse=True, bold=style.bold)
    return style
