"""Style of small menus over the screen. `MENU` is replaced by the class name."""

MENU_CSS = """
MENU { align: center middle; }
MENU > VerticalScroll {
    width: 72; max-width: 96%; height: auto; max-height: 96%; padding: 0 2;
    background: $surface; border: round $primary; border-title-color: $text;
    scrollbar-size-vertical: 1;
}
"""
