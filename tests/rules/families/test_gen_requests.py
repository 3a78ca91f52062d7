"""Rules about requests that name a generation: long polls, preconditions, clients, the form of
numbers."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.rules.examples.conversation import (
    EventPause,
    grpc,
    rest,
    rest_error,
    rpc,
    rpc_error,
)
from a2a_proxy.rules.examples.objects import chunk, error_info, reply, send, snapshot, task
from a2a_proxy.rules.examples.script import MS, run_together
from support_numbered import (
    BINDINGS,
    FIRST,
    ID,
    MISMATCH,
    SECOND,
    done,
    get,
    push,
    refusal,
    stream,
    told,
    verdicts,
)

EVERY = pytest.mark.parametrize("binding", BINDINGS)


class TestLongPoll:
    """009 to 011: compared with what had passed before the request."""

    @EVERY
    def test_held(self, binding: str) -> None:
        assert verdicts(get(7) + get(7, current=5, binding=binding, seconds=3), "009") == ["ERROR?"]
        assert not verdicts(get(7) + get(8, current=7, binding=binding, seconds=3), "009")
        assert not verdicts(get(7) + get(7, current=5, binding=binding, seconds=1), "009")

    def test_news_that_came_after_the_request(self) -> None:
        script = run_together(
            stream(
                FIRST, SECOND, EventPause(1), chunk("a", generation="3"), EventPause(4), done(4)
            ),
            get(4, current=2, state="COMPLETED", seconds=4.5),
            after=500 * MS,
        )
        assert not verdicts(script, "009")

    def test_a_client_that_gives_up(self) -> None:
        asks = rpc("GetTask", ID | {"currentGeneration": "5"}, id=2, version="1.1")
        assert not verdicts(get(7) + asks, "009")

    @EVERY
    def test_an_explicit_nought(self, binding: str) -> None:
        assert verdicts(get(None) + get(None, current=0, binding=binding), "017") == ["ERROR?"]

    @EVERY
    def test_older(self, binding: str) -> None:
        assert verdicts(get(7) + get(6, current=7, binding=binding), "011") == ["WARNING?"]
        assert not verdicts(get(7) + get(7, current=7, binding=binding), "011")

    def test_a_number_that_the_client_made_up(self) -> None:
        assert not verdicts(
            run_together(
                stream(FIRST, SECOND, EventPause(1), done(3)), get(2, current=9), after=300 * MS
            ),
            "011",
        )


class TestPrecondition:
    """012 to 016, 019: an acceptance is compared with what had passed before the request."""

    ANSWER = snapshot("COMPLETED", second=1, generation="7")

    def test_stale(self) -> None:
        assert verdicts(get(5) + told(3, self.ANSWER), "012") == ["ERROR?"]
        assert not verdicts(get(5) + told(5, self.ANSWER), "012")
        assert not verdicts(told(3, self.ANSWER), "012")

    def test_a_change_while_the_agent_worked(self) -> None:
        script = run_together(
            stream(FIRST, SECOND, EventPause(1), chunk("a", generation="3"), done(4)),
            told(2, snapshot("COMPLETED", second=1, generation="4"), seconds=2),
            after=500 * MS,
        )
        assert not verdicts(script, "012")

    @pytest.mark.parametrize("binding", ["rest", "grpc"])
    def test_stale_on_other_bindings(self, binding: str) -> None:
        params = send("go on", id="m2", configuration={"ifGenerationMatch": "3"}, taskId="t1")
        if binding == "rest":
            call = rest("POST", "/message:send", params, self.ANSWER, version="1.1")
        else:
            call = grpc("SendMessage", params, self.ANSWER, version="1.1")
        assert verdicts(get(5) + call, "012") == ["ERROR?"]

    def test_refused(self) -> None:
        assert verdicts(get(5) + told(5, None, refusal(5)), "013") == ["WARNING"]
        assert verdicts(get(5) + told(5, None, refusal(6)), "013") == ["WARNING?"]
        assert not verdicts(get(5) + told(5, None, refusal(6)) + get(6), "013")
        assert not verdicts(get(5) + told(3, None, refusal(5)), "013")

    def test_no_task(self) -> None:
        assert verdicts(told(3, None, refusal(), task_id=""), "014") == ["ERROR"]
        assert not verdicts(told(3, None, refusal()), "014")

    def test_no_condition(self) -> None:
        assert verdicts(told(None, None, refusal()), "015") == ["ERROR"]
        assert not verdicts(told(0, None, refusal()), "015")
        own = rpc_error(-32010, text="slow down")
        assert not verdicts(told(None, None, own), "015"), "a code of the agent's own"

    @pytest.mark.parametrize(
        ("code", "found"), [(-32010, []), (-32004, ["ERROR"]), (-32603, ["ERROR"])]
    )
    def test_mapped_on_jsonrpc(self, code: int, found: list[str]) -> None:
        assert verdicts(told(3, None, refusal(code=code)), "016") == found

    @pytest.mark.parametrize(("code", "found"), [(409, []), (400, ["ERROR"]), (412, ["WARNING"])])
    def test_mapped_on_rest(self, code: int, found: list[str]) -> None:
        params = send("go on", configuration={"ifGenerationMatch": "3"}, taskId="t1")
        body = rest_error(code, "ABORTED", MISMATCH)
        assert (
            verdicts(rest("POST", "/message:send", params, body, status=code, version="1.1"), "016")
            == found
        )

    @pytest.mark.parametrize(("code", "found"), [(10, []), (9, ["ERROR"])])
    def test_mapped_on_grpc(self, code: int, found: list[str]) -> None:
        params = send("go on", configuration={"ifGenerationMatch": "3"}, taskId="t1")
        call = grpc(
            "SendMessage", params, status=code, details=[error_info(MISMATCH)], version="1.1"
        )
        assert verdicts(call, "016") == found

    def test_aborted_for_another_reason(self) -> None:
        params = send("go on", configuration={"ifGenerationMatch": "3"}, taskId="t1")
        assert verdicts(grpc("SendMessage", params, status=10, version="1.1"), "016") == [
            "WARNING?"
        ]
        assert not verdicts(
            grpc("SendMessage", send("go on", taskId="t1"), status=10, version="1.1"), "016"
        )

    def test_ignored(self) -> None:
        assert verdicts(told(3, snapshot("COMPLETED")), "019") == ["WARNING?"]
        assert not verdicts(told(3, {"task": task("COMPLETED", id="t2")}, task_id=""), "019")
        assert not verdicts(told(3, {"message": reply()}), "019"), "a message has no number"


class TestClients:
    """017, 018."""

    def test_another_client_may_try(self) -> None:
        assert not verdicts(get(None) + get(None, current=3, client="127.0.0.2"), "017")
        assert verdicts(get(None) + get(None, current=3), "017") == ["ERROR?"]

    def test_read_again_in_time(self) -> None:
        gap = stream(FIRST, SECOND, chunk("b", generation="4"), EventPause(15), done(5))
        assert verdicts(gap, "018") == ["INFO"]
        assert not verdicts(run_together(gap, get(4), after=5000 * MS), "018")
        assert verdicts(run_together(gap, get(2), after=5000 * MS), "018") == ["INFO"], (
            "a snapshot from before the gap"
        )

    def test_a_stream_that_ends_needs_nothing(self) -> None:
        assert not verdicts(stream(FIRST, SECOND, chunk("b", generation="4"), done(5)), "018")

    def test_a_gap_that_is_filled_needs_no_reading(self) -> None:
        late = (chunk("b", generation="5"), EventPause(1), chunk("a", id="a2", generation="4"))
        rest = (chunk("c", id="a3", generation="3"), EventPause(12), done(6))
        assert not verdicts(stream(FIRST, SECOND, *late, *rest), "018")
        assert verdicts(stream(FIRST, SECOND, *late, EventPause(12), done(6)), "018") == ["INFO"], (
            "3 has not come"
        )


class TestValues:
    """020."""

    @pytest.mark.parametrize(
        ("value", "found"),
        [
            ("3", []),
            ("0", []),
            (3, ["INFO"]),
            ("3.5", ["ERROR"]),
            (3.5, ["ERROR"]),
            (-1, ["ERROR"]),
            ("-1", ["ERROR"]),
            ("9223372036854775808", ["ERROR"]),
            ("", ["ERROR"]),
            (True, ["ERROR"]),
            ({}, ["ERROR"]),
        ],
    )
    def test_values(self, value: Any, found: list[str]) -> None:
        assert (
            verdicts(rpc("GetTask", ID, task("WORKING", generation=value), version="1.1"), "020")
            == found
        )

    @pytest.mark.parametrize(
        ("value", "found"), [("3", []), (3, ["INFO"]), ("3.5", ["ERROR"]), (-1, ["ERROR"])]
    )
    def test_in_pushes(self, value: Any, found: list[str]) -> None:
        assert verdicts(push(chunk("a", generation=value)), "020") == found

    def test_in_requests(self) -> None:
        answer = task("WORKING", generation="3")
        assert verdicts(
            rpc("GetTask", ID | {"currentGeneration": "x"}, answer, version="1.1"), "020"
        ) == ["ERROR"]
        assert verdicts(
            rest("GET", "/tasks/t1?currentGeneration=x", result=answer, version="1.1"), "020"
        ) == ["ERROR"]
        match = {"ifGenerationMatch": "1e3"}
        params = send(taskId="t1", configuration=match)
        assert verdicts(rpc("SendMessage", params, {"task": answer}, version="1.1"), "020") == [
            "ERROR"
        ]

    def test_a_value_that_cannot_be_read_is_not_missing(self) -> None:
        script = stream(FIRST, SECOND, chunk("a", generation="x"), done(3))
        assert not verdicts(script, "004")
