"""Rules about artifacts: in chunks, on several streams, and in snapshots."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.model.values import Severity
from a2a_proxy.rules.examples.conversation import (
    EventPause,
    grpc,
    rest,
    rest_stream,
    rpc,
    rpc_stream,
)
from a2a_proxy.rules.examples.objects import Json, artifact, chunk, send, snapshot, status, task
from a2a_proxy.rules.examples.script import MS, Script, run_together
from support_rules import findings

EVERY = pytest.mark.parametrize("binding", ["jsonrpc", "rest", "grpc"])
SECOND = 1000 * MS
GET = {"id": "t1"}
DONE = status("COMPLETED", second=1)
BEGUN = rpc("SendMessage", send(configuration={"returnImmediately": True}), snapshot("WORKING"))
LAST = {"append": True, "lastChunk": True}
END = {"lastChunk": True}


def verdicts(script: Script, number: str) -> list[str]:
    """Severities of what one rule says, with `?` where it is not sure."""
    return [
        each.severity.name + ("?" if each.confidence == "low" else "")
        for each in findings(script)
        if each.rule == f"A2A-ART-{number}"
    ]


def numbers(script: Script) -> set[str]:
    """The rules about artifacts that have something to say."""
    return {each.rule[-3:] for each in findings(script) if each.rule.startswith("A2A-ART-")}


def stream(binding: str, *events: Any, **options: Any) -> Script:
    """A new task on any binding, COMPLETED in the end."""
    told = (snapshot(), *events, DONE)
    if binding == "grpc":
        return grpc("SendStreamingMessage", send(), *told, **options)
    if binding == "rest":
        return rest_stream("POST", "/message:stream", send(), *told, **options)
    return rpc_stream("SendStreamingMessage", send(), *told, **options)


def get(binding: str, *artifacts: Json) -> Script:
    """GetTask on any binding."""
    answer = task("COMPLETED", second=1, artifacts=list(artifacts))
    if binding == "grpc":
        return grpc("GetTask", GET, answer)
    return (
        rest("GET", "/tasks/t1", None, answer) if binding == "rest" else rpc("GetTask", GET, answer)
    )


@EVERY
def test_chunks_in_the_wrong_place(binding: str) -> None:
    """Before the first, after the last, without an end."""
    assert numbers(stream(binding, chunk("a", **LAST))) == {"001"}
    assert numbers(stream(binding, chunk("a", lastChunk=True), chunk("b", append=True))) == {"002"}
    assert numbers(stream(binding, chunk("a"), chunk("b", append=True))) == {"003"}
    assert numbers(stream(binding, chunk("a"), chunk("b"))) == {"004"}
    assert not numbers(stream(binding, chunk("a"), chunk("b", append=True), chunk("c", **LAST)))
    assert not numbers(stream(binding, chunk("whole"))), "one update needs no last chunk"


def test_a_replaced_artifact_starts_over() -> None:
    """What was said of the one before it no longer counts."""
    again = stream("jsonrpc", chunk("a"), chunk("b", **LAST), chunk("c"), chunk("d", **LAST))
    assert numbers(again) == {"004"}


def test_an_artifact_of_a_snapshot_is_known() -> None:
    """On the stream, and in an answer before it."""
    begun = snapshot("WORKING", artifacts=[artifact("a")])
    on_stream = rpc_stream("SendStreamingMessage", send(), begun, chunk("b", **LAST), DONE)
    assert not numbers(on_stream)
    seen = BEGUN + rpc("GetTask", GET, task("WORKING", artifacts=[artifact("a")]))
    assert not numbers(
        seen + rpc_stream("SubscribeToTask", GET, snapshot("WORKING"), chunk("b", **LAST), DONE)
    )


def test_late_streams_are_not_blamed_for_missing_starts() -> None:
    """The beginning may have passed unseen."""
    joined = rpc_stream("SubscribeToTask", GET, snapshot("WORKING"), chunk("b", **LAST), DONE)
    assert verdicts(BEGUN + joined, "001") == ["INFO?"]


@pytest.mark.parametrize("pause", [0.1, 2])
def test_equal_chunks_on_two_streams_are_not_flagged(pause: float) -> None:
    """Each shows the other's past: no artifact is appended to, replaced or ended twice by that."""
    events = (
        chunk("a"),
        EventPause(pause),
        chunk("b", append=True),
        EventPause(pause),
        chunk("c", **LAST),
        EventPause(pause),
        DONE,
    )
    first = rpc_stream("SubscribeToTask", GET, snapshot("WORKING"), *events)
    second = grpc("SubscribeToTask", GET, snapshot("WORKING"), *events)
    told = BEGUN + run_together(first, second, after=SECOND) + get("rest", artifact("abc"))
    assert not numbers(told)


