"""A user of the screen, who presses keys and waits for text."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from textual.pilot import Pilot
from textual.widgets import Input

from a2a_inspect.app import InspectApp
from a2a_inspect.data.source import RecordingSource
from a2a_inspect.widgets.exchange_list import ExchangeList
from a2a_inspect.widgets.frame_list import FrameList
from a2a_inspect.widgets.hex_view import HexView
from support_inspect import screen_lines, screen_text

SMALL, LARGE = (80, 24), (160, 50)
PATIENCE = 120.0
"""Seconds for each step; the machine may be busy."""


def all_handled(app: InspectApp) -> bool:
    """Return whether no key is queued, held back or being handled."""
    return app._exit or not (app._waiting_keys or app._key_widget)


@contextmanager
def typing_slowly() -> Iterator[None]:
    """Allow seconds between the two keys of `gg`, because the machine may be busy."""
    with patch("a2a_inspect.widgets.long_view._DOUBLE_PRESS_SECONDS", PATIENCE):
        yield


class Person:
    """A user of the screen."""

    def __init__(self, app: InspectApp, pilot: Pilot[int]) -> None:
        self.app = app
        self.pilot = pilot
        self._notes = [each.message for each in app._notifications]
        notify = app.notify

        def heard(message: str, **more: Any) -> None:
            self._notes.append(message)
            notify(message, **more)

        app.notify = heard  # type: ignore[method-assign]

    async def sees(self, *words: str) -> None:
        """Wait until all of these words are on the screen."""
        await self.until(lambda: all(word in screen_text(self.app) for word in words), words)

    async def reads(self, words: str) -> None:
        """Wait until these words are on the screen, wrapped in any way: paths are long on some
        machines."""
        wanted = "".join(words.split())
        await self.until(lambda: wanted in "".join(screen_text(self.app).split()), words)

    async def await_notice(self, words: str) -> None:
        """Wait for a notification with these words. On the screen it may be wrapped, and on a slow
        machine it may be closed before it is read."""
        await self.until(lambda: any(words in message for message in self._notes), words)

    async def until(self, true: Callable[[], bool], what: object = "") -> None:
        """Wait for a condition for at most PATIENCE."""
        end = time.monotonic() + PATIENCE
        while not true():
            assert time.monotonic() < end, f"{what} did not come:\n{screen_text(self.app)}"
            await self.pilot.pause(0.02)

    def misses(self, *words: str) -> bool:
        """Return whether none of these words is on the screen."""
        return not any(word in screen_text(self.app) for word in words)

    async def lists(self, *numbers: int) -> None:
        """Wait until the list shows exactly these exchanges."""
        rows = self.exchanges

        def shown() -> list[int]:
            return [
                row.exchange.id
                for index in range(rows.total)
                if (row := rows._pages.get_row(index)) is not None
            ]

        await self.until(lambda: shown() == list(numbers), numbers)

    async def types(self, *keys: str) -> None:
        """Press these keys, and wait until each has been handled.

        Textual's own wait ends early if the machine is busy with other work.
        """
        await self.pilot.press(*keys)
        await self.until(lambda: all_handled(self.app), keys)

    async def writes(self, text: str) -> None:
        """Enter text into the box at once: redrawing the screen for each key takes most of a test's
        time."""
        await self.until(lambda: isinstance(self.app.focused, Input), "a box")
        assert isinstance(self.app.focused, Input)
        self.app.focused.value = text
        await self.pilot.pause()

    @property
    def lines(self) -> list[str]:
        return screen_lines(self.app)

    @property
    def exchanges(self) -> ExchangeList:
        return self.app.screen.query_one(ExchangeList)

    @property
    def raw(self) -> HexView:
        return self.app.screen.query_one(HexView)

    @property
    def frames(self) -> FrameList:
        return self.app.screen.query_one(FrameList)


@asynccontextmanager
async def looking(path: Path, size: tuple[int, int] = LARGE) -> AsyncIterator[Person]:
    app = InspectApp(RecordingSource(path))
    with typing_slowly():
        async with app.run_test(size=size, notifications=True) as pilot:
            yield Person(app, pilot)
