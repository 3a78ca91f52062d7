"""A2A-GRPC beyond its examples: which peer is at fault, near misses, old dialects."""

from __future__ import annotations

import struct
import zlib

import pytest

from a2a_proto import from_dict
from a2a_proxy.model.values import Finding, Severity
from a2a_proxy.rules.examples.conversation import MergedMessage, RawBytes, grpc
from a2a_proxy.rules.examples.objects import (
    agent_reply,
    chunk,
    error_info,
    send,
    snapshot,
    status,
    task,
)
from a2a_proxy.rules.examples.script import Script
from support_rules import findings

GET = {"id": "t1"}
WORKING, COMPLETED = snapshot("WORKING"), status("COMPLETED")
OLD = "/a2a.v1.A2AService"


def ours(script: Script) -> list[Finding]:
    """What the family says."""
    return [each for each in findings(script) if each.rule.startswith("A2A-GRPC-")]


def told(script: Script) -> list[str]:
    """The family's rules that find something, by number."""
    return [each.rule[-3:] for each in ours(script)]


def encode_message(name: str, value: dict[str, object]) -> bytes:
    """A message of 1.0."""
    return from_dict("1.0", name, value).SerializeToString()


def compressed(data: bytes) -> RawBytes:
    """A message with the compressed flag."""
    return RawBytes(b"\1" + struct.pack(">I", len(data)) + data)


def stream(*answers: object, **options: object) -> Script:
    """A streaming call."""
    return grpc("SendStreamingMessage", send(), *answers, **options)


def test_content_types() -> None:
    """Parameters and +proto pass; a wrong one of the client is the client's."""
    assert (
        told(grpc("GetTask", GET, task(), headers={"content-type": "application/grpc+proto"})) == []
    )
    assert told(
        grpc("GetTask", GET, task(), headers={"content-type": "application/grpc+json"})
    ) == ["001"]
    assert told(grpc("GetTask", GET, status=None, reply_headers={"content-type": "text/html"})) == [
        "001"
    ]


def test_an_error_page_is_reported_once() -> None:
    """Its content type and its missing status follow from it."""
    assert told(
        grpc(
            "GetTask",
            GET,
            status=None,
            http_status=503,
            reply_headers={"content-type": "text/html"},
        )
    ) == ["002"]


def test_trailers_only_have_a_status() -> None:
    """Such a response is one block of headers."""
    assert told(grpc("GetTask", GET, status=12, text="no such method")) == []


def test_how_a_call_may_end_without_status() -> None:
    """A reset by the agent counts, one by the client does not, and a task's stream has a rule of
    its own."""
    assert told(grpc("GetTask", GET, task(), finish="cut")) == ["003"]
    assert told(grpc("GetTask", GET, finish="leave")) == []
    assert told(stream(WORKING, finish="cut")) == []
    assert told(stream(WORKING, COMPLETED, finish="cut")) == ["003"]
    assert told(stream(agent_reply(), finish="cut")) == ["003"]
    assert told(stream(WORKING, status("INPUT_REQUIRED"), status=None)) == ["003"]
    assert told(stream(WORKING, finish="leave")) == []
    assert told(stream(WORKING, finish="open")) == []


def test_reset_codes_are_judged_by_meaning() -> None:
    """NO_ERROR and CANCEL break no stream off in the middle, but they are no status; a refused call
    was not begun."""
    assert told(stream(WORKING, finish="cut", reset=0)) == ["003"]
    assert told(stream(WORKING, finish="cut", reset=8)) == ["003"]
    assert told(stream(finish="cut", reset=7)) == []


@pytest.mark.parametrize("value", ["17", "42", "-1", "OK", "5.0", "99999999999999"])
def test_illegal_statuses(value: str) -> None:
    """Only 0 to 16 are legal."""
    assert "004" in told(grpc("GetTask", GET, task(), trailers={"grpc-status": value}))
    assert "003" not in told(grpc("GetTask", GET, task(), trailers={"grpc-status": value}))


def test_legal_statuses() -> None:
    """All of them."""
    for code in range(17):
        assert "004" not in told(grpc("GetTask", GET, task(), status=code))


def test_broken_prefixes_are_flagged_for_either_side() -> None:
    """A message that the stream's end cuts short, and one whose first byte is no flag."""
    short = RawBytes(b"\0\0\0\0\x10\x0a\x02t1")
    (found,) = ours(grpc("GetTask", GET, short))
    assert found.rule == "A2A-GRPC-005"
    assert "the agent ends the stream inside a message" in found.summary
    (found,) = ours(grpc("GetTask", short, status=13))
    assert "the client ends the stream inside a message" in found.summary
    (found,) = ours(grpc("GetTask", GET, RawBytes(b"\7\0\0\0\0")))
    assert "the agent sends a malformed length prefix" in found.summary


