"""Recording without payloads: no payload text is left, everything else is unchanged, no rule
reports a fault."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from a2a_proxy.model.values import (
    ArtifactState,
    Binding,
    Exchange,
    Finding,
    Frame,
    FrameKind,
    Observation,
    Severity,
    Task,
)
from a2a_proxy.model.wire import Direction
from a2a_proxy.observer import Observer
from a2a_proxy.redaction import create_redactor
from a2a_proxy.redaction.labels import is_withheld
from a2a_proxy.redaction.policy import policy_of
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.examples.script import Script
from support_thin import thin

KEY = b"k" * 32
BARE = policy_of(["metadata-only"])


def observed(script: Script, *words: str) -> list[Observation]:
    observer = Observer(create_redactor(KEY, policy_of(words)))
    out: list[Observation] = []
    for chunk in script.make_chunks():
        observer.feed(chunk, out)
    return out


def found(out: list[Observation]) -> Counter[tuple[str, int, int]]:
    return Counter((each.rule, each.exchange, each.seq) for each in out if type(each) is Finding)


@pytest.mark.parametrize("ident", thin(all_rules(), 6))
def test_rules_find_no_more_without_payloads(ident: str) -> None:
    """In the examples of every rule, rules that need a payload are silent, and no other rule
    reports more."""
    for script in (all_rules()[ident].flagged, all_rules()[ident].clean):
        assert not found(observed(script, "metadata-only")) - found(observed(script))


@pytest.mark.parametrize(
    "ident", ["A2A-STREAM-020", "A2A-GEN-001", "A2A-STDIO-005", "A2A-SSE-003", "A2A-GRPC-005"]
)
def test_only_payloads_are_missing(ident: str) -> None:
    """Kinds, sizes, times, ids, states and generations of every frame equal those recorded with
    payloads."""
    script = all_rules()[ident].flagged
    whole = [each for each in observed(script) if type(each) is Frame]
    bare = [each for each in observed(script, "metadata-only") if type(each) is Frame]
    for one, other in zip(whole, bare, strict=True):
        names = set(Frame.__struct_fields__) - {"payload", "sha256", "framing", "note", "redacted"}
        assert {name: getattr(one, name) for name in names} == {
            name: getattr(other, name) for name in names
        }
        assert other.payload == b""
        assert is_withheld(other) is (one.size > 0)


def test_no_text_is_left() -> None:
    """No text of errors, queries, trailers, other headers than the protocol's, lines around a
    payload, and notes."""
    redact = create_redactor(KEY, BARE)
    told: dict[str, Any] = {
        "target": "/tasks/1?note=secret-words",
        "error": "-32000: secret-words",
        "request_headers": ((b"Content-Type", b"application/json"), (b"X-Why", b"secret-words")),
        "trailers": ((b"grpc-status", b"3"), (b"grpc-message", b"secret-words")),
        "error_code": -32000,
    }
    clean = redact.redact_exchange(Exchange(1, 1, 0, Binding.JSONRPC, 1, **told))
    assert "secret-words" not in repr(clean)
    assert (clean.target, clean.error, clean.error_code) == ("/tasks/1", "", -32000)
    assert [name for name, _ in clean.request_headers] == [b"Content-Type", b"X-Why"]
    assert clean.trailers[0] == (b"grpc-status", b"3")
    payload = b"secret-words"
    framing = "id: secret-words\r\ndata: \0\r\n: secret-words\nsecret-words\n\n"
    frame = Frame(
        1,
        1,
        0,
        Direction.TO_CLIENT,
        FrameKind.UNDECODABLE,
        1,
        2,
        0,
        9,
        payload,
        12,
        framing=framing,
    )
    frame = redact.redact_frame(frame, None)
    assert "secret-words" not in repr(frame)
    assert (frame.size, frame.framing) == (12, "id: \r\ndata: \0\r\n: \n\n\n")
    finding = redact.redact_finding(
        Finding(
            "UNDECODABLE", Severity.ERROR, 1, "at 7: secret-words", evidence={"got": "secret-words"}
        )
    )
    assert "secret-words" not in repr(finding)
    assert finding.summary == "at 7"


def test_a_task_keeps_no_name_of_an_artifact() -> None:
    """The name is a text of the agent; ids and counts stay."""
    artifact = ArtifactState("a-1", "secret-words", 1, 1, 5, False, 1, 2)
    task = create_redactor(KEY, BARE).redact_task(
        Task("agent:80", "t-1", "c-1", "", 2, (), 1, 2, artifacts=(artifact,))
    )
    assert "secret-words" not in repr(task)
    assert (task.artifacts[0].artifact_id, task.artifacts[0].size) == ("a-1", 5)
