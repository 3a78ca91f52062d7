"""Keys are handled one after another: each when what the one before it did is done, the focus included.

Textual hands a key to the widget that has the focus when the key comes in, and a binding with priority is run at once,
before the keys that are on their way. So what is typed at once after `/` would reach the list, and Enter would overtake
the word before it. Here a key waits in the application until the one before it has gone all its way.

That way is long, and the screen is painted meanwhile. Keys that do nothing but move a cursor or add a letter need not
wait for each other: they go the same way, one behind the other. The next key of another kind waits for all of them,
and until the list has told where its cursor stands: that is what the key is about.
"""

from __future__ import annotations

from collections import deque
from time import monotonic
from typing import Any

from textual import events
from textual.app import App
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input
from textual.worker import Worker

from a2a_inspect.widgets.long_view import LongView

_LOOK = 0.05
"""Seconds between two looks at a key whose widget may have gone."""
_LONG = 10.0
"""Seconds after which the next key is not held back any more, whatever the one before it does: more than a busy
machine takes to open a menu, less than anybody waits for one."""
_AWAITED = frozenset({"note", "copy", "export", "explain", "complete"})
"""Groups of workers that read something and then open a screen or change what is typed: the next key is about that."""


class KeyPassed(Message):
    """Follows a key on its way up from the widget that had the focus; it comes after what the key did there."""

    def __init__(self, turn: int, at: Widget, *, again: bool) -> None:
        super().__init__()
        self.turn = turn
        self.at = at
        self.again = again
        """What the key did may have sent messages along that way: follow these too."""


class KeysInOrder(App[int]):
    """See the module."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._typed: deque[events.Key | events.Paste] = deque()
        self._turn = 0
        """Number of the key that is being handled."""
        self._at: Widget | None = None
        """Where it went; None: no key is being handled."""
        self._quick: Widget | None = None
        """Where quick keys went that may be on their way still."""
        self._since = 0.0
        self._gone = False
        """It has gone its way, and what it sent too."""
        self._looking = False
        self._held = False
        self.typed_at = 0.0
        """When the key came in that is being handled, in seconds as `monotonic` tells them."""
        self._before: frozenset[Worker[Any]] = frozenset()
        """What ran already when the key came: that is not what it did."""

    def hold(self, seconds: float) -> None:
        """Handle no key before `release`, or before so much time has passed: it could mean nothing yet."""
        self._held = True
        self.set_timer(seconds, self.release)

    def release(self) -> None:
        """What was held back is handled now."""
        if self._held:
            self._held = False
            self.call_later(self._begin)

    async def _begin(self) -> None:
        """With what was held back, unless a key that came in since has done so: then that one is being handled."""
        if self._at is None:
            await self._next()

    async def on_event(self, event: events.Event) -> None:
        """Let a key wait for those before it."""
        if not isinstance(event, events.Key | events.Paste):
            await super().on_event(event)
            return
        if not self.screen_stack:  # at the end there is no screen that it could be for
            return
        if event.is_forwarded:
            await super().on_event(event)
            return
        self._typed.append(event)
        if self._at is None and not self._held:
            await self._next()

    def _is_quick(self, event: events.Key | events.Paste) -> bool:
        """It moves a cursor or adds a letter, and nothing else."""
        if not isinstance(event, events.Key):
            return False
        if isinstance(self.focused, Input):
            return event.is_printable
        return isinstance(self.focused, LongView) and self.focused.moves(event.key)

    def _wait_for(self, at: Widget) -> None:
        """Wait for the quick keys that are on their way from there."""
        self._turn += 1
        self._since, self._gone = monotonic(), False
        self._at, self._quick = at, None
        if at.post_message(KeyPassed(self._turn, at, again=True)):
            self._watch_it()
        else:
            self._at = None

    def _watch_it(self) -> None:
        if not self._looking:
            self._looking = True
            self.set_timer(_LOOK, self._look_after)

    async def _handle(self, event: events.Key | events.Paste) -> None:
        self._turn += 1
        self._since, self._gone = monotonic(), False
        self._at = at = self.focused or self.screen
        self._before, self.typed_at = frozenset(self.workers), event.time
        self._watch_it()
        await super().on_event(event)
        if not at.post_message(KeyPassed(self._turn, at, again=True)):
            await self._next()

    async def on_key_passed(self, message: KeyPassed) -> None:
        """A key has gone its way, or what it sent has."""
        if message.turn != self._turn or self._at is None:
            return
        if message.again and message.at.post_message(KeyPassed(self._turn, message.at, again=False)):
            return
        self._gone = True
        if not self._under_way(message.at):
            await self._next()

    def _under_way(self, at: Widget) -> bool:
        """What the key did there is not done yet, or the rows that it led to are not there."""
        led_to = self.focused if at.is_attached and at.screen is self.screen else None
        views = [each for each in {at, led_to} if isinstance(each, LongView) and each.is_attached]
        for view in views:
            view.settle()
        return not all(view.settled for view in views) or self._awaits(at)

    def _awaits(self, at: Widget) -> bool:
        """What the key did there is about to open a screen, or to change what is typed."""
        return any(
            worker.group in _AWAITED and self.screen in worker.node.ancestors_with_self and not worker.is_finished
            for worker in set(self.workers) - self._before
            if at.is_attached and at.screen is self.screen
        )

    def _may_go_on(self) -> bool:
        return bool(self._typed) and self._at is None and not self._held and bool(self.screen_stack)

    async def _next(self) -> None:
        self._at = None
        while self._may_go_on():
            if self._is_quick(self._typed[0]):
                self._quick = self.focused
                await super().on_event(self._typed.popleft())
            elif self._quick is not None:
                self._wait_for(self._quick)
            else:
                await self._handle(self._typed.popleft())

    async def _look_after(self) -> None:
        """A widget that went, with a menu that was closed, tells nothing more; nor one below a menu that opened."""
        at, self._looking = self._at, False
        if at is None or not self.screen_stack:  # at the end there is no screen
            return
        elsewhere = not at.is_attached or at.screen is not self.screen
        if elsewhere or (self._gone and not self._under_way(at)) or monotonic() - self._since > _LONG:
            await self._next()
        else:
            self._watch_it()