def test_a_message_cut_with_its_stream_is_not_a_bad_prefix() -> None:
    """The cut is the fault, not the prefix."""
    assert told(stream(WORKING, RawBytes(b"\0\0\0\0\x10\x0a\x02t1"), finish="cut")) == []
    assert told(stream(WORKING, RawBytes(b"\0\0\0\0\x10\x0a\x02t1"), finish="leave")) == []


def test_compression() -> None:
    """Gzip that is announced is fine; what is no gzip is not, and `identity` announces nothing."""
    data = encode_message("Task", task())
    packer = zlib.compressobj(wbits=31)
    packed = compressed(packer.compress(data) + packer.flush())
    assert told(grpc("GetTask", GET, packed, reply_headers={"grpc-encoding": "gzip"})) == []
    assert told(
        grpc("GetTask", GET, compressed(data), reply_headers={"grpc-encoding": "gzip"})
    ) == ["006"]
    assert told(
        grpc("GetTask", GET, compressed(data), reply_headers={"grpc-encoding": "identity"})
    ) == ["006"]


def test_undecodable_messages_are_flagged() -> None:
    """Sure in 1.0; in the package that two versions share the type is a guess."""
    (found,) = ours(grpc("GetTask", b"\xff", status=3))
    assert (found.rule, found.confidence) == ("A2A-GRPC-007", "high")
    assert "the client" in found.summary
    (found,) = ours(grpc("GetTask", b"", b"\xff\xff", path=f"{OLD}/GetTask", version=""))
    assert (found.rule, found.confidence) == ("A2A-GRPC-007", "low")


def test_how_many_messages() -> None:
    """A stream may have none; a unary call has one, and beside an error none."""
    assert told(stream()) == []
    assert told(grpc("GetTask", GET, task(), task())) == ["008"]
    assert told(grpc("GetTask", RawBytes(b""), status=13)) == ["008"]
    (found,) = ours(grpc("GetTask", GET, task(), status=13))
    assert (found.rule, found.severity) == ("A2A-GRPC-008", Severity.WARNING)
    assert told(grpc("GetTask", GET, status=12)) == []


def test_an_empty_message_is_a_message() -> None:
    """Five bytes of prefix and nothing else, as GetExtendedAgentCard sends it."""
    assert told(grpc("DeleteTaskPushNotificationConfig", {"taskId": "t1", "id": "p1"}, b"")) == []


def test_methods_of_another_package() -> None:
    """The names of 0.3 are right in the package of 0.3."""
    (found,) = ours(grpc("TaskSubscription", b"", status=12))
    assert found.summary == "lf.a2a.v1.A2AService has no method 'TaskSubscription'"
    assert (
        told(
            grpc(
                "TaskSubscription",
                b"\x0a\x08tasks/t1",
                status=5,
                path=f"{OLD}/TaskSubscription",
                version="",
            )
        )
        == []
    )


def test_unknown_fields_name_the_version_that_has_them() -> None:
    """Numbers, wire types, and the version that has such a field."""
    (found,) = ours(grpc("GetTask", GET, MergedMessage((task(), b"\x4a\x00"))))
    assert (
        found.summary == "Task has no length-delimited field 9; it is `elicitations` in live-2153"
    )
    (found,) = ours(grpc("GetTask", GET, MergedMessage((task(), b"\x98\x06\x01"))))
    assert found.summary == "Task has no varint field 99"
    (found,) = ours(grpc("GetTask", GET, MergedMessage((task(), b"\x3a\x01x"))))
    assert found.summary == "Task has no length-delimited field 7"


def test_unknown_fields_within() -> None:
    """The path says where."""
    inner = encode_message("TaskStatus", {"state": "TASK_STATE_WORKING"}) + b"\xa0\x06\x01"
    data = b"\x0a\x02t1\x12\x02c1\x1a" + bytes([len(inner)]) + inner
    (found,) = ours(grpc("GetTask", GET, data))
    assert found.evidence["path"] == "status"
    assert found.summary == "TaskStatus has no varint field 100"


def test_generation_is_no_unknown_field() -> None:
    """The 1.0 descriptors have the draft's fields."""
    assert told(grpc("GetTask", GET, task(generation="3"))) == []


def test_several_alternatives() -> None:
    """Of the answer, and of a part within; the same member twice is legal, and what JSON-like
    values do is theirs."""
    (found,) = ours(stream(WORKING, MergedMessage((chunk("x"), COMPLETED))))
    assert "StreamResponse has artifact_update and status_update" in found.summary
    part = encode_message("Part", {"text": "a"}) + encode_message(
        "Part", {"url": "https://example.com/"}
    )
    update = b"\x0a\x02a1\x22" + bytes([len(part)]) + part
    data = (
        b"\x22"
        + bytes([len(update) + 10])
        + b"\x0a\x02t1\x12\x02c1\x1a"
        + bytes([len(update)])
        + update
    )
    (found,) = ours(stream(WORKING, data, COMPLETED))
    assert found.evidence["path"] == "artifact_update.artifact.parts"
    assert told(stream(MergedMessage((WORKING, WORKING)), COMPLETED)) == []