def test_a_stream_that_goes_on_where_another_broke_off() -> None:
    """It came after all that the other has shown, so what it shows is judged by that."""
    broken = rpc_stream(
        "SubscribeToTask", GET, snapshot("WORKING"), chunk("a"), chunk("b", **LAST), finish="leave"
    )
    again = rpc_stream("SubscribeToTask", GET, snapshot("WORKING"), chunk("c", append=True), DONE)
    assert verdicts(BEGUN + broken + again, "002") == ["WARNING"]
    held = get("jsonrpc", artifact("abc and what nobody saw"))
    assert not verdicts(BEGUN + broken + again + held, "006"), (
        "something may have passed in between"
    )


@EVERY
def test_a_snapshot_that_differs_from_the_stream_is_flagged(binding: str) -> None:
    """However it is cut into parts; in the answer to GetTask and at the end of the stream."""
    streamed = stream(binding, chunk("a"), chunk("b", **LAST))
    assert not numbers(streamed + get(binding, artifact("ab")))
    assert not numbers(streamed + get(binding, artifact("", parts=[{"text": "a"}, {"text": "b"}])))
    for wrong in ([artifact("a")], [artifact("ba")], []):
        assert verdicts(streamed + get(binding, *wrong), "006") == ["WARNING"]
    final = snapshot("COMPLETED", second=1, artifacts=[artifact("a")])
    lost = rpc_stream(
        "SendStreamingMessage", send(), snapshot(), chunk("a"), chunk("b", **LAST), DONE, final
    )
    assert verdicts(lost, "006") == ["WARNING"]


def test_non_text_content_is_compared_by_size_or_presence() -> None:
    """Raw content by its size, whatever the binding; data by its presence."""
    whole = artifact(parts=[{"raw": "AAEC", "mediaType": "image/png"}, {"data": {"n": 1}}])
    update = {"artifactUpdate": chunk("x")["artifactUpdate"] | {"artifact": whole}}
    assert not numbers(stream("grpc", update) + get("jsonrpc", whole))
    cut = artifact(parts=[{"raw": "AAE=", "mediaType": "image/png"}, {"data": {"n": 1}}])
    assert verdicts(stream("grpc", update) + get("jsonrpc", cut), "006") == ["WARNING"]


def test_snapshots_that_may_be_ahead_or_behind_are_not_judged() -> None:
    """Asked for before the end, or shown by a list, it proves nothing."""
    slow = rpc_stream(
        "SubscribeToTask",
        GET,
        snapshot("WORKING"),
        chunk("a"),
        EventPause(3),
        chunk("b", **LAST),
        DONE,
    )
    ahead = rpc("GetTask", GET, task("COMPLETED", second=1, artifacts=[artifact("ab")]), seconds=1)
    behind = rpc("GetTask", GET, task("WORKING", artifacts=[artifact("a")]), seconds=9)
    assert not verdicts(BEGUN + run_together(slow, ahead, after=SECOND), "006")
    assert not verdicts(BEGUN + run_together(slow, behind, after=SECOND), "006")


def test_broken_streams_are_not_compared() -> None:
    """Nobody knows what it would have shown."""
    broken = rpc_stream(
        "SendStreamingMessage", send(), snapshot("WORKING"), chunk("a"), finish="cut"
    )
    done = rpc("GetTask", GET, task("COMPLETED", second=1, artifacts=[artifact("ab")]))
    assert not verdicts(broken + done + done, "006")


