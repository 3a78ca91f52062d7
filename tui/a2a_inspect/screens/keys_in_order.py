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

_CHECK_INTERVAL = 0.05
"""Seconds between two looks at a key whose widget may have gone."""
_MAX_WAIT = 10.0
"""Seconds after which the next key is not held back any more, whatever the one before it does: more than a busy
machine takes to open a menu, less than anybody waits for one."""
_AWAITED_WORKERS = frozenset({"note", "copy", "export", "explain", "complete"})
"""Groups of workers that read something and then open a screen or change what is typed: the next key is about that."""


class KeyPassed(Message):
    """Follows a key on its way up from the widget that had the focus; it comes after what the key did there."""

    def __init__(self, key_number: int, widget: Widget, *, again: bool) -> None:
        super().__init__()
        self.key_number = key_number
        self.widget = widget
        self.again = again
        """What the key did may have sent messages along that way: follow these too."""


class KeysInOrder(App[int]):
    """See the module."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._waiting_keys: deque[events.Key | events.Paste] = deque()
        self._key_number = 0
        """Number of the key that is being handled."""
        self._key_widget: Widget | None = None
        """Where it went; None: no key is being handled."""
        self._quick_widget: Widget | None = None
        """Where quick keys went that may be on their way still."""
        self._key_started = 0.0
        self._has_key_passed = False
        """It has gone its way, and what it sent too."""
        self._is_check_scheduled = False
        self._is_held = False
        self.typed_at = 0.0
        """When the key came in that is being handled, in seconds as `monotonic` tells them."""
        self._earlier_workers: frozenset[Worker[Any]] = frozenset()
        """What ran already when the key came: that is not what it did."""

    def hold_keys(self, seconds: float) -> None:
        """Handle no key before `release_keys`, or before so much time has passed: it could mean nothing yet."""
        self._is_held = True
        self.set_timer(seconds, self.release_keys)

    def release_keys(self) -> None:
        """What was held back is handled now."""
        if self._is_held:
            self._is_held = False
            self.call_later(self._handle_held_keys)

    async def _handle_held_keys(self) -> None:
        """With what was held back, unless a key that came in since has done so: then that one is being handled."""
        if self._key_widget is None:
            await self._handle_next_keys()

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
        self._waiting_keys.append(event)
        if self._key_widget is None and not self._is_held:
            await self._handle_next_keys()

    def _is_quick_key(self, event: events.Key | events.Paste) -> bool:
        """It moves a cursor or adds a letter, and nothing else."""
        if not isinstance(event, events.Key):
            return False
        if isinstance(self.focused, Input):
            return event.is_printable
        return isinstance(self.focused, LongView) and self.focused.is_cursor_key(event.key)

    def _wait_for_quick_keys(self, widget: Widget) -> None:
        """Wait for the quick keys that are on their way from there."""
        self._key_number += 1
        self._key_started, self._has_key_passed = monotonic(), False
        self._key_widget, self._quick_widget = widget, None
        if widget.post_message(KeyPassed(self._key_number, widget, again=True)):
            self._schedule_check()
        else:
            self._key_widget = None

    def _schedule_check(self) -> None:
        if not self._is_check_scheduled:
            self._is_check_scheduled = True
            self.set_timer(_CHECK_INTERVAL, self._check_key)

    async def _handle_key(self, event: events.Key | events.Paste) -> None:
        self._key_number += 1
        self._key_started, self._has_key_passed = monotonic(), False
        self._key_widget = at = self.focused or self.screen
        self._earlier_workers, self.typed_at = frozenset(self.workers), event.time
        self._schedule_check()
        await super().on_event(event)
        if not at.post_message(KeyPassed(self._key_number, at, again=True)):
            await self._handle_next_keys()

    async def on_key_passed(self, message: KeyPassed) -> None:
        """A key has gone its way, or what it sent has."""
        if message.key_number != self._key_number or self._key_widget is None:
            return
        if message.again and message.widget.post_message(KeyPassed(self._key_number, message.widget, again=False)):
            return
        self._has_key_passed = True
        if not self._is_key_pending(message.widget):
            await self._handle_next_keys()

    def _is_key_pending(self, widget: Widget) -> bool:
        """What the key did there is not done yet, or the rows that it led to are not there."""
        led_to = self.focused if widget.is_attached and widget.screen is self.screen else None
        views = [each for each in {widget, led_to} if isinstance(each, LongView) and each.is_attached]
        for view in views:
            view.settle()
        return not all(view.is_settled for view in views) or self._has_awaited_worker(widget)

    def _has_awaited_worker(self, widget: Widget) -> bool:
        """What the key did there is about to open a screen, or to change what is typed."""
        return any(
            worker.group in _AWAITED_WORKERS
            and self.screen in worker.node.ancestors_with_self
            and not worker.is_finished
            for worker in set(self.workers) - self._earlier_workers
            if widget.is_attached and widget.screen is self.screen
        )

    def _can_handle_next(self) -> bool:
        return bool(self._waiting_keys) and self._key_widget is None and not self._is_held and bool(self.screen_stack)

    async def _handle_next_keys(self) -> None:
        self._key_widget = None
        while self._can_handle_next():
            if self._is_quick_key(self._waiting_keys[0]):
                self._quick_widget = self.focused
                await super().on_event(self._waiting_keys.popleft())
            elif self._quick_widget is not None:
                self._wait_for_quick_keys(self._quick_widget)
            else:
                await self._handle_key(self._waiting_keys.popleft())

    async def _check_key(self) -> None:
        """A widget that went, with a menu that was closed, tells nothing more; nor one below a menu that opened."""
        at, self._is_check_scheduled = self._key_widget, False
        if at is None or not self.screen_stack:  # at the end there is no screen
            return
        elsewhere = not at.is_attached or at.screen is not self.screen
        if (
            elsewhere
            or (self._has_key_passed and not self._is_key_pending(at))
            or monotonic() - self._key_started > _MAX_WAIT
        ):
            await self._handle_next_keys()
        else:
            self._schedule_check()
