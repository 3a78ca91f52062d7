"""Rules about generations: variants, near misses, races, all bindings."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.rules.examples.objects import Json, artifact, chunk, error_info, reply, send, snapshot, status, task
from a2a_proxy.rules.examples.script import MS, Script, both
from a2a_proxy.rules.examples.talk import (
    Wait,
    fetch_card,
    grpc,
    http,
    json_text,
    rest,
    rest_error,
    rest_stream,
    rpc,
    rpc_error,
    rpc_stream,
)
from support_rules import findings

SEND, SUB = "SendStreamingMessage", "SubscribeToTask"
ID = {"id": "t1"}
MISMATCH = "TASK_GENERATION_MISMATCH"
FIRST = snapshot(generation="1")
SECOND = status("WORKING", generation="2")
BINDINGS = ["jsonrpc", "rest", "grpc"]
EVERY = pytest.mark.parametrize("binding", BINDINGS)


def done(number: int) -> Json:
    """The last event."""
    return status("COMPLETED", second=1, generation=str(number))


def step(text: str, number: int | None) -> Json:
    """A progress update."""
    numbered = {} if number is None else {"generation": str(number)}
    return status("WORKING", said=reply(text, id=text), **numbered)


def verdicts(script: Script, number: str) -> list[str]:
    """Severities of what one rule says, with `?` where it is not sure."""
    return [
        each.severity.name + ("?" if each.confidence == "low" else "")
        for each in findings(script.then(fetch_card(), 20_000 * MS))
        if each.rule == f"A2A-GEN-{number}"
    ]


def words(script: Script, number: str) -> str:
    """What one rule says first."""
    return next(each.summary for each in findings(script) if each.rule == f"A2A-GEN-{number}")


def over(binding: str, *events: Any, subscribes: bool = False, version: str = "1.1", **options: Any) -> Script:
    """The same stream on any binding."""
    method, params = (SUB, ID) if subscribes else (SEND, send())
    if binding == "grpc":
        return grpc(method, params, *events, version=version, **options)
    if binding == "rest":
        target = "/tasks/t1:subscribe" if subscribes else "/message:stream"
        return rest_stream("POST", target, None if subscribes else params, *events, version=version, **options)
    return rpc_stream(method, params, *events, version=version, **options)


def stream(*events: Any, **options: Any) -> Script:
    """A stream that makes a task."""
    return over("jsonrpc", *events, **options)


def push(event: Json) -> Script:
    """A notification to the client's own server."""
    token: dict[str, str | None] = {"X-A2A-Notification-Token": "t"}
    return http("POST", "/hook", json_text(event), headers=token, host="client:9", upstream="http://client:9")


def get(number: int | None, *, current: int | None = None, binding: str = "jsonrpc", **options: Any) -> Script:
    """A client reads the task; `current`: it waits for changes after that."""
    answer = task(options.pop("state", "WORKING"), **({} if number is None else {"generation": str(number)}))
    options.setdefault("version", "1.1")
    wish = {} if current is None else {"currentGeneration": str(current)}
    if binding == "rest":
        query = "" if current is None else f"?currentGeneration={current}"
        return rest("GET", f"/tasks/t1{query}", result=answer, **options)
    if binding == "grpc":
        return grpc("GetTask", ID | wish, answer, **options)
    return rpc("GetTask", ID | wish, answer, id=9, **options)