def test_redacted_content_is_not_compared() -> None:
    """A secret that was cut in two is not replaced in the chunks, and is in the whole."""
    secret = "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJlLW9mLWl0"
    streamed = stream("jsonrpc", chunk(secret[:30]), chunk(secret[30:], **LAST))
    assert not verdicts(streamed + get("jsonrpc", artifact(secret)), "006")


@EVERY
def test_duplicate_artifact_ids_are_flagged(binding: str) -> None:
    """Also in a list, reported with its path."""
    assert verdicts(get(binding, artifact("x"), artifact("y")), "005") == ["ERROR"]
    assert not verdicts(get(binding, artifact("x"), artifact("y", id="a2")), "005")


def test_duplicate_artifact_ids_in_lists_are_flagged() -> None:
    """Each of its tasks is looked at."""
    tasks = [task(), task(id="t2", artifacts=[artifact("x"), artifact("y")])]
    listed = rpc(
        "ListTasks", {}, {"tasks": tasks, "totalSize": 2, "pageSize": 50, "nextPageToken": ""}
    )
    found = [each for each in findings(listed) if each.rule == "A2A-ART-005"]
    assert [each.evidence["path"] for each in found] == ["result.tasks[1].artifacts[1].artifactId"]


def test_generations_of_artifacts() -> None:
    """The range has to hold the updates that a stream has shown."""

    def ranged(start: str, end: str) -> Script:
        whole = artifact("ab", startGeneration=start, endGeneration=end)
        return rpc("GetTask", GET, task(second=1, artifacts=[whole], generation="5"), version="1.1")

    events = (
        snapshot(generation="1"),
        status("WORKING", generation="2"),
        chunk("a", generation="3"),
        chunk("b", generation="4", **LAST),
        status("COMPLETED", second=1, generation="5"),
    )
    streamed = rpc_stream("SendStreamingMessage", send(), *events, version="1.1")
    assert not verdicts(streamed + ranged("3", "4"), "008")
    assert verdicts(streamed + ranged("4", "4"), "008") == ["WARNING"]
    assert verdicts(streamed + ranged("5", "3"), "008") == ["WARNING"]


def test_artifacts_before_0_2_are_not_judged() -> None:
    """0.1 numbers them by `index`, and has its flags inside."""
    events = [
        {
            "id": "t1",
            "artifact": {"parts": [{"type": "text", "text": "a"}], "index": 0, "append": True},
        },
        {"id": "t1", "status": {"state": "completed"}, "final": True},
    ]
    asked = {"id": "t1", "message": {"role": "user", "parts": [{"type": "text", "text": "hi"}]}}
    assert not numbers(rpc_stream("tasks/sendSubscribe", asked, *events, version=""))


@EVERY
def test_a_chunk_without_an_id_is_the_only_finding(binding: str) -> None:
    """What follows is appended to what it may have been."""
    nameless = chunk("a")
    del nameless["artifactUpdate"]["artifact"]["artifactId"]
    script = stream(binding, nameless, chunk("b", **LAST))
    assert [each.rule for each in findings(script)] == ["A2A-SCH-001"]


def test_an_orphaned_chunk_has_no_end_to_wait_for() -> None:
    """It was appended to nothing: that is said, and that it was not finished is not."""
    assert numbers(stream("jsonrpc", chunk("a", append=True))) == {"001"}
    assert numbers(stream("jsonrpc", chunk("a", append=True), chunk("b", append=True))) == {
        "001",
        "003",
    }


