from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from a2a_proxy.model.values import EventKind, Frame, MissedGenerations, MissedReason, Support, Task
from a2a_proxy.model.wire import ConnectionFacts
from a2a_proxy.protocol import task as protocol_task
from a2a_proxy.protocol.session_facts import SessionContext
from a2a_proxy.protocol.task import TaskTracker
from support_conversation import Grpc, Http, Player, Script
from support_messages import artifact, ask, status, task, v1


class Session:
    """Several connections with one tracker."""

    def __init__(self, limit: int = 100_000, done: int = 2000) -> None:
        self.shared = SessionContext()
        self.tracker = TaskTracker(limit, done)
        self.at = 1000
        self.connections = 0

    def connect(self, upstream: str = "agent:8000") -> Player:
        self.connections += 1
        return Player(
            self.shared,
            ConnectionFacts(client="c:1", listen="l:1", upstream=upstream),
            self.connections,
        )

    def run(self, player: Player, script: Script, count: int | None = None) -> None:
        """Play the script's next steps."""
        steps = script.steps[:count]
        del script.steps[:count]
        for step in steps:
            self.at += 1
            before = len(player.out)
            player.step(*step, self.at)
            for frame in player.out[before:]:
                assert isinstance(frame, Frame)
                if frame.exchange:
                    exchange = player.conversation.find_exchange(frame.exchange)
                    assert exchange is not None
                    self.tracker.apply_frame(frame, exchange)

    def task(self) -> Task:
        (only,) = self.tracker.pop_changed_tasks()
        return only


def stream(*events: dict[str, Any], **asked: Any) -> Http:
    script = Http().call("SendStreamingMessage", ask(**asked)).stream()
    for event in events:
        script.rpc_event(event)
    return script


def states(task: Task) -> list[int]:
    return [state for _, state in task.states]


def test_a_stream_creates_a_task_record() -> None:
    """A stream makes the task: states with their times, context, artifact in numbers, messages of
    both sides."""
    session = Session()
    chunks = [artifact("one"), artifact("größe", append=True, lastChunk=True)]
    session.run(
        session.connect(),
        stream({"task": task()}, status("WORKING", "on it"), *chunks, status("COMPLETED")).done(),
    )
    made = session.task()

    assert (made.agent, made.task_id, made.context_id, made.state) == ("agent:8000", "t1", "c1", 3)
    assert made.states == ((1003, 1), (1004, 2), (1007, 3))
    (only,) = made.artifacts
    assert (only.artifact_id, only.name, only.chunks, only.parts, only.size, only.complete) == (
        "a1",
        "report",
        2,
        2,
        10,
        True,
    )
    assert (made.messages, made.exchanges, made.first, made.last) == (2, (1,), 1003, 1007)


def test_joined_over_bindings() -> None:
    """JSON-RPC, REST and gRPC calls about one task are one task."""
    session = Session()
    session.run(
        session.connect(), stream({"task": task()}, status("INPUT_REQUIRED", "which?")).done()
    )
    session.run(
        session.connect(),
        Http()
        .request("POST /message:send", ask("red", taskId="t1"))
        .answer({"task": task("WORKING")}),
    )
    get = (
        Grpc()
        .open("/lf.a2a.v1.A2AService/GetTask")
        .send(v1("GetTaskRequest", {"id": "t1"}))
        .respond()
    )
    session.run(session.connect(), get.give(v1("Task", task("COMPLETED"))).trailers())
    made = session.task()

    assert states(made) == [1, 6, 2, 3]
    assert (made.exchanges, made.messages) == ((1, 2, 3), 3)


def test_an_event_on_two_streams_counts_once() -> None:
    """Events go to every stream of a task: states, chunks and messages are counted once (A2A 1.0
    section 3.5.2)."""
    session = Session()
    first, second = session.connect(), session.connect()
    one = stream(
        {"task": task()},
        status("WORKING", "on it"),
        artifact("x"),
        artifact("y", append=True),
        status("COMPLETED", "done"),
    )
    two = Http().call("SubscribeToTask", {"id": "t1"}).stream()
    for event in (
        {"task": task()},
        status("WORKING", "on it"),
        artifact("x"),
        artifact("y", append=True),
        status("COMPLETED", "done"),
    ):
        two.rpc_event(event)
    session.run(first, one, 3)
    session.run(second, two, 3)
    session.run(first, one)
    session.run(second, two)
    made = session.task()

    assert states(made) == [1, 2, 3]
    assert (made.artifacts[0].chunks, made.artifacts[0].parts, made.messages) == (2, 2, 3)


