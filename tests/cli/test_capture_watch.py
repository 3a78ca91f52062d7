"""Console messages about the state of the capture while the proxy runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from a2a_proxy.capture.journal import JournalStats
from a2a_proxy.capture.record_format import START_POSITION
from a2a_proxy.cli.capture_watch import CaptureState, CaptureWatch
from a2a_proxy.cli.console import JsonConsole
from a2a_proxy.cli.sizes import parse_size
from a2a_proxy.model.errors import UserError

FINE = JournalStats(appended=0, lost=0, segments=1, position=(1, 24), queued=0)
MEBI = 1024 * 1024


class Notes(JsonConsole):
    """Keeps what is said."""

    def __init__(self) -> None:
        super().__init__(None, quiet=False)
        self.notes: list[tuple[str, str, bool]] = []

    def show_note(self, message: str, hint: str = "", *, loud: bool = True) -> None:
        self.notes.append((message, hint, loud))


class Scene:
    """What a watch sees, turned by hand."""

    def __init__(self) -> None:
        self.stats, self.recorded, self.now = FINE, FINE.position, 0.0
        self.mended: bool | OSError = False
        self.notes = Notes()
        self.watch = CaptureWatch(
            CaptureState(Path("/state/j"), lambda: self.stats, lambda: self.recorded, self._mend),
            self.notes,
            lambda: self.now,
        )

    def _mend(self) -> bool:
        if isinstance(self.mended, OSError):
            raise self.mended
        return self.mended

    def look(self, **stats: Any) -> list[tuple[str, str, bool]]:
        """What is said at the next look."""
        self.stats = msgspec.structs.replace(self.stats, **stats)
        self.notes.notes.clear()
        self.now += 1
        self.watch.check_capture()
        return list(self.notes.notes)


def test_losses_and_their_end_are_reported_once() -> None:
    """Why, what to do, and that it is over."""
    scene = Scene()
    assert scene.look() == []
    assert scene.look(lost=5000, reason="no space left on device") == [
        (
            (
                "the capture is incomplete, traffic is still relayed: "
                "the journal cannot be written: "
                "no space left on device; 4.9 KiB are missing so far from /state/j"
            ),
            "free some space there, or keep the state elsewhere: export A2A_PROXY_STATE=DIR",
            True,
        )
    ]
    assert scene.look(lost=9000) == []
    assert scene.look() == []
    assert scene.look(reason="") == [
        ("new connections are captured again; 8.8 KiB are missing so far", "", False)
    ]
    assert scene.look() == []
    (note,) = scene.look(lost=10_000, reason="it has reached its limit of 7 bytes")
    assert note[1] == "allow more: --journal-max SIZE"


def test_a_full_disk_is_not_reported_as_slow() -> None:
    """Also if it accepts small records again by the time of the check."""
    (note,) = Scene().look(lost=70_000, lost_reason="disk quota exceeded")
    assert (
        "the journal cannot be written: disk quota exceeded; "
        "68.4 KiB are missing so far from /state/j" in note[0]
    )
    assert "free some space there" in note[1]
    (note,) = Scene().look(lost=1)
    assert "the journal cannot be written: the disk is too slow; 1 B are missing" in note[0]
    assert note[1] == "keep the state on a faster disk: export A2A_PROXY_STATE=DIR"


def test_a_recording_that_is_behind_is_reported_at_each_doubling_until_it_has_caught_up() -> None:
    """In the time for which the oldest bytes have been waiting: within a second, because they were
    written at any time between two checks."""
    scene, notes = Scene(), []
    for second in range(1, 28):
        if second == 26:
            scene.recorded = (1, 24_000)
        notes += [
            (second, note[0]) for note in scene.look(position=(1, 24 + 1000 * min(second, 20)))
        ]
    kept = "the journal on disk keeps everything meanwhile"
    assert notes == [
        (6, f"the recording is 6 s behind; {kept}"),  # between 5 and 6
        (12, f"the recording is 12 s behind; {kept}"),
        (24, f"the recording is 24 s behind; {kept}"),
        (26, "the recording has caught up"),
    ]


def test_a_recorder_that_keeps_up_is_not_reported() -> None:
    scene = Scene()
    for second in range(1, 20):
        scene.recorded = (1, 24 + 1000 * (second - 3))
        assert scene.look(position=(1, 24 + 1000 * second)) == []


def test_an_idle_proxy_is_not_behind() -> None:
    """Before the first record there is no progress; after a pause the journal continues in a new,
    empty segment."""
    scene = Scene()
    scene.recorded = START_POSITION
    assert [scene.look() for _ in range(20)] == [[]] * 20
    scene.recorded = (1, 500)
    assert scene.look(position=(1, 500)) == []
    assert [scene.look(position=(2, 24)) for _ in range(20)] == [[]] * 20


def test_a_deleted_journal_folder_is_reported_once() -> None:
    """Made again, or not to be made: once."""
    scene = Scene()
    scene.mended = True
    assert "was deleted and has been created again" in scene.look()[0][0]
    scene.mended = OSError(30, "Read-only file system", "/state")
    assert [note[0] for note in scene.look()] == [
        "the journal's folder is gone and cannot be created again: /state: read-only file system"
    ]
    assert scene.look() == []


@pytest.mark.parametrize(
    ("text", "size"),
    [("65536", 65536), ("4GiB", 4 << 30), ("500M", 500 << 20), ("1.5 kb", 1536), ("2T", 2 << 40)],
)
def test_sizes_are_parsed(text: str, size: int) -> None:
    """As people write them."""
    assert parse_size("--journal-max", text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "4 apples", "GiB", "1e9", "٤"])
def test_an_invalid_size_is_refused_with_an_example(text: str) -> None:
    """The error has an example."""
    with pytest.raises(UserError) as caught:
        parse_size("--journal-max", text)
    assert caught.value.hint == "for example: --journal-max 4GiB"


@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        ("too many open files", "raise the limit of open files: ulimit -n 65536"),
        ("file too large", "raise the limit of file sizes: ulimit -f unlimited"),
        (
            "no space left on device",
            "free some space there, or keep the state elsewhere: export A2A_PROXY_STATE=DIR",
        ),
    ],
)
def test_the_hint_of_a_loss_names_the_limit(reason: str, hint: str) -> None:
    assert [note[1] for note in Scene().look(lost=1, reason=reason)] == [hint]
