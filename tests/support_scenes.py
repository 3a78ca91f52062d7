"""Every screen of `a2a-inspect` from the sample recordings: the keys that open it, and the text
that shows it is open."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from textual.pilot import Pilot
from textual.widgets import Input
from textual.worker import WorkerState

from a2a_inspect.app import InspectApp
from a2a_inspect.data.source import RecordingSource
from a2a_inspect.screens.main import MainScreen
from a2a_inspect.screens.replay_screen import ReplayScreen
from a2a_inspect.widgets.long_view import LongView
from a2a_proxy.recording.cassette.file import read_cassette
from support_inspect import screen_text
from support_picture import picture, runs_of
from support_screen import PATIENCE, all_handled, typing_slowly

SAMPLES = Path(__file__).resolve().parents[1] / "recordings"
PICTURES = Path(__file__).resolve().parent / "inspect" / "pictures"
SIZES = {"small": (80, 24), "large": (160, 50), "medium": (120, 40), "wide": (200, 50)}
THEMES = ("night", "day")


class Scene(NamedTuple):
    """A screen, and the keys that open it from the previous one."""

    name: str
    keys: tuple[str, ...]
    sees: tuple[str, ...]


class Walk(NamedTuple):
    """A sequence of screens."""

    recording: str
    scenes: tuple[Scene, ...]
    beside: tuple[str, ...] = ()
    """Cassettes in the same folder."""
    sizes: tuple[str, ...] = ("small", "large")


WALKS = (
    Walk(
        "lossy",
        (
            Scene("exchanges", (), ("SendStreamingMessage", "TASK_NOT_FOUND")),
            Scene("filter", ("/", *"sev:er"), ("sev:er",)),
            Scene("views", ("escape", "v"), ("No views yet",)),
            Scene("command", ("escape", "colon"), ("explain",)),
            Scene("frames", ("escape", "g", "g", "enter", "e"), ("end of agent's stream",)),
            Scene("decoded", ("enter", "1"), ("[1 Decoded]",)),
            Scene("raw", ("2",), ("00000000",)),
            Scene("headers", ("3",), ("status 200",)),
            Scene("findings", ("4",), ("A2A-GEN-001", "Generation gap")),
            Scene("artifact", ("5",), ("custard",)),
            Scene("trace", ("6",), ("[6 Trace]",)),
            Scene("facts", ("7",), ("[7 Facts]",)),
            Scene("copy", ("y",), ("JSON", "pytest")),
            Scene("note", ("escape", "semicolon"), ("Enter saves",)),
            Scene("export", ("escape", "x"), ("JSON lines",)),
            Scene("send", ("escape", "S"), ("send it as it was to", "esc sends nothing")),
            Scene("keys", ("escape", "question_mark"), ("All screens",)),
            Scene("swimlane", ("escape", "s"), ("A2A-GEN-001", "healed by")),
            Scene("plots", ("escape", "L"), ("43 frames", "BYTES")),
            Scene("replay", ("escape", "space"), ("paused", "frame 30 of 38")),
        ),
    ),
    Walk(
        "lossy",
        (
            Scene("palette", ("ctrl+p", *"note"), ("Note", "write a note on the row")),
            Scene(
                "compare",
                ("escape", "ctrl+p", *"compare", "enter"),
                ("Compare with", "generations.a2a.jsonl"),
            ),
            Scene("tree", ("escape", "t", *"jjjjjljl"), ("▼ task", "#9 GetTask")),
            Scene("marks", ("t", "g", "g", "m", *"jjjjjjj", "m"), ("*8",)),
            Scene("noting", ("semicolon", "4", "space", *"is", "space", *"lost"), ("4 is lost",)),
            Scene("noted", ("enter", "k", "b", "j"), ("note: 4 is lost", "◆")),
            Scene("nothing", ("slash", *"op:CancelTask", "enter"), ("nothing matches",)),
            Scene("found", ("escape", "slash", *"custard", "ctrl+n"), ("artifact",)),
            Scene(
                "explain",
                ("escape", "slash", *"err", "enter", "colon", *"explain", "enter"),
                ("plan", "SEARCH"),
            ),
            Scene(
                "saved",
                ("escape", "colon", *"save", "space", *"failed", "enter", "v"),
                ("failed  err",),
            ),
            Scene("histogram", ("escape", "escape", "L", *["shift+right"] * 15, "z"), ("zoomed",)),
            Scene("jump", ("escape", "space", "at"), ("jump to a time",)),
        ),
        ("demo", "generations"),
    ),
    Walk(
        "sdk-1.x-jsonrpc",
        (
            Scene("main", (), ("SendStreamingMessage", "following")),
            Scene("rules", ("r", *"jj", "enter", "j"), ("by rule", "▼")),
            Scene("edit", ("escape", "k", "k", "k", "k", "k", "o", "i"), ("only task", "valid")),
            Scene("columns", ("escape", "c"), ("titles", "JSON paths")),
        ),
        sizes=("small", "medium", "wide"),
    ),
    Walk("live-bidi", (Scene("live", ("g", "g", "j", "j", "s"), ("Swimlane",)),)),
    Walk(
        "sdk-1.x-grpc",
        (Scene("difference", ("g", "g", *"jjjjjjjj", "D"), ("different: 10 differences",)),),
    ),
)


class Stage:
    """An application in which scenes are opened."""

    def __init__(self, app: InspectApp, pilot: Pilot[int]) -> None:
        self.app = app
        self._pilot = pilot

    async def play(self, scene: Scene) -> None:
        """Open a scene and wait until nothing changes."""
        for key in scene.keys:
            await self._pilot.press(key)
            await self._until_done()
        await self._until_still(*scene.sees)

    async def _until_done(self) -> None:
        """Wait until no background work is left, because the next key applies to the result of the
        last one."""
        end = time.monotonic() + PATIENCE
        await self._pilot.pause()
        while self._busy():
            assert time.monotonic() < end, f"it came to no end:\n{screen_text(self.app)}"
            await self._pilot.pause()

    async def _until_still(self, *words: str) -> None:
        """Wait until these words are shown, no background work is left and nothing changes.

        The state must be the same three times in a row, because finished work may be about to start
        more.
        """
        end = time.monotonic() + PATIENCE
        before, quiet = None, 0
        while True:
            assert time.monotonic() < end, (
                f"{words} did not come, or never stood still:\n{screen_text(self.app)}"
            )
            for each in self.app.screen.query(Input):
                each.cursor_blink = False
            await self._pilot.pause()
            now, text = runs_of(self.app), screen_text(self.app)
            quiet = quiet + 1 if not self._busy() and now == before else 0
            if quiet >= 2 and all(word in text for word in words):
                return
            before = now

    def _busy(self) -> bool:
        """Return whether a key is not handled yet, the visible screen has work to do, or a screen
        is about to poll the recording, which happens ten times a second. Other work behind the
        visible screen is ignored."""
        return (
            not all_handled(self.app)
            or any(
                each.state in (WorkerState.PENDING, WorkerState.RUNNING)
                and each.group != "poll"
                and self.app.screen in each.node.ancestors_with_self
                for each in self.app.workers
            )
            or any(not each.is_settled for each in self.app.screen.query(LongView))
            or any(
                isinstance(each, MainScreen) and is_behind(each) for each in self.app.screen_stack
            )
        )


def is_behind(screen: MainScreen) -> bool:
    """Return whether the screen is not up to date: its tree, the result of a filter, or the frames
    at the time of a replay."""
    searches = (screen.filter.search, screen.filter.match_search)
    typed = (timer._task for timer in screen.widgets.filter_box._delay_timers)
    return (
        not screen.state.has_answer
        or (screen.branches.is_stale and screen.panes.is_tree_shown())
        or any(task is not None and not task.done() for task in typed)
        or any(search is not None and not search.is_done for search in searches)
        or (isinstance(screen, ReplayScreen) and not shows_its_time(screen))
    )


def shows_its_time(replay: ReplayScreen) -> bool:
    """Return whether the clock is stopped and the frames at its time are shown."""
    source = replay._replay_source
    return (
        bool(replay._clock_bar.clock.last)
        and source._reported_until == source.until
        and not replay.reader.is_polling
    )


def recording(walk: Walk, folder: Path) -> Path:
    """Convert a sample to a database in an empty folder, with cassettes beside it."""
    path = folder / f"{walk.recording}.a2a.db"
    read_cassette(SAMPLES / f"{walk.recording}.a2a.jsonl", path)
    for day, name in enumerate(walk.beside, 1):
        copy = shutil.copy(SAMPLES / f"{name}.a2a.jsonl", folder)
        os.utime(copy, (day * 86_400, day * 86_400))
    return path


async def pictures(
    walk: Walk, size: str, theme: str, folder: Path
) -> AsyncIterator[tuple[str, str, InspectApp]]:
    """Yield the scenes one after another: the name of the picture, the picture, and the
    application."""
    app = InspectApp(RecordingSource(recording(walk, folder)), theme=theme)
    with typing_slowly(), patch("a2a_inspect.dialogs.filter_box._APPLY_DELAY", 0.001):
        async with app.run_test(size=SIZES[size]) as pilot:
            stage = Stage(app, pilot)
            for scene in walk.scenes:
                await stage.play(scene)
                yield f"{scene.name}-{size}-{theme}.svg", picture(app), app
