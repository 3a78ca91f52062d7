"""The text of a call as span attributes, on request."""

from __future__ import annotations

import json
from typing import Any

from a2a_proxy.model.event import (
    Artifact,
    ArtifactUpdate,
    Event,
    Message,
    Part,
    StatusUpdate,
    TaskSnapshot,
    TaskStatus,
)
from a2a_proxy.telemetry.message_content import MAX_PARTS, MAX_TEXT, finish_reason, message_content


def message(text: str, ident: str = "", role: str = "ROLE_AGENT") -> Message:
    return Message(message_id=ident, role=role, parts=[Part(text=text)])


def message_event(message: Message) -> Event:
    return Event(status_update=StatusUpdate(status=TaskStatus(message=message)))


def chunk(text: str, *, append: bool) -> Event:
    artifact = Artifact(artifact_id="a", name="plan.md", parts=[Part(text=text)])
    return Event(artifact_update=ArtifactUpdate(artifact=artifact, append=append))


def made(name: str, attributes: dict[str, Any]) -> Any:
    return json.loads(attributes[f"gen_ai.{name}.messages"])


def test_input_and_output_follow_the_semantic_convention() -> None:
    asked = Message(
        role="ROLE_USER",
        parts=[
            Part(text="Plan"),
            Part(raw="AA==", media_type="image/png"),
            Part(data={"secret": 1}),
        ],
    )
    snapshot = Event(task=TaskSnapshot(status=TaskStatus(message=message("Thinking", "m2"))))
    events = [
        message_event(message("Thinking", "m2")),
        chunk("# Day", append=False),
        chunk("9:00", append=True),
        snapshot,
    ]
    content = message_content([asked], events, finish="stop")
    attributes = content.make_attributes()
    assert made("input", attributes) == [
        {
            "role": "user",
            "parts": [
                {"type": "text", "content": "Plan"},
                {"type": "raw", "mime_type": "image/png"},
                {"type": "data"},
            ],
        }
    ]
    assert made("output", attributes) == [
        {
            "role": "assistant",
            "finish_reason": "stop",
            "parts": [{"type": "text", "content": "Thinking"}],
        },
        {
            "role": "assistant",
            "finish_reason": "stop",
            "artifact": "plan.md",
            "parts": [{"type": "text", "content": "# Day"}, {"type": "text", "content": "9:00"}],
        },
    ]
    assert (content.input.text, content.output.text) == ("Plan", "Thinking\n\n# Day\n9:00")
    assert len(attributes) == 2


def test_content_is_bounded_and_omitted_characters_are_counted() -> None:
    events = [message_event(message("é" * MAX_TEXT, "m1")), message_event(message("more", "m2"))]
    attributes = message_content([], events, finish="stop", unread=2).make_attributes()
    [kept] = made("output", attributes)
    assert kept["parts"][0]["content"] == "é" * (MAX_TEXT // 2)
    assert attributes["a2a_proxy.content.output_cut_bytes"] == MAX_TEXT + len("more")
    assert attributes["a2a_proxy.content.frames_unread"] == 2
    assert "gen_ai.input.messages" not in attributes


def test_many_parts_and_lone_surrogates_are_accepted() -> None:
    parts = [Part(text="x"), Part(data=1)] * MAX_PARTS
    attributes = message_content([Message(parts=parts)], [], finish="stop").make_attributes()
    [kept] = made("input", attributes)
    assert len(kept["parts"]) == MAX_PARTS
    assert attributes["a2a_proxy.content.input_cut_bytes"] == MAX_PARTS // 2
    odd = message_content([message("\ud800!", role="")], [], finish="stop")
    assert odd.input.text == "?!"
    assert (
        message_content([], [Event(), message_event(message(""))], finish="stop").make_attributes()
        == {}
    )


def test_finish_reason_is_error_if_the_call_or_the_task_failed() -> None:
    assert finish_reason(failed=False, states=("working", "completed")) == "stop"
    assert (
        finish_reason(failed=False, states=("failed",))
        == finish_reason(failed=True, states=())
        == "error"
    )