@pytest.mark.parametrize(
    ("held", "summary"),
    [
        (
            [artifact("abc")],
            "carried 2 bytes of text of artifact a1, the Task in #2 has 3 bytes of text",
        ),
        ([], "carried 2 bytes of text of artifact a1, the Task in #2 lacks the artifact"),
        (
            [artifact("ab"), artifact("c", id="a2")],
            "carried no event of artifact a2 before completed, the Task in #2 has it",
        ),
    ],
)
def test_a_snapshot_that_differs_names_the_stream(held: list[dict[str, Any]], summary: str) -> None:
    """A reader must find the exchange whose chunks are incomplete, which is not the one with the
    finding."""
    script = stream("jsonrpc", chunk("a"), chunk("b", **LAST)) + get("jsonrpc", *held)
    (found,) = (each for each in findings(script) if each.rule == "A2A-ART-006")
    assert (found.exchange, found.summary, found.evidence["stream"]) == (
        2,
        f"the stream #1 {summary}",
        "1",
    )


@pytest.mark.parametrize("binding", ["jsonrpc", "rest", "grpc"])
@pytest.mark.parametrize(
    ("chunks", "severity", "end"),
    [
        (
            [chunk("It rains "), chunk("in Oslo ", append=True), chunk("today", **END)],
            Severity.WARNING,
            (
                ": 17 bytes of text by 5, and no more follow; if they continue the text, "
                "the client loses the earlier text"
            ),
        ),
        (  # the whole text again, without the white space at its end
            [
                chunk("It rains "),
                chunk("in Oslo.  ", append=True),
                chunk("It rains in Oslo.", **END),
            ],
            Severity.INFO,
            "(no `append`)",
        ),
        (  # a file in the place of the text
            [
                chunk("It rains "),
                chunk("in Oslo ", append=True),
                {
                    "artifactUpdate": chunk(**END)["artifactUpdate"]
                    | {"artifact": {"artifactId": "a1", "parts": [{"text": "a"}, {"raw": "aGk="}]}}
                },
            ],
            Severity.INFO,
            "(no `append`)",
        ),
        (  # a secret was replaced in it, so that its length is not known
            [
                chunk("It rains in Oslo, and in Bergen, and in Stavanger too, all of the year, "),
                chunk("as always ", append=True),
                chunk("ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5", **END),
            ],
            Severity.INFO,
            "(no `append`)",
        ),
        (  # the agent begins anew, and goes on
            [
                chunk("It rains "),
                chunk("in Oslo ", append=True),
                chunk("No"),
                chunk(", the sun shines", **LAST),
            ],
            Severity.INFO,
            "(no `append`): 17 bytes of text by 2",
        ),
        (  # a word of progress was replaced by the answer
            [chunk("thinking"), chunk("42", **END)],
            Severity.INFO,
            "(no `append`): 8 bytes of text by 2",
        ),
        (  # an empty chunk that only marks the end
            [chunk("It rains "), chunk("in Oslo ", append=True), chunk("", **END)],
            Severity.WARNING,
            (
                ": 17 bytes of text by 0, and no more follow; if they continue the text, "
                "the client loses the earlier text"
            ),
        ),
    ],
)
def test_what_a_replacement_loses(
    chunks: list[dict[str, Any]], severity: Severity, end: str, binding: str
) -> None:
    """A warning only if text that was appended is lost for good."""
    found = [each for each in findings(stream(binding, *chunks)) if each.rule == "A2A-ART-004"]
    assert [(each.severity, each.summary.endswith(end)) for each in found] == [(severity, True)]


@EVERY
def test_a_loss_without_a_last_chunk(binding: str) -> None:
    """Judged at the end of the task, once; nothing if all earlier text is there again."""
    begun = chunk("It rains "), chunk("in Oslo ", append=True)
    (replaced, lost) = verdicts_with_text(stream(binding, *begun, chunk("today")))
    assert replaced == ("INFO", "(no `append`): 17 bytes of text by 5")
    assert lost[0] == "WARNING?"
    assert "had 17 bytes of text in appended chunks, and has 5 at the end" in lost[1]
    again = chunk("Rain "), chunk("in Oslo today", append=True)
    assert [each[0] for each in verdicts_with_text(stream(binding, *begun, *again))] == ["INFO"]
    for whole in ("It rains in Oslo today", "It rains in Oslo "):
        for members in ({}, END):
            assert not verdicts(stream(binding, *begun, chunk(whole, **members)), "004")


