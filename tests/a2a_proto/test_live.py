"""Three incompatible payloads on one path, distinguished by the first message of either side
(manual/protocol.md "Live payload detection")."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_proto import detect_live, message_class, proves_bidi

UUID = "2f1c9a70-5b1d-4f0e-9d43-3a0c6de8b111"


def made(line: Any, message: str, /, **values: Any) -> bytes:
    return message_class(line, message)(**values).SerializeToString()


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        ("12 08 0A 01 6D 1A 01 74 20 01", "bidi"),
        ("0A 07 12 05 0A 01 6D 20 01", "1975"),
        ("1A 0B 0A 01 74 12 01 63 1A 03 0A 01 61", "2153"),
    ],
)
def test_samples_of_the_client(client: str, expected: str) -> None:
    """The sheet's byte samples: a reconnecting message, a wrapped message, an artifact."""
    assert detect_live(bytes.fromhex(client), None) == expected


@pytest.mark.parametrize(
    ("agent", "expected"), [("0A 03 0A 01 74", "bidi"), ("0A 05 0A 03 0A 01 74", "1975")]
)
def test_samples_of_the_agent(agent: str, expected: str) -> None:
    """The sheet's byte samples: a bare task, a task in an event."""
    assert detect_live(None, bytes.fromhex(agent)) == expected


MESSAGE = {"message_id": UUID, "context_id": "c", "role": 1, "parts": [{"text": "hello"}]}
TASK = {"id": UUID, "context_id": "c", "status": {"state": 2}}
CLIENT = [
    ("bidi", made("1.0", "SendMessageRequest", message=MESSAGE)),
    ("bidi", made("1.0", "SendMessageRequest", tenant="acme", message=MESSAGE)),
    (
        "bidi",
        made("1.0", "SendMessageRequest", message=MESSAGE, configuration={"history_length": 3}),
    ),
    (
        "bidi",
        made(
            "1.0",
            "SendMessageRequest",
            message=MESSAGE,
            configuration={"accepted_output_modes": ["text/plain"]},
        ),
    ),
    (
        "bidi",
        made(
            "1.0", "SendMessageRequest", message=MESSAGE, configuration={"return_immediately": True}
        ),
    ),
    ("bidi", made("1.0", "SendMessageRequest", message=MESSAGE, configuration={})),
    (
        "bidi",
        made(
            "1.0",
            "SendMessageRequest",
            message={**MESSAGE, "metadata": {"a": 1}},
            metadata={"b": 2},
        ),
    ),
    ("bidi", made("1.0", "SendMessageRequest", message={"role": 2, "parts": [{"text": "no id"}]})),
    ("1975", made("live-1975", "LiveRequest", message={"message": MESSAGE})),
    (
        "1975",
        made(
            "live-1975",
            "LiveRequest",
            message={"tenant": "acme", "message": MESSAGE, "metadata": {"a": 1}},
        ),
    ),
    (
        "1975",
        made(
            "live-1975",
            "LiveRequest",
            message={"message": MESSAGE, "configuration": {"live_session": {}}},
        ),
    ),
    (
        "1975",
        made(
            "live-1975",
            "LiveRequest",
            frame={"part": {"raw": b"\x00\x01", "media_type": "audio/pcm"}},
        ),
    ),
    ("1975", made("live-1975", "LiveRequest", frame={"part": {"text": "hi"}, "event": 1})),
    ("1975", made("live-1975", "LiveRequest", frame={"part": {"raw": b"\xff"}, "seq_num": 9})),
    ("1975", made("live-1975", "LiveRequest", frame={"modality_index": 1})),
    ("1975", made("live-1975", "LiveRequest", frame={"event": 5})),
    (
        "2153",
        made(
            "live-2153",
            "StreamRequest",
            artifact_update={"task_id": "t", "artifact": {"artifact_id": "a"}},
        ),
    ),
    (
        "2153",
        made(
            "live-2153",
            "StreamRequest",
            artifact_update={"task_id": "t", "context_id": "c", "last_chunk": True},
        ),
    ),
    (
        "2153",
        made(
            "live-2153",
            "StreamRequest",
            tenant="acme",
            artifact_update={"task_id": "t", "artifact": {}},
        ),
    ),
    ("bidi", made("live-2153", "StreamRequest", message=MESSAGE)),
]
AGENT = [
    ("bidi", made("1.0", "StreamResponse", task=TASK)),
    ("bidi", made("1.0", "StreamResponse", task={**TASK, "artifacts": [{"artifact_id": "a"}]})),
    ("bidi", made("1.0", "StreamResponse", message={**MESSAGE, "role": 2})),
    ("bidi", made("1.0", "StreamResponse", status_update={"task_id": "t", "status": {"state": 2}})),
    (
        "bidi",
        made(
            "1.0",
            "StreamResponse",
            artifact_update={"task_id": "t", "artifact": {"artifact_id": "a"}},
        ),
    ),
    ("1975", made("live-1975", "LiveResponse", event={"task": TASK})),
    ("1975", made("live-1975", "LiveResponse", event={"message": {**MESSAGE, "role": 2}})),
    (
        "1975",
        made(
            "live-1975",
            "LiveResponse",
            event={"status_update": {"task_id": "t", "status": {"state": 2}}},
        ),
    ),
    ("1975", made("live-1975", "LiveResponse", event={"artifact_update": {"task_id": "t"}})),
    (
        "1975",
        made(
            "live-1975", "LiveResponse", frame={"part": {"raw": b"\x01"}, "seq_num": 1, "event": 2}
        ),
    ),
    (
        "2153",
        made("live-2153", "StreamResponse", message_update={"task_id": "t", "message": MESSAGE}),
    ),
    ("2153", made("live-2153", "StreamResponse", task={**TASK, "elicitations": [{}]})),
    ("bidi", made("1.0", "StreamResponse", task={**TASK, "timeline": [{"generation": 1}]})),
]


