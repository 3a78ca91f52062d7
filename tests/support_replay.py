"""Scripts for the player, and a client with a clock of its own."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Binding, Dialect, EventKind
from a2a_proxy.model.wire import Headers
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.replay.core.call_playback import CallPlayback
from a2a_proxy.replay.core.miss import Miss
from a2a_proxy.replay.core.options import ReplayOptions
from a2a_proxy.replay.core.player import Player
from a2a_proxy.replay.core.script import (
    LineKind,
    PlayerRequest,
    PlayerSend,
    RecordedCall,
    RecordedPush,
    ReplayScript,
    ScriptLine,
    ScriptSide,
)
from a2a_proxy.replay.load import load_script

SAMPLES = sorted(Path(__file__).parents[1].glob("recordings/*.a2a.jsonl"))
MS = 1_000_000
START = 1_700_000_000_000_000_000
"""Start of the recording, ns."""
TASK, CONTEXT = "11111111-aaaa-4aaa-8aaa-111111111111", "22222222-bbbb-4bbb-8bbb-222222222222"


@cache
def sample(name: str) -> ReplayScript:
    """Return the script of a sample recording."""
    with open_recording_or_cassette(
        next(path for path in SAMPLES if path.name == f"{name}.a2a.jsonl")
    ) as recording:
        return load_script(recording)


def message(text: str, identifier: str = "m-00000001", **members: Any) -> dict[str, Any]:
    """Return a request that sends a message."""
    return {
        "message": {
            "messageId": identifier,
            "role": "ROLE_USER",
            "parts": [{"text": text}],
            **members,
        }
    }


def task(
    state: TaskState = TaskState.WORKING, identifier: str = TASK, **members: Any
) -> dict[str, Any]:
    """Return a GetTask request."""
    return {
        "task": {
            "id": identifier,
            "contextId": CONTEXT,
            "status": {"state": f"TASK_STATE_{state.name}"},
            **members,
        }
    }


def status(state: TaskState, identifier: str = TASK, **members: Any) -> dict[str, Any]:
    """Return a status event."""
    told = {"state": f"TASK_STATE_{state.name}"}
    return {"statusUpdate": {"taskId": identifier, "contextId": CONTEXT, "status": told, **members}}


def artifact(text: str, *, append: bool = False, identifier: str = TASK) -> dict[str, Any]:
    """Return an artifact event with text."""
    made = {"artifactId": "a", "parts": [{"text": text}]}
    return {
        "artifactUpdate": {
            "taskId": identifier,
            "contextId": CONTEXT,
            "artifact": made,
            "append": append,
        }
    }


_KINDS = {
    "task": EventKind.TASK,
    "statusUpdate": EventKind.STATUS,
    "artifactUpdate": EventKind.ARTIFACT,
}


def call(
    number: int,
    operation: str,
    request: Any,
    *said: tuple[str, int, Any],
    began: int = 0,
    **members: Any,
) -> RecordedCall:
    """Return a recorded call. `said`: (`s` agent or `c` client, ms since its beginning, message or
    `end`, `reset`, `cut`)."""
    lines = [_line(f"#{number}", index, each) for index, each in enumerate(said, 1)]
    return RecordedCall(
        place=f"#{number}",
        operation=operation,
        binding=members.pop("binding", Binding.GRPC),
        dialect=members.pop("dialect", Dialect.V1_0),
        request=request,
        lines=tuple(lines),
        began=START + began * MS,
        **members,
    )


def _line(place: str, number: int, said: tuple[str, int, Any]) -> ScriptLine:
    side, at, value = said
    facts: dict[str, Any] = {"what": LineKind.MESSAGE, "value": value}
    if isinstance(value, str):
        facts = {"what": LineKind(value), "status": 0 if value == "end" else -1}
    elif value and side == "s":
        kind, inner = next(iter(value.items()))
        state = (
            (inner.get("status") or {})
            .get("state", "TASK_STATE_UNSPECIFIED")
            .removeprefix("TASK_STATE_")
        )
        facts |= {
            "event": _KINDS.get(kind, EventKind.NONE),
            "task": inner.get("taskId") or inner.get("id") or "",
            "state": TaskState[state].value,
            "generation": int(inner.get("generation", 0)),
            "raw": b"x" * 100,
        }
    return ScriptLine(
        number=number,
        side=ScriptSide.AGENT if side == "s" else ScriptSide.CLIENT,
        at=at * MS,
        place=f"{place}.{number}",
        **facts,
    )


def script(*calls: RecordedCall, pushes: tuple[RecordedPush, ...] = ()) -> ReplayScript:
    """Return a recording of these calls."""
    return ReplayScript(name="talk.a2a.db", calls=calls, pushes=pushes)


def again(recorded: RecordedCall, **changes: Any) -> PlayerRequest:
    """Return a recorded request with `changes`."""
    facts = {"value": recorded.request, "binding": recorded.binding, "dialect": recorded.dialect}
    return PlayerRequest(
        **{"operation": recorded.operation, "tenant": recorded.tenant, "headers": recorded.headers}
        | facts
        | changes
    )


class Stage:
    """A player and its time."""

    def __init__(self, of: ReplayScript, **options: Any) -> None:
        self.player = Player(of, ReplayOptions(keep_times=True, **options))
        self.now = START + 1_000_000 * MS

    def ask(self, operation: str, value: Any, headers: Headers = ()) -> CallPlayback:
        """Send a call that must be answered."""
        found = self.player.begin_call(
            PlayerRequest(operation=operation, value=value, headers=headers), self.now
        )
        assert isinstance(found, CallPlayback), found.full_text()
        return found

    def miss(self, operation: str, value: Any, **facts: Any) -> Miss:
        """Send a call that must not be answered."""
        found = self.player.begin_call(
            PlayerRequest(operation=operation, value=value, **facts), self.now
        )
        assert isinstance(found, Miss)
        return found

    def again(self, recorded: RecordedCall) -> CallPlayback:
        """Send a recorded call again."""
        found = self.player.begin_call(again(recorded), self.now)
        assert isinstance(found, CallPlayback), found.full_text()
        return found

    def run(self, play: CallPlayback, ms: int = 0) -> list[PlayerSend]:
        """Return all output within this many ms, with the clock set to the time of each item."""
        until = self.now + ms * MS
        sends = play.take_due(self.now)
        while play.wake_time is not None and play.wake_time <= until:
            self.now = max(self.now, play.wake_time)
            sends += play.take_due(self.now)
        self.now = until
        return sends

    def together(self, *plays: CallPlayback, ms: int = 0) -> list[list[str]]:
        """Return the output on each of several calls within this many ms, each read when it is due,
        as a server does."""
        until = self.now + ms * MS
        found: list[list[str]] = [said(play.take_due(self.now)) for play in plays]
        while True:
            awake = [
                (play.wake_time, number)
                for number, play in enumerate(plays)
                if play.wake_time is not None
            ]
            soon, number = min(awake, default=(until + 1, 0))
            if soon > until:
                self.now = until
                return found
            self.now = max(self.now, soon)
            found[number] += said(plays[number].take_due(self.now))


def said(sends: list[PlayerSend]) -> list[str]:
    """Return the output in short form: states, texts, ends."""
    return [_short(send) for send in sends]


def _short(send: PlayerSend) -> str:
    if send.what is not LineKind.MESSAGE:
        return str(send.what)
    inner = next(iter(send.value.values()))
    if "status" in inner:
        state = str(inner["status"]["state"]).removeprefix("TASK_STATE_").lower()
        return f"task {state}" if "task" in send.value else state
    return str(inner.get("artifact", inner)["parts"][0].get("text"))


def one(sends: list[PlayerSend]) -> Any:
    """Return the message of an answer that has only one."""
    messages = [send.value for send in sends if send.what is LineKind.MESSAGE]
    assert len(messages) == 1
    return messages[0]