def test_which_errors_are_a2a_s() -> None:
    """Those whose status says so; the library's and a gateway's are not."""
    for code in (1, 3, 7, 8, 12, 13, 14, 16):
        assert told(grpc("GetTask", GET, status=code, text="no")) == [], code
    assert told(grpc("CancelTask", GET, status=9, text="it is over")) == ["012"]
    assert told(grpc("GetTask", GET, status=10, text="no")) == []
    assert told(grpc("ListTasks", {}, status=5, text="no such tenant")) == []
    assert (
        told(grpc("SendLiveMessage", send(taskId="t1"), status=9, text="there is a stream")) == []
    )
    matching = send(configuration={"ifGenerationMatch": "3"}, taskId="t1")
    assert told(grpc("SendMessage", matching, status=10, text="no")) == ["012"]


def test_an_error_info_of_another_domain() -> None:
    """It says nothing in terms of A2A."""
    details = [error_info("TASK_NOT_FOUND") | {"domain": "example.com"}]
    (found,) = ours(grpc("GetTask", GET, status=5, details=details))
    assert "'example.com'" in found.summary


def test_errors_of_0_3_have_no_details() -> None:
    """ErrorInfo came with 1.0."""
    assert (
        told(grpc("GetTask", b"\x0a\x08tasks/t1", status=5, path=f"{OLD}/GetTask", version=""))
        == []
    )


def test_unreadable_details_are_flagged() -> None:
    """Neither base64 nor the raw form of a Status."""
    assert "013" in told(
        grpc("GetTask", GET, status=13, trailers={"grpc-status-details-bin": "/////w"})
    )
    assert told(grpc("GetTask", GET, status=13, details=[error_info("INTERNAL_ERROR")])) == []


def test_metadata() -> None:
    """Upper case, and a version twice."""
    assert told(grpc("GetTask", GET, task(), headers={"X-Trace": "1"})) == ["014"]
    assert told(grpc("GetTask", GET, task(), headers={"a2a-version": "1.0\0001.0"})) == ["014"]
    assert told(grpc("GetTask", GET, task(), headers={"x-trace": "A\0B"})) == []


def test_deadlines() -> None:
    """By the agent or by the client; a client that cancels at another time does so for another
    reason."""
    assert told(grpc("SendMessage", send(), status=4, text="late")) == ["017"]
    assert told(stream(WORKING, headers={"grpc-timeout": "50m"}, finish="leave")) == ["017"]
    assert told(stream(WORKING, headers={"grpc-timeout": "5S"}, finish="leave")) == []
    assert told(stream(WORKING, finish="leave")) == []
    assert told(stream(WORKING, COMPLETED, status=4, headers={"grpc-timeout": "50m"})) == []


def test_unknown_is_unmapped() -> None:
    """In streams too."""
    assert told(stream(WORKING, status=2, text="Unexpected error")) == ["018"]


class TestWhatCannotBeRead:
    """One fault is told once."""

    def test_details_that_cannot_be_read_are_not_missing(self) -> None:
        """They may hold the ErrorInfo."""
        trailers = {"grpc-status-details-bin": "Cgk"}
        assert told(
            grpc("GetTask", GET, status=5, text="there is no such task", trailers=trailers)
        ) == ["013"]

    def test_an_unreadable_last_event_may_have_ended_the_task(self) -> None:
        """Nobody knows what it said: the stream did not end early."""
        script = grpc("SendStreamingMessage", send(), WORKING, b"\x0a\x02\xc3\x28")
        assert "A2A-STREAM-007" not in [each.rule for each in findings(script)]

    def test_an_early_end_after_it_is_told(self) -> None:
        """What came after the unreadable event says that the task goes on."""
        script = grpc(
            "SendStreamingMessage", send(), snapshot(), b"\x0a\x02\xc3\x28", status("WORKING")
        )
        assert "A2A-STREAM-007" in [each.rule for each in findings(script)]

    def test_an_unreadable_piece_of_an_artifact_is_not_compared(self) -> None:
        """The task has it, what was streamed has not: the agent is not at fault a second time."""
        whole = task(artifacts=[{"artifactId": "a1", "parts": [{"text": "ab"}]}])
        pieces = (chunk("a"), b"\x1a\x02\xc3\x28", status("COMPLETED", second=1))
        script = grpc("SendStreamingMessage", send(), WORKING, *pieces) + grpc(
            "GetTask", GET, whole
        )
        assert "A2A-ART-006" not in [each.rule for each in findings(script)]