class TestGaps:
    """001, 023."""

    @EVERY
    def test_found_on_every_binding(self, binding: str) -> None:
        assert verdicts(over(binding, FIRST, SECOND, chunk("a", generation="5"), done(6)), "001") == ["ERROR"]
        assert not verdicts(over(binding, FIRST, SECOND, chunk("a", generation="3"), done(4)), "001")

    def test_where_it_was_lost(self) -> None:
        events = (chunk("a", generation="3"), chunk("b", id="a2", generation="4"), done(5))
        whole = stream(FIRST, SECOND, Wait(0.5), *events)
        gap = over("grpc", snapshot("WORKING", generation="2"), Wait(1), *events[1:], subscribes=True)
        assert words(both(whole, gap, after=45 * MS), "001") == "4 after 2: 3 came elsewhere, lost on this stream"
        assert words(stream(FIRST, SECOND, *events[1:]), "001") == "4 after 2: 3 never came"

    def test_a_push_has_told_it(self) -> None:
        lost = chunk("a", generation="3")
        pushed = both(stream(FIRST, SECOND, Wait(1), done(4)), push(lost), after=300 * MS)
        assert words(pushed, "001") == "4 after 2: 3 came elsewhere, lost on this stream"

    def test_a_snapshot_that_brings_what_it_leaves_out(self) -> None:
        assert verdicts(stream(FIRST, SECOND, snapshot("COMPLETED", generation="3")), "001") == ["WARNING"]
        assert verdicts(stream(FIRST, SECOND, snapshot("COMPLETED", generation="4")), "001") == ["ERROR"]

    def test_without_a_snapshot_to_count_from(self) -> None:
        assert verdicts(stream(status("WORKING", generation="3"), done(4)), "001") == ["WARNING?"]
        late = rpc_stream(SEND, send(taskId="t1"), status("WORKING", generation="8"), done(9), version="1.1")
        assert not verdicts(late, "001")

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
        assert verdicts(stream(FIRST, SECOND, step("one", 2), chunk("x", generation="4"), done(5)), "001") == ["ERROR"]

    def test_messages_of_the_client(self) -> None:
        more = send("more", id="m2", taskId="t1")
        spoke = both(
            stream(FIRST, SECOND, Wait(1), chunk("a", generation="4"), done(5), version="1.0"),
            rpc("SendMessage", more, snapshot("WORKING", generation="3"), id=2, version="1.0"),
            after=500 * MS,
        )
        assert verdicts(spoke, "023") == ["INFO"]
        assert not verdicts(stream(FIRST, SECOND, chunk("a", generation="4"), done(5), version="1.0"), "023")


class TestRepeats:
    """002, 003, 004."""

    @EVERY
    def test_another_event(self, binding: str) -> None:
        script = over(binding, FIRST, SECOND, chunk("a", generation="2"), chunk("b", id="a2", generation="2"), done(9))
        assert verdicts(script, "002") == ["ERROR"]
        assert not verdicts(script, "001"), "the feature is off from there on"

    @EVERY
    def test_the_same_event_again(self, binding: str) -> None:
        a = chunk("a", generation="3")
        script = over(binding, FIRST, SECOND, a, a, chunk("b", id="a2", generation="5"), done(6))
        assert verdicts(script, "002") == ["WARNING"]
        assert verdicts(script, "001") == ["ERROR"], "a redelivery switches nothing off"

    def test_an_event_told_in_the_snapshot_too(self) -> None:
        assert not verdicts(stream(FIRST, status("SUBMITTED", generation="1"), SECOND, done(3)), "002")

    @EVERY
    def test_late(self, binding: str) -> None:
        a, b = chunk("a", generation="3"), chunk("b", id="a2", generation="4")
        script = over(binding, FIRST, SECOND, b, a, done(5))
        assert (verdicts(script, "001"), verdicts(script, "003")) == (["ERROR"], ["ERROR"])
        assert "fills a gap" in words(script, "003")

    def test_an_agent_that_begins_anew(self) -> None:
        """One finding, however long the new numbers go on below the old ones."""
        old = over("jsonrpc", snapshot("WORKING", generation="9"), subscribes=True)
        assert not verdicts(old, "003")
        again = [chunk(f"x{number}", id=f"a{number}", generation=str(number)) for number in range(2, 6)]
        events = (snapshot("WORKING", generation="9"), chunk("a", generation="10"), *again)
        assert verdicts(over("jsonrpc", *events, subscribes=True), "003") == ["ERROR"]

    @EVERY
    def test_no_number_any_more(self, binding: str) -> None:
        assert verdicts(over(binding, FIRST, SECOND, chunk("a"), status("COMPLETED", second=1)), "004") == ["ERROR"]
        assert verdicts(over(binding, FIRST, SECOND, step("one", None), done(3)), "004") == ["WARNING"]

    def test_clients_of_an_older_version_get_none(self) -> None:
        assert not verdicts(get(3) + get(None, version="1.0"), "004")
        assert verdicts(get(3) + get(None), "004") == ["ERROR?"]

    def test_a_late_push_is_no_regress(self) -> None:
        events = (chunk("a", generation="3"), chunk("b", id="a2", generation="4"))
        script = both(stream(FIRST, SECOND, *events, Wait(1), done(5)), push(events[0]), after=500 * MS)
        assert not verdicts(script, "003")
        assert not verdicts(script, "021")