@EVERY
def test_a_task_at_the_end_that_has_the_text(binding: str) -> None:
    """The client has it then."""
    begun = chunk("It rains "), chunk("in Oslo ", append=True), chunk("today")
    whole = snapshot("COMPLETED", second=1, artifacts=[artifact("It rains in Oslo today")])
    events = (snapshot(), *begun, whole)
    script = rpc_stream("SendStreamingMessage", send(), *events)
    if binding == "grpc":
        script = grpc("SendStreamingMessage", send(), *events)
    elif binding == "rest":
        script = rest_stream("POST", "/message:stream", send(), *events)
    assert [each[0] for each in verdicts_with_text(script)] == ["INFO"]


@EVERY
def test_lines_that_separate_others(binding: str) -> None:
    """Their text is not sent again."""
    line = "----------------\n"
    ruled = chunk(line), chunk(f"{line}{line}", **LAST)
    assert not verdicts(stream(binding, *ruled), "009")


def verdicts_with_text(script: Script) -> list[tuple[str, str]]:
    """Severities of what A2A-ART-004 says, and the end of its summary from "(no" on."""
    return [
        (
            each.severity.name + ("?" if each.confidence == "low" else ""),
            each.summary[max(each.summary.find("(no"), 0) :],
        )
        for each in findings(script)
        if each.rule == "A2A-ART-004"
    ]


def test_summaries_use_the_singular() -> None:
    """Not "1 updates"."""
    script = stream("rest", chunk("a"), chunk("b"))
    (found,) = (each.summary for each in findings(script) if each.rule == "A2A-ART-004")
    assert "the content of 1 update (" in found


WHOLE = rpc_stream("SendStreamingMessage", send(), snapshot(), status("COMPLETED", second=1))


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (WHOLE, ["A2A-ART-006"]),
        (
            rpc_stream(
                "SendStreamingMessage",
                send(),
                snapshot(),
                chunk("a"),
                status("COMPLETED", second=1),
            ),
            [],
        ),
        (
            rpc_stream(
                "SendStreamingMessage",
                send(),
                snapshot(artifacts=[artifact()]),
                status("COMPLETED"),
            ),
            [],
        ),
        (
            rpc_stream(
                "SendStreamingMessage", send(), snapshot(), "{}", status("COMPLETED", second=1)
            ),
            [],
        ),
        (
            rpc_stream(
                "SubscribeToTask", {"id": "t1"}, snapshot("WORKING"), status("COMPLETED", second=1)
            ),
            [],
        ),
        (rpc("SendMessage", send(), snapshot("COMPLETED", second=1)), []),
        (rpc_stream("SendStreamingMessage", send(), snapshot(), finish="cut"), []),
    ],
)
def test_an_artifact_that_no_event_carried(before: Script, expected: list[str]) -> None:
    """Only a stream that shows the task from its creation to its end proves it."""
    script = before + rpc(
        "GetTask", {"id": "t1"}, task("COMPLETED", second=1, artifacts=[artifact("a")])
    )
    assert [each.rule for each in findings(script) if each.rule == "A2A-ART-006"] == expected


def test_an_artifact_that_no_event_carried_is_reported_once() -> None:
    read = rpc("GetTask", {"id": "t1"}, task("COMPLETED", second=1, artifacts=[artifact()]))
    assert len([each for each in findings(WHOLE + read + read) if each.rule == "A2A-ART-006"]) == 1


@EVERY
def test_the_full_text_as_another_artifact(binding: str) -> None:
    """After two chunks; with at least 16 bytes on the same stream."""
    parts, full = (
        (chunk("It rains "), chunk("in Oslo", append=True, lastChunk=True)),
        "It rains in Oslo",
    )
    again = chunk(full, id="a2", lastChunk=True)
    assert numbers(stream(binding, *parts, again)) == {"010"}
    assert not numbers(stream(binding, *parts, chunk("It rains in Rome", id="a2", lastChunk=True)))
    assert not numbers(
        stream(binding, chunk("ha"), chunk("ha", **LAST), chunk("haha", id="a2", lastChunk=True))
    )


