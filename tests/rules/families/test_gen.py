"""Rules about the generations of events and snapshots: variants, near misses, all bindings."""

from __future__ import annotations

import pytest

from a2a_proto import from_dict
from a2a_proxy.rules.examples.conversation import (
    EventPause,
    grpc,
    rpc,
    rpc_stream,
)
from a2a_proxy.rules.examples.objects import (
    Json,
    artifact,
    chunk,
    reply,
    send,
    snapshot,
    status,
    task,
)
from a2a_proxy.rules.examples.script import MS, Script, run_together
from support_numbered import (
    BINDINGS,
    FIRST,
    ID,
    SECOND,
    SEND,
    done,
    get,
    over,
    push,
    step,
    stream,
    verdicts,
    words,
)
from support_rules import findings

EVERY = pytest.mark.parametrize("binding", BINDINGS)


class TestGaps:
    """001."""

    @EVERY
    def test_found_on_every_binding(self, binding: str) -> None:
        assert verdicts(
            over(binding, FIRST, SECOND, chunk("a", generation="5"), done(6)), "001"
        ) == ["ERROR"]
        assert not verdicts(
            over(binding, FIRST, SECOND, chunk("a", generation="3"), done(4)), "001"
        )

    def test_where_it_was_lost(self) -> None:
        events = (chunk("a", generation="3"), chunk("b", id="a2", generation="4"), done(5))
        whole = stream(FIRST, SECOND, EventPause(0.5), *events)
        gap = over(
            "grpc", snapshot("WORKING", generation="2"), EventPause(1), *events[1:], subscribes=True
        )
        missing = 'generation 3 (artifact update "a1") is missing on this stream'
        elsewhere = f"{missing}: 2 is followed by 4; it arrived elsewhere"
        assert words(run_together(whole, gap, after=45 * MS), "001") == elsewhere
        alone = stream(FIRST, SECOND, *events[1:])
        assert words(alone, "001") == "generation 3 is missing: 2 is followed by 4"

    def test_a_push_has_told_it(self) -> None:
        lost = chunk("a", generation="3")
        pushed = run_together(
            stream(FIRST, SECOND, EventPause(1), done(4)), push(lost), after=300 * MS
        )
        missing = 'generation 3 (artifact update "a1") is missing on this stream'
        elsewhere = f"{missing}: 2 is followed by 4; it arrived elsewhere"
        assert words(pushed, "001") == elsewhere

    def test_a_snapshot_that_brings_what_it_leaves_out(self) -> None:
        assert verdicts(stream(FIRST, SECOND, snapshot("COMPLETED", generation="3")), "001") == [
            "WARNING"
        ]
        assert verdicts(stream(FIRST, SECOND, snapshot("COMPLETED", generation="4")), "001") == [
            "ERROR"
        ]

    def test_without_a_snapshot_to_count_from(self) -> None:
        assert verdicts(stream(status("WORKING", generation="3"), done(4)), "001") == ["INFO"]
        late = rpc_stream(
            SEND, send(taskId="t1"), status("WORKING", generation="8"), done(9), version="1.1"
        )
        assert not verdicts(late, "001")

    def test_what_has_no_number_may_have_had_it(self) -> None:
        """A progress update without one, and an event with one that nobody can read."""
        bare = status("WORKING", second=2)
        assert not verdicts(stream(FIRST, SECOND, bare, chunk("a", generation="4"), done(5)), "001")
        assert verdicts(
            stream(FIRST, SECOND, bare, chunk("a", generation="5"), done(6)), "001"
        ) == ["ERROR"]
        unread = stream(
            FIRST,
            SECOND,
            chunk("a", generation="3.5"),
            chunk("b", id="a2", generation="4"),
            done(5),
        )
        assert not verdicts(unread, "001")

    def test_what_a_snapshot_was_ahead_of_comes_late(self) -> None:
        ahead = snapshot("WORKING", generation="4")
        script = stream(
            FIRST,
            SECOND,
            ahead,
            chunk("a", generation="3"),
            chunk("b", id="a2", generation="4"),
            done(5),
        )
        assert words(script, "003") == "generation 3 follows 4: the event is late and fills a gap"

    def test_what_passed_while_nobody_listened(self) -> None:
        left = stream(FIRST, SECOND, finish="leave")
        back = over("jsonrpc", snapshot("WORKING", generation="5"), done(6), subscribes=True)
        assert verdicts(left + back, "001") == ["INFO"]
        assert not verdicts(left + get(5), "001")

    @pytest.mark.parametrize("numbers", [(2, 2, 3), (3, 4, 5), (2, 3, 4)])
    def test_progress_updates_may_count_or_not(self, numbers: tuple[int, int, int]) -> None:
        one, two, end = numbers
        script = stream(FIRST, SECOND, step("one", one), step("two", two), done(end))
        assert not verdicts(script, "001")
        assert verdicts(script, "002") == (["INFO"] if one == 2 else [])

    def test_a_progress_update_switches_nothing_off(self) -> None:
        assert verdicts(
            stream(FIRST, SECOND, step("one", 2), chunk("x", generation="4"), done(5)), "001"
        ) == ["ERROR"]

    def test_an_event_of_a_proposal_counts(self) -> None:
        said = {"taskId": "t1", "contextId": "c1", "message": reply("hm"), "generation": "3"}
        assert not verdicts(stream(FIRST, SECOND, {"messageUpdate": said}, done(4)), "001")
        assert verdicts(stream(FIRST, SECOND, {"messageUpdate": said}, done(5)), "001") == ["ERROR"]