@pytest.mark.parametrize(("expected", "data"), CLIENT)
def test_client(expected: str, data: bytes) -> None:
    """Real messages of each family, as the client's first; plain messages are the same in two
    families."""
    assert detect_live(data, None) == expected


@pytest.mark.parametrize(("expected", "data"), AGENT)
def test_agent(expected: str, data: bytes) -> None:
    """Real messages of each family, as the agent's first."""
    assert detect_live(None, data) == expected


def test_only_a_configuration_proves_bidi() -> None:
    """What else is called bidi may be 2153 as well."""
    proved = [proves_bidi(data) for expected, data in CLIENT if expected == "bidi"]
    assert proved == [False, False, True, True, True, True, False, False, False]
    assert not any(proves_bidi(data) for expected, data in CLIENT if expected != "bidi")
    assert not any(map(proves_bidi, (b"", b"\xff", b"\x0a", b"\x12\x00")))


def test_agent_messages_settle_an_ambiguous_client_message() -> None:
    """A plain client message is called bidi until the agent shows otherwise; a client that showed
    1975 stays so."""
    plain, wrapped = CLIENT[0][1], CLIENT[8][1]
    update, task = AGENT[10][1], AGENT[0][1]
    assert detect_live(plain, None) == "bidi"
    assert detect_live(plain, update) == "2153"
    assert detect_live(plain, task) == "bidi"
    assert detect_live(wrapped, task) == "1975"


@pytest.mark.parametrize(
    "data", [None, b"", b"\xff", b"\x0a", b"\x12\x00", b"\x0b\x0c", b"\x32\x00"]
)
def test_no_or_unknown_bytes_detect_nothing(data: bytes | None) -> None:
    """The result is empty."""
    assert detect_live(data, data) == ""


@given(
    st.one_of(
        st.binary(),
        st.sampled_from([data for _, data in CLIENT + AGENT]).flatmap(
            lambda data: st.integers(0, len(data)).map(lambda cut: data[:cut])
        ),
    )
)
def test_never_raises(data: bytes) -> None:
    """Any bytes give one of the four answers, on either side."""
    assert detect_live(data, None) in ("", "bidi", "1975", "2153")
    assert detect_live(None, data) in ("", "bidi", "1975", "2153")
