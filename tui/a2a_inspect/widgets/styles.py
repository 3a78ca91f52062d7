"""Styles of component classes, also in terminals with their own 16 colours."""

from rich.style import Style
from textual.widget import Widget


def component_style(widget: Widget, *names: str) -> Style:
    """Return the combined style of these component classes.

    Textual's own result lacks `reverse`, which is the only way to draw a bar with sixteen colours.
    Within such a bar no text has a colour of its own, because it could be that of the bar.
    """
    style = widget.get_visual_style(*names).rich_style
    if widget.app.native_ansi_color and any(
        widget.get_component_styles(name).text_style.reverse for name in names
    ):
        return Style(reverse=True, bold=style.bold)
    return style