def test_equal_chunks_on_one_stream_count_twice() -> None:
    """Two equal chunks of one stream are two chunks, also where another stream repeats both."""
    session = Session()
    for _ in range(2):
        session.run(session.connect(), stream(artifact("x"), artifact("x", append=True)))

    assert session.task().artifacts[0].chunks == 2


def test_chunks_beyond_those_that_are_remembered_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol_task, "MAX_KNOWN_CHUNKS", 2)
    session = Session()
    session.run(
        session.connect(), stream(*(artifact(f"x{number}", append=True) for number in range(9)))
    )

    assert session.task().artifacts[0].chunks == 9


def test_a_repeated_state_after_an_interruption_is_a_change() -> None:
    """A follow-up that works again is a change; a slow poll of the state before is not."""
    session = Session()
    poll = Http().call("GetTask", {"id": "t1"})
    poller = session.connect()
    session.run(session.connect(), stream({"task": task("WORKING")}))
    session.run(poller, poll)
    session.run(session.connect(), stream(status("INPUT_REQUIRED")))
    session.run(session.connect(), stream(status("WORKING"), taskId="t1"))
    session.run(poller, Http().result(task("INPUT_REQUIRED")))

    assert states(session.task()) == [2, 6, 2]


def test_context_learned_later() -> None:
    """The vendor dialect tells the context on the last frame only."""
    session = Session()
    update = {"id": "t1", "status": {"state": "working"}, "final": False}
    session.run(
        session.connect(),
        Http()
        .call("message/stream", ask())
        .stream()
        .rpc_event(update)
        .rpc_event({**update, "contextId": "c9"}),
    )

    assert session.task().context_id == "c9"


def test_context_of_the_call() -> None:
    """0.1 names the session in the call, its stream does not repeat it."""
    session = Session()
    asked = {"id": "t1", "sessionId": "s1", "message": {"role": "user", "parts": []}}
    script = (
        Http()
        .call("tasks/sendSubscribe", asked)
        .stream()
        .rpc_event({"id": "t1", "status": {"state": "working"}})
    )
    session.run(session.connect(), script)

    assert session.task().context_id == "s1"


def test_generations() -> None:
    """What was told, and what a stream left out; that comes from another stream for a part,
    later."""
    session = Session()
    session.run(
        session.connect(),
        stream(status(generation="3"), status(generation="4"), status(generation="8")),
    )
    assert (
        session.tracker.pop_changed_tasks()[0].generation,
        session.tracker.pop_changed_tasks(),
    ) == (8, [])
    session.run(session.connect(), stream(status(generation="6")))
    made = session.task()

    assert (made.generation, made.seen, made.support) == (8, ((3, 4), (6, 6), (8, 8)), Support.YES)
    assert made.missed == (MissedGenerations(5, 7, 1005, 1),)
    assert session.tracker.pop_healed_gaps() == []

    session.run(
        session.connect(), Http().call("GetTask", {"id": "t1"}).result(task(generation="8"))
    )
    healed = MissedGenerations(5, 7, 1005, 1, healed=session.at, by=3, generation=8)
    assert session.task().missed == (healed,)
    assert session.tracker.pop_healed_gaps() == [("t1", healed)]
    assert session.tracker.pop_healed_gaps() == []


def test_requests_create_no_task() -> None:
    """A call with an unknown task id creates no record."""
    session = Session()
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "no"}}
    session.run(session.connect(), Http().call("GetTask", {"id": "x"}).answer(error))

    assert session.tracker.pop_changed_tasks() == []


def test_requests_of_a_known_task_count_at_once() -> None:
    """A client's request updates its task before the agent answers: exchange, message, time, once
    per exchange."""
    session = Session()
    session.run(session.connect(), stream({"task": task()}).done())
    before = session.task()
    player, script = session.connect(), stream(status(), messageId="m2", taskId="t1")
    session.run(player, script, 1)
    asked = session.task()
    session.run(player, script)

    assert (before.messages, before.exchanges) == (1, (1,))
    assert (asked.messages, asked.exchanges, asked.last) == (2, (1, 2), session.at - 2)
    assert (asked.states, asked.context_id) == (before.states, before.context_id)
    assert session.task().messages == 2


def test_messages_without_an_id() -> None:
    """0.1 messages have no id, so each of the client's counts, also one with the text of an earlier
    one."""
    session = Session()
    player = session.connect()
    asked = {
        "id": "t1",
        "sessionId": "s1",
        "message": {"role": "user", "parts": [{"type": "text", "text": "hi"}]},
    }
    for expected in (1, 2, 3):
        session.run(
            player,
            Http().call("tasks/send", asked).result({"id": "t1", "status": {"state": "working"}}),
        )
        assert session.task().messages == expected


