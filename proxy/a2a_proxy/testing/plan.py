"""What is done for a test, by its record mode: a table. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from a2a_proxy.testing.settings import PluginSettings


class CassetteWrite(Enum):
    """What becomes of the cassette where the test passes."""

    NOT = "not"
    REPLACE = "replace"
    APPEND = "append"
    """What the live agent answered comes behind what was there."""
    ASIDE = "aside"
    """The cassette stays as it is; what the live agent answered is kept as a recording, and told at the end."""


class CannotPlay(Exception):
    """The test cannot run like this: the text says why, and what to type."""


@dataclass(frozen=True)
class RecordPlan:
    """Who answers, and what is kept."""

    replay: bool
    """The cassettes answer."""
    live: bool
    """The live agent answers; with `replay`, what the cassettes do not."""
    write: CassetteWrite = CassetteWrite.NOT
    compare: bool = False
    """What passed must be what the cassette has."""
    warning: str = ""


_REPLAY_PLAN = RecordPlan(replay=True, live=False)
_RECORD_PLAN = RecordPlan(replay=False, live=True, write=CassetteWrite.REPLACE)
_PLANS_BY_MODE: dict[str, tuple[RecordPlan | None, RecordPlan | None]] = {
    "none": (_REPLAY_PLAN, None),
    "once": (_REPLAY_PLAN, _RECORD_PLAN),
    "new_episodes": (RecordPlan(replay=True, live=True, write=CassetteWrite.APPEND), _RECORD_PLAN),
    "rewrite": (_RECORD_PLAN, _RECORD_PLAN),
    "verify": (RecordPlan(replay=False, live=True, compare=True), None),
    "spy": (
        RecordPlan(replay=True, live=True, write=CassetteWrite.ASIDE),
        RecordPlan(replay=False, live=True, write=CassetteWrite.ASIDE),
    ),
}
"""Record mode -> what is done where the cassette is there, and where it is not; None: the test cannot run."""


def make_plan(settings: PluginSettings, cassette: str, *, exists: bool, too_old: str) -> RecordPlan:
    """What is done. `too_old`: in words how old the cassette is, where that is too old.

    Raises CannotPlay.
    """
    mode = settings.record_mode
    found = _PLANS_BY_MODE[mode][0 if exists else 1]
    if found is None:
        raise CannotPlay(
            f"there is no cassette {cassette}\n"
            "hint: record it from a live agent: pytest --a2a-record-mode=once --a2a-upstream=http://HOST:PORT"
        )
    if not (too_old and found.replay):
        return found
    if settings.on_expiry == "fail":
        raise CannotPlay(f"{too_old}\nhint: record it again: pytest --a2a-record-mode=rewrite --a2a-upstream=URL")
    if settings.on_expiry == "rerecord" and mode in ("once", "new_episodes"):
        return _RECORD_PLAN
    return replace(found, warning=f"{too_old}: record it again with --a2a-record-mode=rewrite")
