from __future__ import annotations

import base64
import time
from typing import Any

import pytest

from a2a_proto import message_class
from a2a_proxy.model.values import Dialect
from a2a_proxy.protocol.errors import (
    GENERATION_MISMATCH,
    RPC_REASONS,
    RPC_REASONS_0_1,
    GrpcOutcome,
    decode_binary_value,
    error_line,
    message_with_details,
    parse_rest_error,
    read_error_body,
    rpc_reason,
)


def details() -> bytes:
    """A google.rpc.Status with an ErrorInfo."""
    info = message_class("rpc", "ErrorInfo")()
    info.reason, info.domain = "TASK_NOT_FOUND", "a2a-protocol.org"  # type: ignore[attr-defined]
    status = message_class("rpc", "Status")()
    status.code = 5  # type: ignore[attr-defined]
    status.details.add(
        type_url="type.googleapis.com/google.rpc.ErrorInfo", value=info.SerializeToString()
    )  # type: ignore[attr-defined]
    return status.SerializeToString()


@pytest.mark.parametrize(
    "value",
    [
        base64.b64encode(details()),
        base64.b64encode(details()).rstrip(b"="),
        b"\0" + details(),
        details(),
    ],
    ids=["base64", "unpadded", "c-core raw", "raw"],
)
def test_reason_in_trailers(value: bytes) -> None:
    """The ErrorInfo is found in both forms of a `-bin` value (manual/protocol.md "Wire traps")."""
    outcome = GrpcOutcome(
        (
            (b"grpc-status", b"5"),
            (b"grpc-message", b"no%20such%20%F0%9F%98%80"),
            (b"grpc-status-details-bin", value),
        )
    )

    assert outcome.error_text == "TASK_NOT_FOUND NOT_FOUND: no such 😀"


def test_outcomes() -> None:
    """Success and silence have no line; hostile values no exception."""
    assert GrpcOutcome(((b"grpc-status", b"0"),)).error_text == ""
    assert GrpcOutcome(()).status == -1
    assert GrpcOutcome(((b"grpc-status", b"x"),)).status == -1
    assert GrpcOutcome(((b"grpc-status", b"99"),)).error_text == "99"
    assert (
        GrpcOutcome(((b"grpc-status", b"2"), (b"grpc-status-details-bin", b"\xff\xff"))).error_text
        == "UNKNOWN"
    )
    assert decode_binary_value(b"") == b""


def test_rpc_reasons() -> None:
    """ErrorInfo goes first; the same code means another thing in 0.1 (manual/protocol.md
    "Errors")."""
    assert rpc_reason(-32001, [{"@type": "x", "reason": "MINE"}], Dialect.V1_0) == "MINE"
    assert rpc_reason(-32009, None, Dialect.V1_0) == "VERSION_NOT_SUPPORTED"
    assert rpc_reason(-32009, "text", Dialect.V0_1) == "INVALID_TASK_STATE"
    assert rpc_reason(-32006, None, Dialect.V0_1) == "STREAMING_NOT_SUPPORTED"
    assert rpc_reason(-32007, None, Dialect.V0_1) == "AUTHENTICATION_REQUIRED"
    assert rpc_reason(-32050, [1, {"reason": 3}], Dialect.V0_3) == ""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            {
                "error": {
                    "code": 404,
                    "status": "NOT_FOUND",
                    "message": "m",
                    "details": [{"reason": "R"}],
                }
            },
            ("R", "m"),
        ),
        ({"error": {"code": 404, "status": "NOT_FOUND", "message": "m"}}, ("NOT_FOUND", "m")),
        (
            {"type": "https://a2a-protocol.org/errors/task-not-found", "title": "T", "detail": "d"},
            ("TASK_NOT_FOUND", "d"),
        ),
        ({"type": "about:blank", "title": "T"}, ("", "T")),
        ({"message": "m"}, ("", "m")),
        ({"error": "text"}, ("", "text")),
        ([], ("", "")),
    ],
)
def test_rest_bodies(body: object, expected: tuple[str, str]) -> None:
    """All forms of a REST error are read (manual/protocol.md "Error bodies")."""
    assert parse_rest_error(body) == expected


