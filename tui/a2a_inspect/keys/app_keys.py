"""Keys of the application: in force on every screen."""

from textual.binding import Binding

APP_KEYS = (
    Binding(
        "question_mark,f1", "keys", "Keys", key_display="?", id="app.keys", tooltip="show the keys"
    ),
    Binding(
        "ctrl+p",
        "command_palette",
        "Commands",
        show=False,
        priority=True,
        id="app.palette",
        tooltip="list the available actions and themes",
    ),
    Binding(
        "T",
        "next_theme",
        "Theme",
        show=False,
        id="app.theme",
        tooltip="next theme: night, day, terminal colours",
    ),
    Binding(
        "ctrl+q",
        "quit",
        "Quit",
        show=False,
        priority=True,
        id="app.quit",
        tooltip="quit immediately",
    ),
)