class TestSnapshots:
    """005 to 008, 021."""

    def test_told_once_an_agent(self) -> None:
        assert verdicts(get(None) + get(None, current=2), "005") == ["INFO?"]
        assert not verdicts(get(None, version="1.0"), "005")

    def test_new_tasks(self) -> None:
        assert verdicts(stream(snapshot("WORKING", generation="2"), done(3)), "006") == ["INFO"]
        answer = {"task": task("COMPLETED", generation="4")}
        assert not verdicts(rpc("SendMessage", send(), answer, version="1.1"), "006")

    def test_nought_where_others_have_numbers(self) -> None:
        zero = rpc_stream(SEND, send(id="m2"), {"task": task("SUBMITTED", id="t2")}, finish="open", version="1.1")
        assert verdicts(stream(FIRST, SECOND, done(3)) + zero, "006") == ["WARNING"]
        assert not verdicts(zero, "006")

    def test_a_state_without_its_number(self) -> None:
        assert verdicts(get(3) + get(3, state="COMPLETED"), "008") == ["WARNING?"]
        whole = rpc("GetTask", ID, task("WORKING", generation="3", artifacts=[artifact()]), version="1.1")
        assert not verdicts(get(3) + whole, "008"), "artifacts may be left out"

    @EVERY
    def test_the_same_event_on_two_bindings(self, binding: str) -> None:
        def two(one: Json, two: Json) -> Script:
            first = stream(FIRST, SECOND, Wait(0.5), one, done(4))
            other = over(binding, snapshot("WORKING", generation="2"), Wait(0.5), two, done(4), subscribes=True)
            return both(first, other, after=45 * MS)

        data = {"artifactId": "a1", "name": "result", "parts": [{"data": {"x": 1}}]}
        event = {"artifactUpdate": {"taskId": "t1", "contextId": "c1", "artifact": data, "generation": "3"}}
        assert not verdicts(two(event, event), "021")
        assert verdicts(two(event, chunk("x", generation="3")), "021") == ["ERROR"]

    def test_a_push_that_says_something_else(self) -> None:
        def pushed(event: Json) -> Script:
            return both(
                stream(FIRST, SECOND, chunk("a", generation="3"), Wait(1), done(4)), push(event), after=500 * MS
            )

        assert not verdicts(pushed(chunk("a", generation="3")), "021")
        assert verdicts(pushed(chunk("b", generation="3")), "021") == ["ERROR"]
        assert not verdicts(pushed(step("one", 3)), "021"), "a progress update may repeat the number"


class TestLongPoll:
    """009 to 011: compared with what had passed before the request."""

    @EVERY
    def test_held(self, binding: str) -> None:
        assert verdicts(get(7) + get(7, current=5, binding=binding, seconds=3), "009") == ["ERROR?"]
        assert not verdicts(get(7) + get(8, current=7, binding=binding, seconds=3), "009")
        assert not verdicts(get(7) + get(7, current=5, binding=binding, seconds=1), "009")

    def test_news_that_came_after_the_request(self) -> None:
        script = both(
            stream(FIRST, SECOND, Wait(1), chunk("a", generation="3"), Wait(4), done(4)),
            get(4, current=2, state="COMPLETED", seconds=4.5),
            after=500 * MS,
        )
        assert not verdicts(script, "009")

    def test_a_client_that_gives_up(self) -> None:
        asks = rpc("GetTask", ID | {"currentGeneration": "5"}, id=2, version="1.1")
        assert not verdicts(get(7) + asks, "009")

    @EVERY
    def test_not_held(self, binding: str) -> None:
        assert verdicts(get(5, current=5, binding=binding), "010") == ["INFO"]
        assert not verdicts(get(5, current=5, binding=binding, seconds=1.5), "010")
        assert not verdicts(get(5, current=5, binding=binding, state="COMPLETED"), "010")
        assert not verdicts(get(5, binding=binding), "010")

    @EVERY
    def test_an_explicit_nought(self, binding: str) -> None:
        assert verdicts(get(None) + get(None, current=0, binding=binding), "017") == ["ERROR?"]

    @EVERY
    def test_older(self, binding: str) -> None:
        assert verdicts(get(7) + get(6, current=7, binding=binding), "011") == ["WARNING?"]
        assert not verdicts(get(7) + get(7, current=7, binding=binding), "011")

    def test_a_number_that_the_client_made_up(self) -> None:
        assert not verdicts(both(stream(FIRST, SECOND, Wait(1), done(3)), get(2, current=9), after=300 * MS), "011")


def told(
    match: int | None, result: Json | None, error: Json | None = None, task_id: str = "t1", **options: Any
) -> Script:
    """A message with `ifGenerationMatch`."""
    configuration = None if match is None else {"ifGenerationMatch": str(match)}
    params = send("go on", id="m2", configuration=configuration, **({"taskId": task_id} if task_id else {}))
    return rpc("SendMessage", params, result, error=error, id=2, version="1.1", **options)


