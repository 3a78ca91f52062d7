"""Table of the record modes: what is done for a test. Performs no I/O."""

from dataclasses import dataclass, replace
from enum import Enum

from a2a_proxy.protocol.text import shell_line
from a2a_proxy.testing.settings import PluginSettings


class CassetteWrite(Enum):
    """What happens to the cassette if the test passes."""

    NOT = "not"
    REPLACE = "replace"
    APPEND = "append"
    """Append the calls that the live agent answered to the cassette."""
    ASIDE = "aside"
    """Leave the cassette unchanged; the calls that the live agent answered are kept as a recording
    and reported at the end."""


class CannotPlay(Exception):
    """The test cannot run with these settings: the message says why, and what to do."""


@dataclass(frozen=True)
class RecordPlan:
    """Who answers, and what is kept."""

    replay: bool
    """Whether the cassettes answer."""
    live: bool
    """Whether the live agent answers; with `replay`, only the calls that the cassettes do not
    answer."""
    write: CassetteWrite = CassetteWrite.NOT
    compare: bool = False
    """Whether the traffic must equal the cassette."""
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
"""For each record mode, the plan if the cassette exists and the plan if it does not; None: the test
cannot run."""


def make_plan(settings: PluginSettings, cassette: str, *, exists: bool, too_old: str) -> RecordPlan:
    """Return the plan. `too_old`: the age of the cassette in words, if it is too old.

    Raises CannotPlay.
    """
    mode = settings.record_mode
    found = _PLANS_BY_MODE[mode][0 if exists else 1]
    if found is None:
        raise CannotPlay(
            f"the cassette {cassette} does not exist\n"
            "hint: record it from a live agent: pytest --a2a-record-mode=once "
            "--a2a-upstream=http://HOST:PORT\n"
            f"hint: or make it from a recording: a2a-inspect export RECORDING -o "
            f"{shell_line(cassette)}"
        )
    if not (too_old and found.replay):
        return found
    if settings.on_expiry == "fail":
        raise CannotPlay(
            f"{too_old}\nhint: record it again: pytest --a2a-record-mode=rewrite --a2a-upstream=URL"
        )
    if settings.on_expiry == "rerecord" and mode in ("once", "new_episodes"):
        return _RECORD_PLAN
    return replace(found, warning=f"{too_old}: record it again with --a2a-record-mode=rewrite")