def test_lines() -> None:
    """An error is one harmless line."""
    assert error_line("TASK_NOT_FOUND", -32001, "no\nsuch") == "TASK_NOT_FOUND -32001: no␊such"
    assert error_line("", 0, "") == ""
    assert error_line("", 0, "Invalid request body") == "Invalid request body"


NUMBERS = {"taskId": "t1", "expectedGeneration": "5", "currentGeneration": "6"}
INFO = {
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    "reason": GENERATION_MISMATCH,
    "metadata": NUMBERS,
}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ([INFO], "changed (expected generation 5, it is 6)"),
        (NUMBERS, "changed (expected generation 5, it is 6)"),
        (
            {"error": {"status": "ABORTED", "details": [{"@type": "x"}, INFO]}},
            "changed (expected generation 5, it is 6)",
        ),
        ({"type": "…/task-generation-mismatch", "currentGeneration": 6}, "changed (it is 6)"),
        ({"metadata": {"expectedGeneration": "5"}}, "changed (expected generation 5)"),
        ([{"metadata": "x"}, 7], "changed"),
        (None, "changed"),
    ],
)
def test_a_generation_mismatch_has_expected_and_actual_numbers(said: object, told: str) -> None:
    """Expected and actual generation, in any place."""
    assert message_with_details(GENERATION_MISMATCH, "changed", said) == told


@pytest.mark.parametrize(
    ("details", "line"),
    [
        ("the model is overloaded", "failed (the model is overloaded)"),
        ('Traceback (most recent call last):\n  File "x"\nKeyError: 7\n', "failed (KeyError: 7)"),
        ("Error: no key\n    at run (agent.js:1:2)", "failed (Error: no key)"),
        ({"details": "no key"}, "failed (no key)"),
        ({"reason": "QUOTA", "message": "too many"}, "failed (too many)"),
        (
            [{"type": "missing", "loc": ["params", "message"], "msg": "Field required"}],
            "failed (params.message: Field required)",
        ),
        (
            {"error": "failed", "issues": [{"path": ["parts", 0], "message": "Required"}]},
            "failed (parts.0: Required)",
        ),
        (
            [
                {"@type": "x/google.rpc.ErrorInfo", "reason": "R", "metadata": {"limit": "5"}},
                {
                    "@type": "x/google.rpc.BadRequest",
                    "fieldViolations": [{"field": "message.parts", "description": "is empty"}],
                },
                {"@type": "x/google.rpc.RetryInfo", "retryDelay": "2s"},
                {"@type": "x/google.rpc.Help", "links": [{"description": "docs"}]},
            ],
            "failed (limit: 5, message.parts: is empty, retry after 2s)",
        ),
        (
            [{"metadata": {"errors": [{"field": "message.message_id", "message": "is due"}]}}],
            "failed (message.message_id: is due)",
        ),
        (
            {"violations": [{"subject": "user:1", "description": "10 calls a minute"}]},
            "failed (user:1: 10 calls a minute)",
        ),
        (
            {
                "type": "about:blank",
                "title": "failed",
                "invalid-params": [{"name": "a", "reason": "b"}],
            },
            "failed (a: b)",
        ),
        (
            {"title": "One failed", "errors": {"$.role": ["cannot be read", "is due"]}},
            "failed (One failed, $.role: cannot be read, $.role: is due)",
        ),
        (
            {"title": "failed", "errors": {"name": "is due", "message": "is too long"}},
            "failed (name: is due, message: is too long)",
        ),
        (
            [{"message": "failed"}, "R", 7, None, {"x": "y"}, {"field": 1, "description": 2}],
            "failed",
        ),
        ({}, "failed"),
        (None, "failed"),
    ],
)
def test_a_message_has_what_the_details_add(details: object, line: str) -> None:
    """A text, objects of google.rpc, problem details and the forms of frameworks; what message or
    reason already say is not repeated."""
    assert message_with_details("R", "failed", details) == line


def test_details_without_a_message_are_the_message() -> None:
    assert (
        message_with_details("", "", {"detail": [{"loc": ["body"], "msg": "due"}]}) == "body: due"
    )