class TestRepeats:
    """002, 003, 004."""

    @EVERY
    def test_another_event(self, binding: str) -> None:
        script = over(
            binding,
            FIRST,
            SECOND,
            chunk("a", generation="2"),
            chunk("b", id="a2", generation="2"),
            done(9),
        )
        assert verdicts(script, "002") == ["ERROR"]
        assert not verdicts(script, "001"), "the feature is off from there on"

    @EVERY
    def test_the_same_event_again(self, binding: str) -> None:
        a = chunk("a", generation="3")
        script = over(binding, FIRST, SECOND, a, a, chunk("b", id="a2", generation="5"), done(6))
        assert verdicts(script, "002") == ["WARNING"]
        assert verdicts(script, "001") == ["ERROR"], "a redelivery switches nothing off"

    def test_an_event_told_in_the_snapshot_too(self) -> None:
        assert not verdicts(
            stream(FIRST, status("SUBMITTED", generation="1"), SECOND, done(3)), "002"
        )

    @EVERY
    def test_late(self, binding: str) -> None:
        a, b = chunk("a", generation="3"), chunk("b", id="a2", generation="4")
        script = over(binding, FIRST, SECOND, b, a, done(5))
        assert (verdicts(script, "001"), verdicts(script, "003")) == (["ERROR"], ["ERROR"])
        assert "fills a gap" in words(script, "003")

    def test_an_agent_that_begins_anew(self) -> None:
        """One finding, however many new numbers are below the old ones."""
        old = over("jsonrpc", snapshot("WORKING", generation="9"), subscribes=True)
        assert not verdicts(old, "003")
        again = [
            chunk(f"x{number}", id=f"a{number}", generation=str(number)) for number in range(2, 6)
        ]
        events = (snapshot("WORKING", generation="9"), chunk("a", generation="10"), *again)
        assert verdicts(over("jsonrpc", *events, subscribes=True), "003") == ["ERROR"]

    @EVERY
    def test_no_number_any_more(self, binding: str) -> None:
        assert verdicts(
            over(binding, FIRST, SECOND, chunk("a"), status("COMPLETED", second=1)), "004"
        ) == ["ERROR"]
        assert verdicts(over(binding, FIRST, SECOND, step("one", None), done(3)), "004") == [
            "WARNING"
        ]

    def test_a_negative_number(self) -> None:
        """A well-formed int64 on gRPC, where there is no text form for A2A-GEN-020 to judge."""
        script = over("grpc", FIRST, SECOND, chunk("a", generation="-3"), done(4))
        assert verdicts(script, "003") == ["ERROR"]
        assert "generation -3 follows 2" in words(script, "003")
        assert not verdicts(script, "001"), "it may stand for the 3"
        assert not verdicts(
            over("jsonrpc", FIRST, SECOND, chunk("a", generation="-3"), done(4)), "003"
        )

    def test_clients_of_an_older_version_get_none(self) -> None:
        assert not verdicts(get(3) + get(None, version="1.0"), "004")
        assert verdicts(get(3) + get(None), "004") == ["ERROR?"]

    def test_a_late_push_is_no_regress(self) -> None:
        events = (chunk("a", generation="3"), chunk("b", id="a2", generation="4"))
        script = run_together(
            stream(FIRST, SECOND, *events, EventPause(1), done(5)), push(events[0]), after=500 * MS
        )
        assert not verdicts(script, "003")
        assert not verdicts(script, "021")


