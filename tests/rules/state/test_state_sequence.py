"""The recorded states of a task: bounded, and unchanged after a restart."""

from __future__ import annotations

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Binding, EventKind, Frame, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.rules.define.conditions import FrameFlag
from a2a_proxy.rules.examples.conversation import json_text
from a2a_proxy.rules.examples.objects import Json, chunk, reply, snapshot, status
from a2a_proxy.rules.state.records import ExchangeRecord, TaskRecord
from a2a_proxy.rules.state.session_state import SessionState
from a2a_proxy.rules.state.state_sequence import MAX_ARTIFACTS, MAX_STATES
from support_wire import reload

WORKING, INPUT = int(TaskState.WORKING), int(TaskState.INPUT_REQUIRED)
AGENT = "http://localhost:8000"


class Course:
    """Streams of one task, frame by frame."""

    def __init__(self) -> None:
        self.world = SessionState()
        self.at = 1

    def opens(self, number: int) -> ExchangeRecord:
        """A subscription."""
        track = ExchangeRecord(number, 1, AGENT, Binding.JSONRPC, "SubscribeToTask", self.at)
        self.world.exchange_records[number] = track
        return track

    def shows(
        self,
        track: ExchangeRecord,
        value: Json,
        event: EventKind,
        state: int = 0,
        **members: str | bool,
    ) -> int:
        """One event on a stream; what is notable about it."""
        self.at += 1
        frame = Frame(
            1,
            track.id,
            1,
            Direction.TO_CLIENT,
            FrameKind.EVENT,
            self.at,
            self.at,
            0,
            0,
            payload=json_text({"jsonrpc": "2.0", "id": 1, "result": value}).encode(),
            schema="json",
            event=event,
            task_id="t1",
            context_id="c1",
            state=state,
            **members,  # type: ignore[arg-type]
        )
        flags, known = self.world.on_response(
            track, frame, self.world.task_record(track.agent, frame.task_id)
        )
        assert known is not None
        self.world.on_artifacts(track, frame, known)
        return flags

    def hides(self, track: ExchangeRecord) -> None:
        """One event that cannot be read."""
        self.at += 1
        frame = Frame(
            track.id,
            track.id,
            2,
            Direction.TO_CLIENT,
            FrameKind.UNDECODABLE,
            self.at,
            self.at,
            0,
            0,
        )
        self.world.on_response(track, frame, None)

    def state(self, track: ExchangeRecord, name: str) -> int:
        """A status update."""
        said = reply(taskId="t1")
        value = status(name, message=said)
        return self.shows(track, value, EventKind.STATUS, int(TaskState[name]), message_id="r1")

    @property
    def task(self) -> TaskRecord:
        """What is known."""
        return self.world.tasks[AGENT, "t1"]


def test_state_changes_beyond_the_bound_count_once() -> None:
    """Two streams in step, past the bound: each change is one, on the stream that shows it
    first."""
    course = Course()
    first, second = course.opens(1), course.opens(2)
    for track in (first, second):
        course.shows(track, snapshot("WORKING"), EventKind.TASK, WORKING)
    for turn in range(2 * MAX_STATES):
        name = "WORKING" if turn % 2 else "INPUT_REQUIRED"
        assert course.state(first, name) & FrameFlag.CHANGED
        assert not course.state(second, name) & FrameFlag.CHANGED
    assert len(course.task.states) == MAX_STATES


def test_artifacts_of_a_task_are_bounded() -> None:
    """An agent may not fill the memory."""
    course = Course()
    track = course.opens(1)
    for number in range(MAX_ARTIFACTS + 5):
        name = f"a{number}"
        course.shows(track, chunk("x", id=name), EventKind.ARTIFACT, artifact_id=name)
    assert len(course.task.artifacts) == MAX_ARTIFACTS


def test_messages_of_a_task_are_bounded() -> None:
    """The latest are known again."""
    course = Course()
    track = course.opens(1)
    for number in range(50):
        value = status("WORKING", message=reply(f"step {number}", id=f"r{number}"))
        course.shows(track, value, EventKind.STATUS, WORKING, message_id=f"r{number}")
    assert course.task.status_messages is not None
    assert len(course.task.status_messages) < 20
    again = status("WORKING", message=reply("another", id="r49"))
    assert (
        course.shows(track, again, EventKind.STATUS, WORKING, message_id="r49")
        & FrameFlag.REUSED_MESSAGE_ID
    )


def test_state_survives_a_restart() -> None:
    """Content half told, messages and places on streams."""
    course = Course()
    track = course.opens(1)
    course.state(track, "WORKING")
    course.shows(track, chunk("half "), EventKind.ARTIFACT, artifact_id="a1")
    course.world = SessionState.restore(reload(course.world.save()))
    track = course.world.exchange_records[1]
    assert not course.state(track, "WORKING") & (FrameFlag.CHANGED | FrameFlag.REUSED_MESSAGE_ID)
    course.shows(
        track, chunk("done", append=True), EventKind.ARTIFACT, artifact_id="a1", append=True
    )
    found = course.task.artifacts["a1"]
    assert found.is_fully_recorded
    assert found.chunks == 2
    assert found.content.length == len("half done")


def test_an_unreadable_frame_makes_only_the_artifacts_of_its_stream_doubtful() -> None:
    course = Course()
    first, second = course.opens(1), course.opens(2)
    for track, name in ((first, "a1"), (second, "a2")):
        course.shows(track, chunk("x", id=name), EventKind.ARTIFACT, artifact_id=name)
    course.hides(first)
    assert [course.task.artifacts[name].is_fully_recorded for name in ("a1", "a2")] == [False, True]


def test_an_event_without_number_does_not_undo_that_a_task_is_numbered() -> None:
    course = Course()
    track = course.opens(1)
    for generation in (3, 0):
        frame = Frame(
            1, 1, 1, Direction.TO_CLIENT, FrameKind.EVENT, 1, 1, 0, 0, event=EventKind.STATUS
        )
        frame = msgspec.structs.replace(frame, generation=generation)
        course.state(track, "WORKING")
        course.world.on_generation(track, frame, course.task)
    assert course.task.numbered == "yes"