def test_tasks_are_keyed_by_agent() -> None:
    """Tasks are keyed by agent; the interfaces of one card are one agent (Q-25)."""
    session = Session()
    interfaces = [{"url": "http://localhost:8000/rpc"}, {"url": "127.0.0.1:8001"}]
    card = {"name": "a", "skills": [], "supportedInterfaces": interfaces}
    session.run(
        session.connect("localhost:8000"),
        Http().request("GET /.well-known/agent-card.json").answer(card),
    )
    for upstream in ("localhost:8000", "http://localhost:8001", "other:8000"):
        session.run(session.connect(upstream), stream({"task": task()}))

    assert sorted(each.agent for each in session.tracker.pop_changed_tasks()) == [
        "localhost:8000",
        "other:8000",
    ]


def test_webhook_joins_its_task() -> None:
    """A push belongs to the agent that has the task, not to the receiver's address."""
    session = Session()
    session.run(session.connect(), stream({"task": task()}))
    session.run(
        session.connect("receiver:7000"), Http().request("POST /hook", status("COMPLETED")).answer()
    )
    made = session.task()

    assert (made.agent, states(made), made.exchanges) == ("agent:8000", [1, 3], (1, 2))


def test_listings() -> None:
    """The tasks in a list are known, by every binding."""
    session = Session()
    listing = {"tasks": [task("WORKING"), {**task("FAILED"), "id": "t2"}]}
    session.run(session.connect(), Http().request("GET /tasks").answer(listing))
    script = (
        Grpc()
        .open("/lf.a2a.v1.A2AService/ListTasks")
        .send(b"")
        .respond()
        .give(v1("ListTasksResponse", listing))
        .trailers()
    )
    session.run(session.connect(), script)
    session.run(session.connect(), Http().call("ListTasks", {}).result(listing))

    assert [
        (each.task_id, each.state, each.exchanges) for each in session.tracker.pop_changed_tasks()
    ] == [
        ("t1", 2, (1, 2, 3)),
        ("t2", 4, (1, 2, 3)),
    ]


def test_reload() -> None:
    """Tasks are reloaded from the tables of a recording and continue."""
    session = Session()
    session.run(session.connect(), stream({"task": task()}, artifact("x"), status(generation="2")))
    kept = session.task()
    again = Session()
    again.tracker.load([kept])
    assert again.tracker.pop_changed_tasks() == []
    again.shared, again.at = session.shared, 5000
    again.run(again.connect(), stream(artifact("y", append=True, generation="4"), taskId="t1"))
    made = again.task()

    assert (made.states, made.first, made.exchanges) == (kept.states, kept.first, (1, 2))
    assert made.seen == ((2, 2), (4, 4))
    (passed,) = made.missed
    assert (passed.first, passed.last, passed.reason, passed.message) == (
        3,
        3,
        MissedReason.MESSAGE,
        2,
    )
    assert (made.artifacts[0].chunks, made.artifacts[0].parts) == (2, 2)


def test_bounded() -> None:
    """Over the limit the task that is idle for longest makes room."""
    session = Session(limit=2)
    player = session.connect()
    for name in ("t1", "t2", "t1", "t3"):
        session.run(player, Http().call("GetTask", {"id": name}).result({**task(), "id": name}))
        session.tracker.pop_changed_tasks()
    session.run(player, Http().call("GetTask", {"id": "t1"}).result(task("WORKING")))
    session.run(player, Http().call("GetTask", {"id": "t2"}).result({**task(), "id": "t2"}))

    assert [
        (each.task_id, len(each.exchanges)) for each in session.tracker.pop_changed_tasks()
    ] == [
        ("t1", 3),
        ("t2", 1),
    ]


def test_finished_tasks_are_evicted_first() -> None:
    """Only the latest finished tasks are kept, whatever the room; open ones stay."""
    session = Session(done=2)
    player = session.connect()
    for name in ("open", "t1", "t2", "t3"):
        state = "WORKING" if name == "open" else "COMPLETED"
        session.run(
            player, Http().call("GetTask", {"id": name}).result({**task(state), "id": name})
        )
        assert [each.task_id for each in session.tracker.pop_changed_tasks()] == [name]
    for name in ("open", "t2", "t3", "t1"):
        session.run(
            player, Http().call("GetTask", {"id": name}).result({**task("COMPLETED"), "id": name})
        )

    assert {each.task_id: len(each.exchanges) for each in session.tracker.pop_changed_tasks()} == {
        "open": 2,
        "t1": 1,
        "t2": 2,
        "t3": 2,
    }