class TestSnapshots:
    """005 to 008, 021."""

    def test_new_tasks(self) -> None:
        assert verdicts(stream(snapshot("WORKING", generation="2"), done(3)), "006") == ["INFO"]
        answer = {"task": task("COMPLETED", generation="4")}
        assert not verdicts(rpc("SendMessage", send(), answer, version="1.1"), "006")

    def test_nought_where_others_have_numbers(self) -> None:
        zero = rpc_stream(
            SEND, send(id="m2"), {"task": task("SUBMITTED", id="t2")}, finish="open", version="1.1"
        )
        assert verdicts(stream(FIRST, SECOND, done(3)) + zero, "006") == ["WARNING"]
        assert not verdicts(zero, "006")

    def test_an_agent_that_numbers_its_other_tasks_implements_it(self) -> None:
        """What it leaves out is A2A-GEN-006 alone."""
        other = stream(FIRST, SECOND, done(3))
        script = other + rpc_stream(
            SEND, send(id="m2"), snapshot(id="t2"), status("WORKING", taskId="t2"), version="1.1"
        )
        assert not verdicts(script, "005")
        assert verdicts(script, "006") == ["WARNING"]

    def test_a_snapshot_that_is_behind_says_nothing_of_its_number(self) -> None:
        """The state is that of 3, the number that of the beginning: it is A2A-GEN-007 alone."""
        script = stream(
            FIRST, SECOND, chunk("a", generation="3"), snapshot("WORKING", generation="1"), done(4)
        )
        assert verdicts(script, "007") == ["WARNING"]
        assert not verdicts(script, "008")

    def test_a_state_without_its_number(self) -> None:
        assert verdicts(get(3) + get(3, state="COMPLETED"), "008") == ["WARNING?"]
        whole = rpc(
            "GetTask", ID, task("WORKING", generation="3", artifacts=[artifact()]), version="1.1"
        )
        assert not verdicts(get(3) + whole, "008"), "artifacts may be left out"

    @EVERY
    def test_the_same_event_on_two_bindings(self, binding: str) -> None:
        def two(one: Json, two: Json) -> Script:
            first = stream(FIRST, SECOND, EventPause(0.5), one, done(4))
            other = over(
                binding,
                snapshot("WORKING", generation="2"),
                EventPause(0.5),
                two,
                done(4),
                subscribes=True,
            )
            return run_together(first, other, after=45 * MS)

        data = {"artifactId": "a1", "name": "result", "parts": [{"data": {"x": 1}}]}
        event = {
            "artifactUpdate": {
                "taskId": "t1",
                "contextId": "c1",
                "artifact": data,
                "generation": "3",
            }
        }
        assert not verdicts(two(event, event), "021")
        assert verdicts(two(event, chunk("x", generation="3")), "021") == ["ERROR"]

    def test_a_push_that_says_something_else(self) -> None:
        def pushed(event: Json) -> Script:
            return run_together(
                stream(FIRST, SECOND, chunk("a", generation="3"), EventPause(1), done(4)),
                push(event),
                after=500 * MS,
            )

        assert not verdicts(pushed(chunk("a", generation="3")), "021")
        assert verdicts(pushed(chunk("b", generation="3")), "021") == ["ERROR"]
        assert not verdicts(pushed(step("one", 3)), "021"), (
            "a progress update may repeat the number"
        )


def test_agents_without_generations_are_left_alone() -> None:
    events = (
        snapshot(),
        status("WORKING"),
        chunk("a"),
        chunk("b", id="a2"),
        status("COMPLETED", second=1),
    )
    found = findings(stream(*events, version="1.0") + get(None, version="1.0"))
    assert not [each for each in found if each.rule.startswith("A2A-GEN")]


@pytest.mark.parametrize("number", [123, -1])
def test_a_state_that_a2a_does_not_define_is_named_by_its_number(number: int) -> None:
    unknown = from_dict("1.0", "Task", task("WORKING", generation="3"))
    unknown.status.state = number  # type: ignore[attr-defined]  # the class is built at run time
    script = grpc("GetTask", {"id": "t1"}, unknown.SerializeToString(), version="1.1")
    script += grpc("GetTask", {"id": "t1"}, task("WORKING", generation="3"), version="1.1")
    found = {each.rule: each.summary for each in findings(script)}
    assert "RULES" not in found
    assert f"unknown-{number}, now working" in found["A2A-GEN-008"]
