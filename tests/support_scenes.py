"""Every screen of `a2a-inspect`, from the sample recordings: which keys lead there, and what is seen when it is."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

from textual.pilot import Pilot
from textual.widgets import Input
from textual.worker import WorkerState

from a2a_inspect.app import InspectApp
from a2a_inspect.source import Source
from a2a_proxy.recording.cassette import read_cassette
from support_inspect import screen_text
from support_picture import picture, runs_of

SAMPLES = Path(__file__).resolve().parents[1] / "recordings"
PICTURES = Path(__file__).resolve().parent / "inspect" / "pictures"
SIZES = {"small": (80, 24), "large": (160, 50)}
THEMES = ("night", "day")
PATIENCE = 60.0
"""Seconds."""


class Scene(NamedTuple):
    """A screen, and the way there from the one before."""

    name: str
    keys: tuple[str, ...]
    sees: tuple[str, ...]


class Walk(NamedTuple):
    """Screens one after another."""

    recording: str
    scenes: tuple[Scene, ...]
    beside: tuple[str, ...] = ()
    """Cassettes in the same folder."""


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
            Scene("note", ("escape", "semicolon"), ()),
            Scene("export", ("escape", "x"), ("JSON lines",)),
            Scene("keys", ("escape", "question_mark"), ("Everywhere",)),
            Scene("swimlane", ("escape", "s"), ("A2A-GEN-001", "healed by")),
            Scene("plots", ("escape", "L"), ()),
            Scene("replay", ("escape", "space"), ()),
        ),
    ),
    Walk(
        "lossy",
        (
            Scene("palette", ("ctrl+p", *"note"), ("Note", "write a note here")),
            Scene("compare", ("escape", "ctrl+p", *"compare", "enter"), ("Compare with", "generations.a2a.jsonl")),
            Scene("tree", ("escape", "t", *"jjjjjljl"), ("▼ task", "#9 GetTask")),
            Scene("marks", ("t", "g", "g", "m", *"jjjjjjj", "m"), ("*8",)),
            Scene("noting", ("semicolon", "4", "space", *"is", "space", *"lost"), ("4 is lost",)),
            Scene("noted", ("enter", "k", "b", "j"), ("note: 4 is lost", "◆")),
            Scene("nothing", ("slash", *"op:CancelTask", "enter"), ("nothing matches",)),
            Scene("found", ("escape", "slash", *"custard", "ctrl+n"), ("artifact",)),
            Scene("explain", ("escape", "slash", *"err", "enter", "colon", *"explain", "enter"), ("plan", "SEARCH")),
            Scene("saved", ("escape", "colon", *"save", "space", *"failed", "enter", "v"), ("failed  err",)),
            Scene("histogram", ("escape", "escape", "L", *["shift+right"] * 15, "z"), ("zoomed",)),
            Scene("jump", ("escape", "space", "at"), ("jump to a time",)),
        ),
        ("demo", "generations"),
    ),
    Walk("live-bidi", (Scene("live", ("g", "g", "j", "j", "s"), ("Swimlane",)),)),
    Walk("sdk-1.x-grpc", (Scene("difference", ("g", "g", *"jjjjjjjj", "D"), ("different: 10 differences",)),)),
)


class Stage:
    """An application on which scenes are played."""

    def __init__(self, app: InspectApp, pilot: Pilot[int]) -> None:
        self.app = app
        self._pilot = pilot

    async def play(self, scene: Scene) -> None:
        """Go there and wait until all of it stands still."""
        await self._until_still()
        for key in scene.keys:
            await self._pilot.press(key)
            await self._until_still()
        await self._until_still(*scene.sees)

    async def _until_still(self, *words: str) -> None:
        """Wait until these words are there, nothing works in the background and nothing changes any more."""
        end = time.monotonic() + PATIENCE
        before = None
        while True:
            assert time.monotonic() < end, f"{words} did not come, or never stood still:\n{screen_text(self.app)}"
            for each in self.app.screen.query(Input):
                each.cursor_blink = False
            await self._pilot.pause()
            now, text = runs_of(self.app), screen_text(self.app)
            if now == before and not self._busy() and all(word in text for word in words):
                return
            before = now

    def _busy(self) -> bool:
        """Something works for the screen in front; what lies behind may wait for it."""
        return any(
            each.state in (WorkerState.PENDING, WorkerState.RUNNING)
            and each.group != "poll"
            and each.node.screen is self.app.screen
            for each in self.app.workers
        )


def recording(walk: Walk, folder: Path) -> Path:
    """A sample as a database in an empty folder, and cassettes beside it."""
    path = folder / f"{walk.recording}.a2a.db"
    read_cassette(SAMPLES / f"{walk.recording}.a2a.jsonl", path)
    for day, name in enumerate(walk.beside, 1):
        copy = shutil.copy(SAMPLES / f"{name}.a2a.jsonl", folder)
        os.utime(copy, (day * 86_400, day * 86_400))
    return path


async def pictures(walk: Walk, size: str, theme: str, folder: Path) -> AsyncIterator[tuple[str, str, InspectApp]]:
    """The scenes one after another: the name of a picture, the picture, and the application that shows it."""
    app = InspectApp(Source(recording(walk, folder)), theme=theme)
    async with app.run_test(size=SIZES[size]) as pilot:
        stage = Stage(app, pilot)
        for scene in walk.scenes:
            await stage.play(scene)
            yield f"{scene.name}-{size}-{theme}.svg", picture(app), app