def test_a_task_that_continues_is_not_finished() -> None:
    """Some agents do so: then it is no finished task."""
    session = Session(done=1)
    player = session.connect()
    for state in ("COMPLETED", "WORKING"):
        session.run(player, Http().call("GetTask", {"id": "t1"}).result(task(state)))
        session.tracker.pop_changed_tasks()
    for name in ("t2", "t3"):
        session.run(
            player, Http().call("GetTask", {"id": name}).result({**task("COMPLETED"), "id": name})
        )
        session.tracker.pop_changed_tasks()
    session.run(player, Http().call("GetTask", {"id": "t1"}).result(task("WORKING")))

    assert session.task().exchanges == (1, 2, 5)


def test_finished_tasks_of_a_recording_are_evicted() -> None:
    session = Session(done=1)
    tasks = [
        Task("agent:8000", f"t{n}", "c1", state=3, states=((9, 3),), first=9, last=9)
        for n in (1, 2)
    ]
    session.tracker.load(
        [*tasks, Task("agent:8000", "t3", "c1", state=2, states=((9, 2),), first=9, last=9)]
    )
    session.tracker.mark_all_changed()

    assert [each.task_id for each in session.tracker.pop_changed_tasks()] == ["t2", "t3"]


def test_late_push_of_a_finished_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose task it is stays known for a while; then it is the receiver's for all that can be
    told."""
    monkeypatch.setattr(protocol_task, "MAX_OWNERS", 1)
    session = Session(done=0)
    player = session.connect()
    for name in ("t1", "t2", "t3"):
        session.run(
            player, Http().call("GetTask", {"id": name}).result({**task("COMPLETED"), "id": name})
        )
        session.tracker.pop_changed_tasks()
    receiver = session.connect("receiver:7000")
    for name in ("t3", "t1"):
        push = status("COMPLETED")
        push["statusUpdate"]["taskId"] = name
        session.run(receiver, Http().request("POST /hook", push).answer())

    assert [each.agent for each in session.tracker.pop_changed_tasks()] == [
        "agent:8000",
        "receiver:7000",
    ]


def test_frames_of_other_kinds() -> None:
    """An event of a later line still names its task; a comment changes nothing."""
    session = Session()
    player = session.connect()
    session.run(player, stream({"somethingNew": {"taskId": "t5"}}).chunk(b": ping\n\n").done())
    kinds = {each.event for each in player.out if isinstance(each, Frame)}

    assert EventKind.UNKNOWN in kinds
    assert [each.task_id for each in session.tracker.pop_changed_tasks()] == ["t5"]


# --- repeated status updates

_STREAMS = 2
_MEMBERS = [{}, {}, {"taskId": "t2"}, {"contextId": ""}, {"generation": "2"}, {"generation": "3"}]
_EVENTS = st.one_of(
    st.builds(
        lambda state, text, members: status(state, text, **members),
        st.sampled_from(["WORKING", "WORKING", "COMPLETED"]),
        st.sampled_from(["", "on it", "still on it"]),
        st.sampled_from(_MEMBERS),
    ),
    st.sampled_from([{"task": task("WORKING")}, artifact("x")]),
    st.builds(artifact, st.sampled_from("xyz"), append=st.just(True), lastChunk=st.booleans()),
)
_STEPS = st.lists(
    st.one_of(*[st.tuples(st.integers(0, _STREAMS - 1), _EVENTS)] * 4, st.none()),
    min_size=6,
    max_size=40,
)


@example([(0, status("WORKING", contextId="")), (0, status("WORKING"))], "1.0", 1)
@given(steps=_STEPS, version=st.sampled_from(["1.0", "1.1"]), finished=st.integers(1, 3))
@settings(deadline=None, max_examples=300)
def test_repeated_updates_give_the_same_records(
    steps: list[tuple[int, dict[str, Any]] | None], version: str, finished: int
) -> None:
    """The fast path of repeated updates changes the records as the general path does."""

    def play() -> list[Any]:
        session, found = Session(limit=2, done=finished), []
        players = [session.connect() for _ in range(_STREAMS)]
        for number, player in enumerate(players):
            params = {**ask(), "tenant": "x" * (number % 2)}
            session.run(
                player, Http().call("SendStreamingMessage", params, a2a_version=version).stream()
            )
        for step in steps:
            if step is None:
                found.append(session.tracker.pop_changed_tasks())
            else:
                session.run(players[step[0]], Http().rpc_event(step[1]))
        return [
            *found,
            session.tracker.pop_changed_tasks(),
            session.tracker.latest_records,
            session.tracker.pop_healed_gaps(),
        ]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(TaskTracker, "_apply_steady_update", lambda *_: False)
        expected = play()
    assert play() == expected
