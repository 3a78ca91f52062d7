"""The last line of a screen: the keys available now. One widget for any number of keys.

Textual's own footer mounts a widget for each key, again at each change of the focus: at start-up
that took longer than all other painting, and later as long as three repaints.
"""

from typing import ClassVar

import msgspec
from rich.segment import Segment
from textual import events
from textual.reactive import reactive
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from a2a_inspect.widgets.columns import fit_text
from a2a_inspect.widgets.styles import component_style

_KEYS_ACTION = "app.keys"
"""Action that opens the page of all keys, including those that do not fit into the line."""


class KeyHint(msgspec.Struct, frozen=True):
    """One key."""

    key: str
    """Key that a click on the hint presses."""
    key_text: str
    """Key as displayed."""
    label: str
    enabled: bool = True
    is_always_shown: bool = False
    """Whether it is shown even if others must be left out."""

    @property
    def width(self) -> int:
        """Cells of ` key words `."""
        return len(self.key_text) + len(self.label) + 3


def place_hints(hints: tuple[KeyHint, ...], width: int) -> list[tuple[int, KeyHint]]:
    """Return as many hints as fit side by side, each with its first cell; none is cut."""
    at, found, full = 0, list[tuple[int, KeyHint]](), False
    rest = width - sum(hint.width for hint in hints if hint.is_always_shown)
    for hint in hints:
        full = full or (hint.width > rest and not hint.is_always_shown)
        if rest >= 0 and (hint.is_always_shown or not full):
            found.append((at, hint))
            at += hint.width
            rest -= 0 if hint.is_always_shown else hint.width
    return found


class KeyLine(Widget):
    """The line. The palette's key is at the right because it leads to all the others.

    A screen may name in `FIRST_KEYS` the ids of the actions that come first.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "key-line--key",
        "key-line--words",
        "key-line--rule",
        "key-line--off",
    }

    DEFAULT_CSS = """
    KeyLine { dock: bottom; height: 1; background: $panel; color: $footer-foreground; }
    KeyLine > .key-line--key { color: $footer-key-foreground; text-style: bold; }
    KeyLine > .key-line--words { color: $footer-description-foreground; }
    KeyLine > .key-line--rule { color: $foreground 20%; }
    KeyLine > .key-line--off { text-style: dim; }
    """

    hints: reactive[tuple[KeyHint, ...]] = reactive(())
    palette: reactive[KeyHint | None] = reactive(None)

    def on_mount(self) -> None:
        """Subscribe to changes of the bindings."""
        self.screen.bindings_updated_signal.subscribe(self, self._update_later)

    def on_unmount(self) -> None:
        """Unsubscribe."""
        self.screen.bindings_updated_signal.unsubscribe(self)

    def _update_later(self, screen: Screen[object]) -> None:
        if screen is self.screen and screen.app.app_focus:
            self.call_after_refresh(self._update_hints)

    def _update_hints(self) -> None:
        if not self.is_attached:
            return
        app, hints, palette = self.app, dict[str, KeyHint](), None
        first = {name: place for place, name in enumerate(getattr(self.screen, "FIRST_KEYS", ()))}
        active = sorted(
            self.screen.active_bindings.items(),
            key=lambda found: first.get(found[1].binding.id or "", len(first)),
        )
        for key, (_, binding, enabled, _) in active:
            always = binding.id == _KEYS_ACTION
            hint = KeyHint(
                binding.key, app.get_key_display(binding), binding.description, enabled, always
            )
            if key == app.COMMAND_PALETTE_BINDING and app.ENABLE_COMMAND_PALETTE:
                palette = hint
            elif binding.show:
                hints.setdefault(binding.action, hint)
        self.hints, self.palette = tuple(hints.values()), palette

    def _hint_positions(self) -> list[tuple[int, KeyHint]]:
        """Return the position of each hint; the palette's key is the last."""
        palette = [self.palette] if self.palette is not None else []
        end = self.size.width - sum(hint.width + 1 for hint in palette)
        return place_hints(self.hints, end) + [(end + 1, hint) for hint in palette if end >= 0]

    def render_line(self, y: int) -> Strip:  # noqa: ARG002 - one line only
        """Return ` / Filter  ↵ Open            ▏ ^p Commands `."""
        segments: list[Segment] = []
        at = 0
        for begin, hint in self._hint_positions():
            if begin > at:
                rule = "▏" if hint is self.palette else " "
                segments += [
                    Segment(fit_text("", begin - at - 1), self.rich_style),
                    Segment(rule, component_style(self, "key-line--rule")),
                ]
            off = () if hint.enabled else ("key-line--off",)
            segments += [
                Segment(f" {hint.key_text} ", component_style(self, "key-line--key", *off)),
                Segment(f"{hint.label} ", component_style(self, "key-line--words", *off)),
            ]
            at = begin + hint.width
        return Strip(segments).adjust_cell_length(self.size.width, self.rich_style)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Press the clicked key."""
        for begin, hint in self._hint_positions():
            if begin <= event.x < begin + hint.width:
                if hint.enabled:
                    self.app.simulate_key(hint.key)
                else:
                    self.app.bell()
