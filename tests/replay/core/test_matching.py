"""Which parts of a request are compared, and which values stand for others."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Binding, Dialect
from a2a_proxy.redaction.payload import redact_payload
from a2a_proxy.redaction.scrubber import Scrubber
from a2a_proxy.replay.core.miss import Miss, MissKind
from a2a_proxy.replay.core.options import MatchPreset, ReplayOptions
from a2a_proxy.replay.core.player import Player
from support_replay import CONTEXT, TASK, Stage, again, call, message, one, script, task

SENT = call(
    1,
    "SendMessage",
    message("book a table", contextId="ctx-of-the-client"),
    ("s", 5, task()),
    ("s", 5, "end"),
)
ASKED = call(
    2, "GetTask", {"id": TASK}, ("s", 1, task(TaskState.COMPLETED)), ("s", 1, "end"), began=20
)
NEW = message("book a table", "m-now", contextId="ctx-of-now")


def test_answers_use_the_ids_of_the_client() -> None:
    stage = Stage(script(SENT, ASKED))
    answer = one(stage.run(stage.ask("SendMessage", NEW)))
    assert answer["task"]["id"] == TASK
    assert answer["task"]["contextId"] == CONTEXT
    assert one(stage.run(stage.ask("GetTask", {"id": TASK})))["task"]["status"] == {
        "state": "TASK_STATE_COMPLETED"
    }


def test_answers_name_the_current_ids() -> None:
    answered = {"id": TASK, "contextId": "ctx-of-the-client", "history": [message("x")["message"]]}
    expected = {"task": answered | {"metadata": {"note": "in ctx-of-the-client since today"}}}
    stage = Stage(script(call(1, "SendMessage", SENT.request, ("s", 5, expected), ("s", 5, "end"))))
    answer = one(stage.run(stage.ask("SendMessage", NEW)))["task"]
    assert answer["contextId"] == "ctx-of-now"
    assert answer["metadata"] == {"note": "in ctx-of-now since today"}
    assert answer["history"][0]["messageId"] == "m-now"


def test_a_follow_up_must_name_the_returned_task() -> None:
    more = call(
        2, "SendMessage", message("four", taskId=TASK), ("s", 5, task(TaskState.COMPLETED)), began=9
    )
    stage = Stage(script(SENT, more))
    stage.run(stage.ask("SendMessage", NEW))
    miss = stage.miss("SendMessage", message("four", taskId="another-task-of-now"))
    assert miss.kind is MissKind.DIFFERS
    assert [row.right for row in miss.rows] == [("message", "taskId")]
    assert stage.ask("SendMessage", message("four", taskId=TASK)).call is more


def test_unknown_tasks_match_unknown_tasks() -> None:
    lost = call(1, "GetTask", {"id": "nowhere-then"}, ("s", 1, "end"))
    assert Stage(script(lost)).ask("GetTask", {"id": "nowhere-now"}).call is lost


def test_other_ids_do_not_match_ids_of_the_agent() -> None:
    """The client has not received the task yet, and cannot know it by another id."""
    stage = Stage(script(SENT, ASKED))
    assert [row.right for row in stage.miss("GetTask", {"id": "any-other"}).rows] == [("id",)]
    assert stage.ask("GetTask", {"id": TASK}).call is ASKED


def test_a_text_names_the_ids_of_the_client() -> None:
    """A text that names an identifier matches one with the identifier of the client in its place,
    and no other."""
    more = call(
        2,
        "SendMessage",
        message("see ctx-of-the-client"),
        ("s", 1, task(TaskState.COMPLETED)),
        began=9,
    )
    stage = Stage(script(SENT, more))
    stage.run(stage.ask("SendMessage", NEW))
    assert [row.right for row in stage.miss("SendMessage", message("see ctx-of-others")).rows] == [
        ("message", "parts", 0, "text")
    ]
    assert stage.ask("SendMessage", message("see ctx-of-now")).call is more


def test_two_conversations_do_not_mix() -> None:
    """The same words in two tasks: what was said first decides which task is meant, not who comes
    first."""
    other = "33333333-cccc-4ccc-8ccc-333333333333"
    first = call(1, "SendMessage", message("hello"), ("s", 1, task()))
    second = call(
        2, "SendMessage", message("hello", "m-2"), ("s", 1, task(identifier=other)), began=1
    )
    yes = call(
        3, "SendMessage", message("yes", taskId=TASK), ("s", 1, task(TaskState.COMPLETED)), began=10
    )
    no = call(
        4,
        "SendMessage",
        message("yes", taskId=other),
        ("s", 1, task(TaskState.FAILED, other)),
        began=11,
    )
    stage = Stage(script(first, second, yes, no))
    stage.run(stage.ask("SendMessage", message("hello")))
    stage.run(stage.ask("SendMessage", message("hello", "m-2")))
    assert stage.ask("SendMessage", message("yes", taskId=other)).call is no
    assert stage.ask("SendMessage", message("yes", taskId=TASK)).call is yes


def test_the_client_selects_among_conversations_with_equal_starts() -> None:
    """Recorded with a yes first; this client answers no, with the task id it got."""
    other = "33333333-cccc-4ccc-8ccc-333333333333"
    first = call(
        1,
        "SendMessage",
        message("deploy"),
        ("s", 1, task(TaskState.INPUT_REQUIRED)),
        ("s", 1, "end"),
    )
    yes = call(
        2, "SendMessage", message("yes", taskId=TASK), ("s", 1, task(TaskState.COMPLETED)), began=10
    )
    second = call(
        3,
        "SendMessage",
        message("deploy", "m-3"),
        ("s", 1, task(TaskState.INPUT_REQUIRED, other)),
        ("s", 1, "end"),
        began=20,
    )
    no = call(
        4,
        "SendMessage",
        message("no", taskId=other),
        ("s", 1, task(TaskState.REJECTED, other)),
        began=30,
    )
    look = call(5, "GetTask", {"id": other}, ("s", 1, task(TaskState.REJECTED, other)), began=40)
    stage = Stage(script(first, yes, second, no, look))
    assert one(stage.run(stage.ask("SendMessage", message("deploy"))))["task"]["id"] == TASK
    answered = one(stage.run(stage.ask("SendMessage", message("no", taskId=TASK))))["task"]
    assert (answered["id"], answered["status"]["state"]) == (TASK, "TASK_STATE_REJECTED")
    assert one(stage.run(stage.ask("GetTask", {"id": TASK})))["task"]["id"] == TASK
    assert [each.place for each in stage.player.unused_calls()] == ["#1", "#2"]
    again_ = one(stage.run(stage.ask("SendMessage", message("deploy"))))["task"]["id"]
    assert again_ != TASK
    assert one(stage.run(stage.ask("SendMessage", message("yes", taskId=again_))))["task"][
        "status"
    ] == {"state": "TASK_STATE_COMPLETED"}
    assert not stage.player.misses


LOOKED_AT: list[tuple[str, dict[str, Any], bool]] = [
    ("text", message("book two tables"), False),
    ("data", {"message": {**NEW["message"], "parts": [{"data": {"n": 1}}]}}, False),
    ("configuration", {**NEW, "configuration": {"returnImmediately": True}}, False),
    ("a default", {**NEW, "configuration": {"returnImmediately": False}}, True),
    ("metadata", {**NEW, "metadata": {"trace": "1"}}, True),
    ("extensions", {"message": {**NEW["message"], "extensions": ["https://example.com/x"]}}, True),
    ("no context", message("book a table"), False),
]


@pytest.mark.parametrize(
    ("value", "fits"), [row[1:] for row in LOOKED_AT], ids=[row[0] for row in LOOKED_AT]
)
def test_compared_members_of_a_request(value: dict[str, Any], fits: bool) -> None:
    found = Player(script(SENT)).begin_call(again(SENT, value=value), 0)
    assert isinstance(found, Miss) is not fits


def test_the_tenant_counts() -> None:
    assert isinstance(Player(script(SENT)).begin_call(again(SENT, tenant="other"), 0), Miss)


@pytest.mark.parametrize("dialect", [Dialect.V0_3, Dialect.V1_1])
def test_binding_and_dialect_are_not_compared(dialect: Dialect) -> None:
    asked = again(SENT, binding=Binding.REST, dialect=dialect)
    assert not isinstance(Player(script(SENT)).begin_call(asked, 0), Miss)


def test_strict_compares_metadata_and_headers() -> None:
    plain = (
        (b"x-team", b"red"),
        (b"authorization", b"Bearer redacted-0123456789ab"),
        (b"user-agent", b"then"),
    )
    recorded = call(
        1, "SendMessage", {**SENT.request, "metadata": {"a": 1}}, ("s", 1, task()), headers=plain
    )
    strict = ReplayOptions(match=MatchPreset.STRICT)
    now = (
        (b"X-Team", b"red"),
        (b"authorization", b"Bearer s3cret"),
        (b"user-agent", b"now"),
        (b"traceparent", b"00-1"),
    )
    assert not isinstance(
        Player(script(recorded), strict).begin_call(again(recorded, headers=now), 0), Miss
    )
    blue = ((b"x-team", b"blue"),)
    miss = Player(script(recorded), strict).begin_call(again(recorded, headers=blue), 0)
    assert isinstance(miss, Miss)
    assert ("headers", "x-team") in [row.right for row in miss.rows]
    assert isinstance(
        Player(script(recorded), strict).begin_call(again(recorded, value=SENT.request), 0), Miss
    )


def test_a_strict_difference_of_headers_names_the_header() -> None:
    """Its path begins with `headers`, on both sides, in the text and for programs."""
    then = ((b"x-changed", b"red"), (b"x-removed", b"1"))
    now = ((b"x-changed", b"blue"), (b"x-added", b"2"))
    recorded = call(1, "GetTask", {"id": "t"}, ("s", 1, "end"), headers=then)
    miss = Player(script(recorded), ReplayOptions(match=MatchPreset.STRICT)).begin_call(
        again(recorded, headers=now), 0
    )
    assert isinstance(miss, Miss)
    paths = {("headers", name) for name in ("x-changed", "x-removed", "x-added")}
    assert [{row.left for row in miss.rows}, {row.right for row in miss.rows}] == [paths, paths]
    assert (
        '    $.headers.x-changed: recorded "red", requested "blue"' in miss.full_text().splitlines()
    )
    assert {row["path"] for row in miss.error_detail()["differences"]} == {
        f"$.headers.{name}" for name in ("x-changed", "x-removed", "x-added")
    }


def test_by_operation_compares_only_the_operation() -> None:
    stage = Stage(script(SENT, ASKED), match=MatchPreset.BY_OPERATION)
    assert stage.ask("SendMessage", message("anything")).call is SENT
    assert stage.ask("GetTask", {"id": "any"}).call is ASKED


def test_loose_takes_the_nearest_call_and_reports_it() -> None:
    far = call(
        2, "SendMessage", message("cancel all my plans", taskId=TASK), ("s", 1, task()), began=9
    )
    stage = Stage(script(SENT, far), match=MatchPreset.LOOSE)
    assert stage.ask("SendMessage", message("book a tabel", contextId="c")).call is SENT
    assert not stage.player.misses
    assert [miss.nearest for miss in stage.player.allowed_misses] == ["#1"]


def test_unknown_methods_are_answered_as_recorded() -> None:
    odd = call(1, "tasks/nonsense", {}, ("s", 1, {"error": {"code": -32601}}), ("s", 1, "end"))
    stage = Stage(script(odd))
    assert one(stage.run(stage.ask("tasks/nonsense", {"id": 9}))) == {"error": {"code": -32601}}


def test_a_redaction_label_matches_any_value() -> None:
    label = "redacted-0123456789ab"
    asked = message(f"my key is {label}, use it")
    label_answer = {"message": {"messageId": "m", "parts": [{"text": f"used {label}"}]}}
    stage = Stage(script(call(1, "SendMessage", asked, ("s", 1, label_answer), ("s", 1, "end"))))
    miss = stage.miss("SendMessage", message("my key is lost, do not use it"))
    assert miss.kind is MissKind.DIFFERS
    answer = one(stage.run(stage.ask("SendMessage", message("my key is hunter2, use it"))))
    assert answer["message"]["parts"] == [{"text": "used hunter2"}]


_TEXT = st.text(max_size=24) | st.sampled_from(
    [TASK, f"see {TASK}", "redacted-0123456789ab", "0", "null"]
)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)
_PARTS = st.lists(
    st.fixed_dictionaries(
        {}, optional={"text": _TEXT, "data": _JSON, "url": _TEXT, "metadata": _JSON}
    ),
    max_size=3,
)
_REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "message": st.fixed_dictionaries(
            {"parts": _PARTS},
            optional={
                "messageId": _TEXT,
                "taskId": _TEXT,
                "contextId": _TEXT,
                "referenceTaskIds": st.lists(_TEXT),
            },
        ),
        "configuration": _JSON,
        "metadata": _JSON,
        "id": _TEXT,
        "tenant": _TEXT,
        "anything": _JSON,
    },
)


@given(_REQUESTS, st.sampled_from([MatchPreset.DEFAULT, MatchPreset.STRICT]))
def test_any_request_matches_itself(request: dict[str, Any], preset: MatchPreset) -> None:
    recorded = call(1, "SendMessage", request, ("s", 1, "end"))
    found = Player(script(recorded), ReplayOptions(match=preset)).begin_call(again(recorded), 0)
    assert not isinstance(found, Miss), found.full_text()


@pytest.mark.parametrize("depth", [60, 70, 130, 800])
def test_deeply_nested_requests_match_themselves(depth: int) -> None:
    deep: list[Any] = ["x"]
    for _ in range(depth):
        deep = [deep]
    recorded = call(1, "SendMessage", {"message": {"parts": [{"data": deep}]}}, ("s", 1, "end"))
    assert not isinstance(Player(script(recorded)).begin_call(again(recorded), 0), Miss)


_SECRET = st.sampled_from(
    [
        "Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "my password=hunter2hunter2 and more",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_0123456789abcdefghijklmnopqrstuvwxyz",
        "https://user:pa55w0rd@example.com/x?api_key=0123456789abcdef",
    ]
)
_SAID = st.text(alphabet='ab \u00e9\n"\\', max_size=8)
_SECRETIVE = st.fixed_dictionaries(
    {
        "message": st.fixed_dictionaries(
            {"parts": st.lists(st.fixed_dictionaries({"text": _SECRET | _SAID}), max_size=3)}
        )
    },
    optional={
        "configuration": st.fixed_dictionaries(
            {
                "taskPushNotificationConfig": st.fixed_dictionaries(
                    {
                        "url": st.just("https://example.com/hook"),
                        "token": _SECRET | st.just("t0ken-0f-mine"),
                    },
                    optional={
                        "authentication": st.fixed_dictionaries(
                            {"scheme": st.just("Bearer"), "credentials": _SECRET}
                        )
                    },
                )
            }
        ),
        "password": _SECRET | _SAID,
    },
)


@given(_SECRETIVE, st.sampled_from([MatchPreset.DEFAULT, MatchPreset.STRICT]))
def test_a_request_matches_what_redaction_has_left_of_it(
    request: dict[str, Any], preset: MatchPreset
) -> None:
    data = redact_payload(
        Scrubber(b"key of the recorder"), "json", msgspec.json.encode(request), cut=False
    )[0]
    recorded = call(1, "SendMessage", msgspec.json.decode(data), ("s", 1, "end"))
    found = Player(script(recorded), ReplayOptions(match=preset)).begin_call(
        again(recorded, value=request), 0
    )
    assert not isinstance(found, Miss), found.full_text()