@EVERY
def test_the_full_text_after_its_chunks(binding: str) -> None:
    """Appended, it is there twice; in place of the chunks it is right; short texts may repeat by
    chance."""
    parts = chunk("It rains "), chunk("in Oslo", append=True)
    full = "It rains in Oslo"
    assert numbers(stream(binding, *parts, chunk(full, append=True, lastChunk=True))) == {"009"}
    assert not numbers(stream(binding, *parts, chunk(full, lastChunk=True)))
    assert not numbers(
        stream(binding, *parts, chunk(" today, heavily.", append=True, lastChunk=True))
    )
    assert not numbers(
        stream(binding, chunk("ha"), chunk("ha", append=True), chunk("haha", **LAST))
    )


WORDS = "It rains in Oslo today, and it is cold"


@EVERY
@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ((WORDS, WORDS), ["INFO?"]),
        (("It", "It rains", "It rains in Oslo", "It rains in Oslo today", WORDS), ["WARNING"]),
        ((WORDS, f"{WORDS} now"), ["WARNING"]),
        (("It", "It rains", "It rains too"), []),
        ((WORDS, f"{WORDS[:-1]}!", " now"), []),
        ((WORDS, f"{WORDS} now", " and then"), []),
        (("a line of a table\n", "a line of a table\n", "another"), []),
    ],
    ids=["once more", "longer each time", "longer", "short", "other", "by chance", "a line twice"],
)
def test_earlier_text_appended_again(
    binding: str, texts: tuple[str, ...], found: list[str]
) -> None:
    """Each update but the first has `append`, and the last is the last chunk."""
    first, *middle, last = texts
    events = (chunk(first), *(chunk(each, append=True) for each in middle), chunk(last, **LAST))
    assert verdicts(stream(binding, *events), "009") == found


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ([chunk("It rains ", append=True), chunk("in Oslo", append=True)], ["WARNING"]),
        ([chunk("It rains in Oslo today", append=True)], ["WARNING"]),
        ([chunk("It rains "), chunk("in Oslo", append=True)], []),
        ([chunk(" today", append=True), chunk("It rains in Oslo", append=True)], []),
        ([chunk("It rains ", append=True)], []),
    ],
    ids=["in pieces", "with more", "from the beginning", "later", "a part"],
)
@EVERY
def test_the_text_of_the_first_task_appended_again(
    binding: str, events: list[Json], found: list[str]
) -> None:
    """A subscription begins with a Task that has the text so far."""
    shown = snapshot("WORKING", artifacts=[artifact("It rains in Oslo")])
    told = (shown, *events, chunk("!", **LAST), DONE)
    if binding == "grpc":
        script = grpc("SubscribeToTask", GET, *told)
    elif binding == "rest":
        script = rest_stream("POST", "/tasks/t1:subscribe", None, *told)
    else:
        script = rpc_stream("SubscribeToTask", GET, *told)
    assert verdicts(BEGUN + script, "009") == found


@EVERY
def test_a_text_in_two_artifacts(binding: str) -> None:
    """Whether the first or the second comes in one update, or both are in one answer."""
    one, other = chunk(WORDS, **END), chunk(WORDS, id="a2", **END)
    assert verdicts(stream(binding, one, other), "010") == ["INFO"]
    parts = chunk(WORDS[:9], id="a2"), chunk(WORDS[9:], id="a2", **LAST)
    assert verdicts(stream(binding, one, *parts), "010") == ["INFO"]
    assert not verdicts(stream(binding, one, chunk(f"{WORDS}!", id="a2", **END)), "010")
    two = snapshot("COMPLETED", artifacts=[artifact(WORDS), artifact(WORDS, id="a2")])
    assert verdicts(rpc("SendMessage", send(), two), "010") == ["INFO"]
    again = rpc("SendMessage", send(), two) + get(binding, *two["task"]["artifacts"])
    assert verdicts(again, "010") == ["INFO"], "once for a task"