def test_remarks_of_details_are_bounded() -> None:
    """Three remarks of 80 characters, however many, long or deep the details are."""
    for wrap in (lambda inner: {"error": inner}, lambda inner: [inner]):
        deep: object = "deepest"
        for _ in range(100_000):
            deep = wrap(deep)
        assert message_with_details("", "failed", deep) == "failed"
    many = [{"msg": f"{number}" * 100} for number in range(100_000)]
    assert len(message_with_details("", "failed", many)) == len("failed ()") + 3 * 80 + 2 * len(
        ", "
    )


def test_details_that_the_message_contains_take_linear_time() -> None:
    """Each of a million texts would be searched for in a message of the same size."""
    texts = [f"{number:08x}" for number in range(20_000)]
    nested = [texts[at : at + 20] for at in range(0, len(texts), 20)]
    details = [nested[at : at + 20] for at in range(0, len(nested), 20)]
    message = "." * 1_000_000 + "".join(texts)
    began = time.process_time()
    message_with_details("", message, details)
    assert time.process_time() - began < 1


def test_details_in_trailers() -> None:
    """The details of google.rpc in a gRPC status are in the line of the error."""
    status: Any = message_class("rpc", "Status")(code=8)
    violations: Any = message_class("rpc", "QuotaFailure")()
    violations.violations.add(subject="user:1", description="10 calls a minute")
    retry: Any = message_class("rpc", "RetryInfo")()
    retry.retry_delay.seconds = 2
    for name, detail in (("QuotaFailure", violations), ("RetryInfo", retry)):
        status.details.add(
            type_url=f"type.googleapis.com/google.rpc.{name}", value=detail.SerializeToString()
        )
    outcome = GrpcOutcome(
        (
            (b"grpc-status", b"8"),
            (b"grpc-message", b"busy"),
            (b"grpc-status-details-bin", base64.b64encode(status.SerializeToString())),
        )
    )

    assert outcome.error_text == (
        "RESOURCE_EXHAUSTED: busy (user:1: 10 calls a minute, retry after 2s)"
    )


@pytest.mark.parametrize("reasons", [RPC_REASONS, RPC_REASONS_0_1], ids=["0.2 and later", "0.1"])
def test_each_code_of_a2a_has_a_reason_of_its_own(reasons: dict[int, str]) -> None:
    assert reasons.keys() >= set(range(-32010, -32000))
    assert len(set(reasons.values())) == len(reasons)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"0", 0),
        (b" 16 ", 16),
        (b"999999999", 999999999),
        (b"9999999999", -1),
        (b"-1", -1),
        (b"x", -1),
        (b"", -1),
    ],
)
def test_a_grpc_status_is_a_number_of_at_most_nine_digits(said: bytes, status: int) -> None:
    assert GrpcOutcome(((b"grpc-status", said),)).status == status


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": "bad", "issues": [{"path": ["a"], "message": "due"}]}', "bad (a: due)"),
        (b'{"detail": [{"loc": ["body", "id"], "msg": "missing"}]}', "body.id: missing"),
        (b'{"message": "no"}', "no"),
        (b'{"errors": ["one", "two"]}', "one, two"),
        (b'{"title": "Bad", "detail": "worse", "type": "about:blank"}', "worse"),
        (b'"no such route"', "no such route"),
        (b"upstream exploded.\nat line 3", "upstream exploded"),
        (b"<!doctype html><html><TITLE lang=en>\nSign in &amp; out </TITLE>", "Sign in & out"),
        (b"<html><p>no title</p>", ""),
        (b"\x89PNG\r\n\x1a\n", ""),
        (b"", ""),
    ],
)
def test_error_bodies_of_any_form(body: bytes, message: str) -> None:
    """What no version of A2A defines, too."""
    assert read_error_body(body)[1] == message


@pytest.mark.parametrize("piece", [b"<title", b"<title>", b"<", b"\xff", b" ", b"[", b'{"a":'])
def test_hostile_error_bodies_take_linear_time(piece: bytes) -> None:
    began = time.process_time()
    read_error_body(b"<" + piece * (8_000_000 // len(piece)))
    read_error_body(piece * (8_000_000 // len(piece)))
    assert time.process_time() - began < 2