def refusal(current: int = 5, code: int = -32010) -> Json:
    """TaskGenerationMismatchError."""
    return rpc_error(code, MISMATCH, taskId="t1", expectedGeneration="3", currentGeneration=str(current))


class TestPrecondition:
    """012 to 016, 019: an acceptance is compared with what had passed before the request."""

    ANSWER = snapshot("COMPLETED", second=1, generation="7")

    def test_stale(self) -> None:
        assert verdicts(get(5) + told(3, self.ANSWER), "012") == ["ERROR?"]
        assert not verdicts(get(5) + told(5, self.ANSWER), "012")
        assert not verdicts(told(3, self.ANSWER), "012")

    def test_a_change_while_the_agent_worked(self) -> None:
        script = both(
            stream(FIRST, SECOND, Wait(1), chunk("a", generation="3"), done(4)),
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

    @pytest.mark.parametrize(("code", "found"), [(-32010, []), (-32004, ["ERROR"]), (-32603, ["ERROR"])])
    def test_mapped_on_jsonrpc(self, code: int, found: list[str]) -> None:
        assert verdicts(told(3, None, refusal(code=code)), "016") == found

    @pytest.mark.parametrize(("code", "found"), [(409, []), (400, ["ERROR"]), (412, ["WARNING"])])
    def test_mapped_on_rest(self, code: int, found: list[str]) -> None:
        params = send("go on", configuration={"ifGenerationMatch": "3"}, taskId="t1")
        body = rest_error(code, "ABORTED", MISMATCH)
        assert verdicts(rest("POST", "/message:send", params, body, status=code, version="1.1"), "016") == found

    @pytest.mark.parametrize(("code", "found"), [(10, []), (9, ["ERROR"])])
    def test_mapped_on_grpc(self, code: int, found: list[str]) -> None:
        params = send("go on", configuration={"ifGenerationMatch": "3"}, taskId="t1")
        call = grpc("SendMessage", params, status=code, details=[error_info(MISMATCH)], version="1.1")
        assert verdicts(call, "016") == found

    def test_aborted_for_another_reason(self) -> None:
        params = send("go on", configuration={"ifGenerationMatch": "3"}, taskId="t1")
        assert verdicts(grpc("SendMessage", params, status=10, version="1.1"), "016") == ["WARNING?"]
        assert not verdicts(grpc("SendMessage", send("go on", taskId="t1"), status=10, version="1.1"), "016")

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
        gap = stream(FIRST, SECOND, chunk("b", generation="4"), Wait(15), done(5))
        assert verdicts(gap, "018") == ["INFO"]
        assert not verdicts(both(gap, get(4), after=5000 * MS), "018")
        assert verdicts(both(gap, get(2), after=5000 * MS), "018") == ["INFO"], "a snapshot from before the gap"

    def test_a_stream_that_ends_needs_nothing(self) -> None:
        assert not verdicts(stream(FIRST, SECOND, chunk("b", generation="4"), done(5)), "018")


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
        assert verdicts(rpc("GetTask", ID, task("WORKING", generation=value), version="1.1"), "020") == found

    @pytest.mark.parametrize(("value", "found"), [("3", []), (3, ["INFO"]), ("3.5", ["ERROR"]), (-1, ["ERROR"])])
    def test_in_pushes(self, value: Any, found: list[str]) -> None:
        assert verdicts(push(chunk("a", generation=value)), "020") == found

    def test_in_requests(self) -> None:
        answer = task("WORKING", generation="3")
        assert verdicts(rpc("GetTask", ID | {"currentGeneration": "x"}, answer, version="1.1"), "020") == ["ERROR"]
        assert verdicts(rest("GET", "/tasks/t1?currentGeneration=x", result=answer, version="1.1"), "020") == ["ERROR"]
        match = {"ifGenerationMatch": "1e3"}
        params = send(taskId="t1", configuration=match)
        assert verdicts(rpc("SendMessage", params, {"task": answer}, version="1.1"), "020") == ["ERROR"]

    def test_a_value_that_cannot_be_read_is_not_missing(self) -> None:
        script = stream(FIRST, SECOND, chunk("a", generation="x"), done(3))
        assert not verdicts(script, "004")


def test_agents_without_generations_are_left_alone() -> None:
    events = (snapshot(), status("WORKING"), chunk("a"), chunk("b", id="a2"), status("COMPLETED", second=1))
    found = findings(stream(*events, version="1.0") + get(None, version="1.0"))
    assert not [each for each in found if each.rule.startswith("A2A-GEN")]
