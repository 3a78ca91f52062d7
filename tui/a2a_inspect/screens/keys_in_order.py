"""An application that handles keys one after another: a key waits until the effects of the previous
one are complete.

Textual sends a key to the widget that has the focus when the key arrives, and runs a binding with
priority at once, before keys that are still queued. So a word typed right after `/` would reach the
list, and Enter would overtake the word before it. Here a key waits in the application until the
previous one has been handled, including changes of the focus.

Handling takes long, because the screen is painted meanwhile. Quick keys, which only move a cursor
or add a letter, do not wait for one another: they are queued to the same widget. The next key of
another kind waits for all of them, and until the list has reported the row under its cursor,
because the key acts on that row.
"""

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
"""Seconds between two checks of a key whose widget may have been removed."""
_MAX_WAIT = 10.0
"""Seconds after which the next key is handled in any case: more than a busy machine needs to open a
menu, less than a user waits for one."""
_AWAITED_WORKERS = frozenset({"note", "copy", "export", "explain", "complete"})
"""Groups of workers that read something, then open a screen or change an input, which gets the next
key."""


class KeyPassed(Message):
    """Bubbles up, as the key did, from the widget that had the focus, and arrives after the effects
    of the key."""

    def __init__(self, key_number: int, widget: Widget, *, again: bool) -> None:
        super().__init__()
        self.key_number = key_number
        self.widget = widget
        self.again = again
        """Post it a second time, so that it follows messages that the key caused."""


class KeysInOrder(App[int]):
    """See the module."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._waiting_keys: deque[events.Key | events.Paste] = deque()
        self._key_number = 0
        """Number of the key that is being handled."""
        self._key_widget: Widget | None = None
        """The widget that got it; None: no key is being handled."""
        self._quick_widget: Widget | None = None
        """The widget that got quick keys which may not have been handled yet."""
        self._key_started = 0.0
        self._has_key_passed = False
        """The key has been handled, and so have the messages that it caused."""
        self._is_check_scheduled = False
        self._is_held = False
        self.typed_at = 0.0
        """Arrival of the key that is being handled, in seconds of `time.monotonic`."""
        self._earlier_workers: frozenset[Worker[Any]] = frozenset()
        """Workers that were running when the key arrived, so that the key did not start them."""

    def hold_keys(self, seconds: float) -> None:
        """Hold all keys until `release_keys` is called or the time is over: there is nothing yet to
        use them on."""
        self._is_held = True
        self.set_timer(seconds, self.release_keys)

    def release_keys(self) -> None:
        """Handle the keys that were held."""
        if self._is_held:
            self._is_held = False
            self.call_later(self._handle_held_keys)

    async def _handle_held_keys(self) -> None:
        """Handle the held keys, unless one that arrived later is being handled already."""
        if self._key_widget is None:
            await self._handle_next_keys()

    async def on_event(self, event: events.Event) -> None:
        """Queue a key behind the earlier ones."""
        if not isinstance(event, events.Key | events.Paste):
            await super().on_event(event)
            return
        if not self.screen_stack:  # the application ends: no screen can take the key
            return
        if event.is_forwarded:
            await super().on_event(event)
            return
        self._waiting_keys.append(event)
        if self._key_widget is None and not self._is_held:
            await self._handle_next_keys()

    def _is_quick_key(self, event: events.Key | events.Paste) -> bool:
        """Return whether the key only moves a cursor or adds a letter."""
        if not isinstance(event, events.Key):
            return False
        if isinstance(self.focused, Input):
            return event.is_printable
        return isinstance(self.focused, LongView) and self.focused.is_cursor_key(event.key)

    def _wait_for_quick_keys(self, widget: Widget) -> None:
        """Wait until a widget has handled its quick keys."""
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
        """Handle the next key, or follow the messages that this one caused."""
        if message.key_number != self._key_number or self._key_widget is None:
            return
        if message.again and message.widget.post_message(
            KeyPassed(self._key_number, message.widget, again=False)
        ):
            return
        self._has_key_passed = True
        if not self._is_key_pending(message.widget):
            await self._handle_next_keys()

    def _is_key_pending(self, widget: Widget) -> bool:
        """Return whether effects of the key are incomplete, or the rows that it selected are not
        read yet."""
        led_to = self.focused if widget.is_attached and widget.screen is self.screen else None
        views = [
            each for each in {widget, led_to} if isinstance(each, LongView) and each.is_attached
        ]
        for view in views:
            view.report_cursor()
        return not all(view.is_settled for view in views) or self._has_awaited_worker(widget)

    def _has_awaited_worker(self, widget: Widget) -> bool:
        """Return whether a worker that the key started is about to open a screen or to change an
        input."""
        return any(
            worker.group in _AWAITED_WORKERS
            and self.screen in worker.node.ancestors_with_self
            and not worker.is_finished
            for worker in set(self.workers) - self._earlier_workers
            if widget.is_attached and widget.screen is self.screen
        )

    def _can_handle_next(self) -> bool:
        return (
            bool(self._waiting_keys)
            and self._key_widget is None
            and not self._is_held
            and bool(self.screen_stack)
        )

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
        """Handle the next key if the widget cannot report: its menu was closed, or a menu was
        opened over it."""
        at, self._is_check_scheduled = self._key_widget, False
        if at is None or not self.screen_stack:  # the application ends
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
