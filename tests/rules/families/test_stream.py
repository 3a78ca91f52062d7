"""Rules about streams: what must be found on every binding, and what must not."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.rules.examples.conversation import (
    EventPause,
    fetch_card,
    grpc,
    http,
    json_text,
    rest_stream,
    rpc,
    rpc_error,
    rpc_stream,
)
from a2a_proxy.rules.examples.objects import (
    Json,
    agent_reply,
    chunk,
    reply,
    send,
    snapshot,
    status,
    task,
)
from a2a_proxy.rules.examples.script import MS, Script, run_together
from support_rules import findings

SEND, SUB = "SendStreamingMessage", "SubscribeToTask"
ID = {"id": "t1"}
WORKING = (snapshot(), status("WORKING"))
DONE = status("COMPLETED", second=1)
TEXT = {"kind": "text", "text": "hello"}
OLD_SEND = {"message": {"kind": "message", "messageId": "m1", "role": "user", "parts": [TEXT]}}
OLD_TASK = {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "submitted"}}


def verdicts(script: Script, number: str) -> list[str]:
    """Severities of what one rule says, with `?` where it is not sure."""
    return [
        each.severity.name + ("?" if each.confidence == "low" else "")
        for each in findings(script)
        if each.rule == f"A2A-STREAM-{number}"
    ]


def over(binding: str, *events: Any, subscribes: bool = False, **options: Any) -> Script:
    """The same stream on any binding."""
    method, params = (SUB, ID) if subscribes else (SEND, send())
    if binding == "grpc":
        return grpc(method, params, *events, **options)
    if binding == "rest":
        target = "/tasks/t1:subscribe" if subscribes else "/message:stream"
        return rest_stream("POST", target, None if subscribes else params, *events, **options)
    return rpc_stream(method, params, *events, **options)


def old_status(state: str, **members: Any) -> Json:
    """A status update of 0.3."""
    return {
        "kind": "status-update",
        "taskId": "t1",
        "contextId": "c1",
        "status": {"state": state},
    } | members


EVERY = pytest.mark.parametrize("binding", ["jsonrpc", "rest", "grpc"])


@EVERY
@pytest.mark.parametrize(
    ("number", "events", "options"),
    [
        ("001", (status("WORKING"), DONE), {}),
        ("002", (agent_reply("one"), agent_reply("two", id="r2")), {}),
        ("003", (snapshot(), agent_reply(), DONE), {}),
        ("004", (*WORKING, snapshot("WORKING"), DONE), {}),
        ("005", (*WORKING, DONE, chunk("late")), {}),
        ("006", (*WORKING, DONE, EventPause(11)), {}),
        ("007", WORKING, {}),
        ("008", (*WORKING, status("INPUT_REQUIRED", second=1, message=reply("which one?"))), {}),
        ("009", (), {}),
        ("010", (status("WORKING"), DONE), {"subscribes": True}),
        ("020", (*WORKING, chunk("x"), chunk("x"), DONE), {}),
    ],
)
def test_found_on_every_binding(
    binding: str, number: str, events: tuple[Any, ...], options: Any
) -> None:
    assert len(verdicts(over(binding, *events, **options), number)) == 1


def test_work_after_the_end_is_no_early_end() -> None:
    """Only A2A-STREAM-005 is flagged: the end of the task was sent."""
    script = over("jsonrpc", *WORKING, DONE, status("WORKING", second=2))
    assert verdicts(script, "005") == ["ERROR"]
    assert not verdicts(script, "007")


@EVERY
def test_a_valid_stream_has_no_findings(binding: str) -> None:
    found = findings(
        over(binding, *WORKING, chunk("a"), chunk("b", append=True, lastChunk=True), DONE)
    )
    assert [each.rule for each in found if each.rule.startswith("A2A-STREAM")] == []


class TestBeginning:
    """001, 010 to 012, 019."""

    def test_a_follow_up_may_begin_with_an_update(self) -> None:
        follows = rpc_stream(SEND, send(taskId="t1"), status("WORKING"), DONE)
        assert verdicts(follows, "001") == ["WARNING"]

    def test_older_versions_do_not_ask_for_a_task_first(self) -> None:
        old = rpc_stream(
            "message/stream", OLD_SEND, old_status("completed", final=True), version=""
        )
        assert verdicts(old, "001") == ["INFO"]

    def test_an_error_is_no_first_event(self) -> None:
        assert not verdicts(rpc_stream(SEND, send(), {"error": rpc_error(-32603)}), "001")

    def test_a_task_that_ends_after_the_request_is_a_race(self) -> None:
        late = run_together(
            rpc("GetTask", ID, task("COMPLETED"), seconds=0.1),
            rpc_stream(SUB, ID, snapshot("COMPLETED"), id=2, seconds=0.5),
        )
        assert not verdicts(late, "011")

    def test_a_finished_task_in_0_3(self) -> None:
        done = rpc("tasks/get", ID, OLD_TASK | {"status": {"state": "completed"}}, version="")
        again = rpc_stream(
            "tasks/resubscribe", ID, OLD_TASK | {"status": {"state": "completed"}}, version=""
        )
        assert not verdicts(done + again, "011")

    @pytest.mark.parametrize("state", ["WORKING", "INPUT_REQUIRED", "COMPLETED"])
    def test_a_task_from_before_the_proxy_is_not_unknown(self, state: str) -> None:
        assert not verdicts(rpc_stream(SUB, ID, snapshot(state)), "012")

    def test_a_message_for_an_unknown_task(self) -> None:
        assert verdicts(rpc_stream(SUB, ID, agent_reply()), "012") == ["ERROR"]

    @pytest.mark.parametrize(
        ("code", "text"), [(-32001, "Task t1 not found"), (-32004, "no streaming"), (-32603, "")]
    )
    def test_other_refusals_are_no_wrong_answer(self, code: int, text: str) -> None:
        assert not verdicts(rpc(SUB, ID, error=rpc_error(code, text=text)), "012")

    def test_a_gateway_says_not_found_in_its_own_way(self) -> None:
        page = "<html>task not found</html>"
        gone = http("POST", "/tasks/t1:subscribe", status=404, answer=page, media="text/html")
        assert not verdicts(gone, "012")

    def test_behind_by_state(self) -> None:
        known = rpc("GetTask", ID, task("WORKING"))
        assert verdicts(known + rpc_stream(SUB, ID, snapshot("SUBMITTED"), DONE), "019") == [
            "WARNING?"
        ]
        assert not verdicts(known + rpc_stream(SUB, ID, snapshot("WORKING"), DONE), "019")


class TestMiddle:
    """003 to 005, 016, 018, 020."""

    def test_the_last_task_is_none_in_the_middle(self) -> None:
        assert not verdicts(
            rpc_stream(SEND, send(), *WORKING, DONE, snapshot("COMPLETED", second=1)), "004"
        )

    def test_the_final_task_may_come_once(self) -> None:
        final = snapshot("COMPLETED", second=1)
        assert not verdicts(rpc_stream(SEND, send(), *WORKING, DONE, final), "005")
        assert verdicts(rpc_stream(SEND, send(), *WORKING, DONE, final, final), "005") == ["ERROR"]
        assert verdicts(rpc_stream(SEND, send(), *WORKING, DONE, snapshot("FAILED")), "005") == [
            "ERROR"
        ]

    def test_a_terminal_state_elsewhere_ends_no_stream(self) -> None:
        lagging = run_together(
            rpc_stream(SEND, send(), *WORKING, EventPause(1), chunk("x"), DONE),
            rpc("GetTask", ID, task("COMPLETED", second=1), id=2),
            after=300 * MS,
        )
        assert not verdicts(lagging, "005")

    def test_after_final_is_one_finding(self) -> None:
        late = rpc_stream(
            "message/stream",
            OLD_SEND,
            OLD_TASK,
            old_status("completed", final=True),
            OLD_TASK,
            version="",
        )
        assert verdicts(late, "018") == ["ERROR"]
        assert not verdicts(late, "005")

    def test_a_word_said_twice_is_text(self) -> None:
        words = [chunk("ha", append=True)] * 3
        assert not verdicts(rpc_stream(SEND, send(), *WORKING, chunk("x"), *words, DONE), "020")

    def test_clocks_that_differ_a_little(self) -> None:
        assert not verdicts(
            rpc_stream(SEND, send(), snapshot(), status("WORKING", second=3), DONE), "016"
        )


class TestEnd:
    """006 to 009, 017, 022, 023."""

    @pytest.mark.parametrize(("seconds", "found"), [(1.5, []), (4, ["WARNING"]), (11, ["ERROR"])])
    def test_how_late_the_end_is(self, seconds: float, found: list[str]) -> None:
        assert (
            verdicts(rpc_stream(SEND, send(), *WORKING, DONE, EventPause(seconds)), "006") == found
        )

    def test_open_when_the_session_ends(self) -> None:
        open_still = rpc_stream(SEND, send(), *WORKING, DONE, finish="open").then(
            fetch_card(), 20_000 * MS
        )
        assert verdicts(open_still, "006") == ["ERROR"]

    @pytest.mark.parametrize("finish", ["cut", "leave", "open"])
    def test_only_a_clean_end_is_early(self, finish: Any) -> None:
        assert not verdicts(rpc_stream(SEND, send(), *WORKING, finish=finish), "007")

    def test_an_error_is_no_early_end(self) -> None:
        failed = rpc_stream(SEND, send(), *WORKING, {"error": rpc_error(-32603)})
        assert not verdicts(failed, "007")

    def test_credentials_may_come_by_another_way(self) -> None:
        needs = status("AUTH_REQUIRED", second=1, message=reply("sign in"))
        assert verdicts(rpc_stream(SEND, send(), *WORKING, needs), "008") == ["WARNING?"]

    def test_an_answer_that_is_no_stream_is_not_empty(self) -> None:
        assert not verdicts(
            http("POST", "/message:stream", json_text(send()), status=503, answer="busy"), "009"
        )
        assert not verdicts(grpc(SEND, send(), status=14), "009")

    def test_final(self) -> None:
        early = rpc_stream(
            "message/stream", OLD_SEND, OLD_TASK, old_status("working", final=True), version=""
        )
        without = rpc_stream(
            "message/stream", OLD_SEND, OLD_TASK, old_status("completed"), version=""
        )
        waits = rpc_stream(
            "message/stream",
            OLD_SEND,
            OLD_TASK,
            old_status("input-required", final=False),
            version="",
        )
        assert verdicts(early, "017") == ["WARNING"]
        assert verdicts(without, "017") == ["WARNING", "WARNING"]
        assert verdicts(waits, "017") == ["INFO"]
        assert not verdicts(early, "007")


class TestTogether:
    """013 to 015, 021."""

    @staticmethod
    def two(
        one: tuple[Any, ...], two: tuple[Any, ...], binding: str = "jsonrpc", **options: Any
    ) -> Script:
        """A stream and a subscription, one second before the events begin in both."""
        first = rpc_stream(SEND, send(), *WORKING, EventPause(1), *one)
        other = over(binding, snapshot("WORKING"), EventPause(1), *two, subscribes=True, **options)
        return run_together(first, other, after=45 * MS).then(fetch_card(), 20_000 * MS)

    @EVERY
    def test_missing_and_crossed(self, binding: str) -> None:
        a, b, c = chunk("a"), chunk("b", id="a2"), chunk("c", id="a3")
        assert verdicts(self.two((a, b, c, DONE), (a, c, DONE), binding), "014") == ["ERROR"]
        assert verdicts(self.two((a, c, DONE), (a, b, c, DONE), binding), "014") == ["ERROR"]
        assert verdicts(self.two((a, b, c, DONE), (a, c, b, DONE), binding), "013") == ["ERROR"]
        assert not verdicts(self.two((a, b, c, DONE), (a, b, c, DONE), binding), "014")

    def test_a_slow_client(self) -> None:
        """It has what the other had 4 s ago."""
        events = (chunk("a"), chunk("b", id="a2"), DONE)
        assert not verdicts(self.two(events, (EventPause(4), *events)), "014")

    def test_a_stream_that_has_gone_silent_is_less_sure(self) -> None:
        a, b = chunk("a"), chunk("b", id="a2")
        assert verdicts(
            self.two((a, b, EventPause(8), DONE), (a, EventPause(15), DONE)), "014"
        ) == ["WARNING?"]

    def test_what_the_snapshot_had_already_is_not_missing(self) -> None:
        """The second stream begins between two events, while the first client lags behind."""
        slow = rpc_stream(
            SEND, send(), *WORKING, EventPause(0.5), chunk("a"), chunk("b", id="a2"), DONE
        )
        later = rpc_stream(SUB, ID, snapshot("WORKING"), chunk("b", id="a2"), DONE, id=2)
        assert not verdicts(
            run_together(slow, later, after=100 * MS).then(fetch_card(), 20_000 * MS), "014"
        )

    def test_a_number_from_before_the_snapshot_is_not_missing(self) -> None:
        """The first stream swaps two events; the second began between them."""
        second, third = status("WORKING", generation="2"), chunk("a", generation="3")
        end = status("COMPLETED", second=1, generation="4")
        swapped = rpc_stream(
            SEND,
            send(),
            snapshot(generation="1"),
            third,
            EventPause(0.1),
            second,
            end,
            version="1.1",
        )
        later = rpc_stream(
            SUB, ID, snapshot("WORKING", generation="2"), third, end, id=2, version="1.1"
        )
        script = run_together(swapped, later, after=30 * MS).then(fetch_card(), 20_000 * MS)
        assert not verdicts(script, "014")

    def test_the_first_stream_is_watched_since_the_second_is_there(self) -> None:
        """It is not heard between the beginning of the second and the event that it loses."""
        a, b, c = chunk("a"), chunk("b", id="a2"), chunk("c", id="a3")
        first = rpc_stream(SEND, send(), *WORKING, a, EventPause(3), c, DONE)
        second = rpc_stream(SUB, ID, a, EventPause(2), b, EventPause(1), c, DONE, id=2)
        script = run_together(first, second, after=60 * MS).then(fetch_card(), 20_000 * MS)
        assert verdicts(script, "014") == ["WARNING?"]

    def test_the_same_text_twice_cannot_be_told_apart(self) -> None:
        a, b, x = chunk("a"), chunk("b", id="a2"), chunk("x", append=True)
        assert not verdicts(self.two((a, x, x, b, DONE), (a, x, b, DONE)), "014")

    def test_a_client_that_leaves_is_not_missed(self) -> None:
        events = (chunk("a"), chunk("b", id="a2"), chunk("c", id="a3"))
        assert not verdicts(self.two((*events, DONE), events[:1], finish="leave"), "014")

    def test_a_stream_that_ends_is_told_enough(self) -> None:
        stream = rpc_stream(SEND, send(), *WORKING, EventPause(3))
        known = rpc("GetTask", ID, task("COMPLETED", second=1), id=2)
        script = run_together(stream, known, after=500 * MS).then(fetch_card(), 20_000 * MS)
        assert verdicts(script, "007") == ["WARNING"]


def test_a_single_response_is_not_an_early_end() -> None:
    """It never was a stream: A2A-HTTP-004 says so."""
    assert verdicts(rpc(SEND, send(), snapshot("WORKING")), "007") == []
    assert verdicts(rpc(SEND, send(), snapshot("WORKING"), status=400), "007") == []


@EVERY
def test_an_end_without_its_task_is_reported_once(binding: str) -> None:
    """The stream is not blamed for ending without it."""
    nameless = status("COMPLETED", second=1)
    del nameless["statusUpdate"]["taskId"]
    foreign = {"statusUpdate": DONE["statusUpdate"] | {"taskId": "t2"}}
    assert [each.rule for each in findings(over(binding, *WORKING, nameless))] == ["A2A-SCH-001"]
    assert [each.rule for each in findings(over(binding, *WORKING, foreign))] == ["A2A-ID-007"]


def test_final_may_be_on_an_update_of_another_task() -> None:
    """By the last status update, whatever task it names."""
    ended = old_status("completed", final=True) | {"taskId": "t2"}
    script = rpc_stream(
        "message/stream", OLD_SEND, OLD_TASK, old_status("working", final=False), ended, version=""
    )
    assert [each.rule for each in findings(script)] == ["A2A-ID-007"]
